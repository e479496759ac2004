"""Watches: the changes of a resource as they happen."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass

from tests.labs.kubernetes.objects import selectors
from tests.labs.kubernetes.objects.errors import ApiError, bad_request
from tests.labs.kubernetes.objects.paths import Target
from tests.labs.kubernetes.objects.resources import Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.history import Change
from tests.labs.kubernetes.store.object_store import ObjectStore

_LONGEST_S = (1800, 3600)  # a watch without a timeout ends in between


class Wakeups:
    """Wakes what waits in an event loop for changes of a store."""

    def __init__(self, store: ObjectStore) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[tuple[str, str], set[asyncio.Event]] = {}
        self._store = store
        store.subscribe(self._changed)

    def close(self) -> None:
        """Wake nobody any more."""
        self._store.unsubscribe(self._changed)

    def _changed(self, _: str, resource: Resource, __: Json) -> None:
        if resource.key in self._waiting:
            with contextlib.suppress(RuntimeError):  # the loop has closed
                self._loop.call_soon_threadsafe(self._wake, resource.key)

    def _wake(self, key: tuple[str, str]) -> None:
        for event in self._waiting.get(key, ()):
            event.set()

    @contextlib.contextmanager
    def waiting(self, resource: Resource) -> Iterator[asyncio.Event]:
        """Yield an event that is set after each change of a resource."""
        event = asyncio.Event()
        events = self._waiting.setdefault(resource.key, set())
        events.add(event)
        try:
            yield event
        finally:
            events.discard(event)


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """Request of a watch."""

    target: Target
    label_selector: str = ""
    field_selector: str = ""
    version: str = ""
    bookmarks: bool = False
    initial: bool = False
    timeout_s: float = 0.0


class Watch:
    """The events of one watch."""

    def __init__(self, store: ObjectStore, request: WatchRequest, bookmark_interval_s: float) -> None:
        self._store = store
        self._request = request
        self._labels = selectors.label_matches(request.label_selector)
        self._fields = selectors.field_matches(request.target.resource, request.field_selector)
        self._version = 0
        self._bookmark_interval_s = bookmark_interval_s

    async def lines(self, wakeups: Wakeups) -> AsyncGenerator[bytes, None]:
        """Each event as JSON, a line each."""
        events = self.events(wakeups)
        async with contextlib.aclosing(events):
            async for event in events:
                yield json.dumps(event, separators=(",", ":")).encode() + b"\n"

    async def events(self, wakeups: Wakeups) -> AsyncGenerator[Json, None]:
        """Each event, until the time is over or changes are no longer known."""
        ends = time.monotonic() + (self._request.timeout_s or random.uniform(*_LONGEST_S))
        with wakeups.waiting(self._request.target.resource) as event:
            for found in self._begin():
                yield found
            while (left_s := ends - time.monotonic()) > 0:
                event.clear()
                try:
                    changes = self._store.changes_since(self._version)
                except ApiError as error:
                    yield {"type": "ERROR", "object": error.status()}
                    return
                for told in self._told(changes):
                    yield told
                if not await _set_within(event, min(left_s, self._bookmark_interval_s)) and self._request.bookmarks:
                    yield self._bookmark()

    def _begin(self) -> Sequence[Json]:
        version = self._request.version
        if version not in ("", "0") and not self._request.initial:
            if not version.isdigit():
                raise bad_request(f'invalid resource version "{version}"')
            self._version = int(version)
            return []
        target = self._request.target
        items, at = self._store.shared_list(
            target.resource, target.namespace, self._request.label_selector, self._request.field_selector
        )
        self._version = int(at)
        events = [{"type": "ADDED", "object": item} for item in items]
        if self._request.initial:
            end = self._bookmark()
            end["object"]["metadata"]["annotations"] = {"k8s.io/initial-events-end": "true"}
            events.append(end)
        return events

    def _told(self, changes: Sequence[Change]) -> list[Json]:
        told = []
        for change in changes:
            self._version = change.version
            event_type = self._type(change)
            if event_type:
                told.append({"type": event_type, "object": change.found})
        return told

    def _type(self, change: Change) -> str:
        target = self._request.target
        if change.resource.key != target.resource.key:
            return ""
        if target.namespace and change.found["metadata"].get("namespace") != target.namespace:
            return ""
        now = self._selects(change.found)
        before = change.previous is not None and self._selects(change.previous)
        if change.type == "DELETED" or not now:
            return "DELETED" if before else ""
        return "MODIFIED" if before else "ADDED"

    def _selects(self, found: Json) -> bool:
        return self._labels(found) and self._fields(found)

    def _bookmark(self) -> Json:
        resource = self._request.target.resource
        metadata = {"resourceVersion": str(self._version), "creationTimestamp": None}
        found = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        return {"type": "BOOKMARK", "object": found}


async def _set_within(event: asyncio.Event, timeout_s: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), timeout_s)
    except TimeoutError:
        return False
    return True

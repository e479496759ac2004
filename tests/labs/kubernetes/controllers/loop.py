"""One thread that runs all controllers: each is told the keys of the objects to look at again."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from tests.labs.kubernetes.controllers.cache import ObjectCache
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.resources import Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

Key: TypeAlias = tuple[str, str]  # namespace ("" where there is none) and name
_AGAIN_S = 0.05  # after a refusal
_SETTLES_WITHIN_S = 60.0


class Controller(Protocol):
    """Makes the world as the objects of one kind say."""

    @property
    def watches(self) -> Sequence[Resource]:
        """The kinds whose changes it hears of: its own, and those of what it makes."""
        ...

    def keys(self, resource: Resource, found: Json) -> Iterable[Key]:
        """Which of its objects a changed one concerns; the change may be the end of it."""
        ...

    def reconcile(self, key: Key) -> float | None:
        """Do what is missing, without waiting; seconds until it must be called again, None: at a change."""
        ...


@dataclass(order=True, frozen=True, slots=True)
class _Due:
    at: float
    number: int
    controller: int
    key: Key


class ControlLoop:
    """Runs controllers in one thread, and keeps a cache of all objects for them.

    Attributes:
        errors: Tracebacks of controllers that failed: faults of the double.
        cache: All objects.
    """

    def __init__(self, store: ObjectStore) -> None:
        self.errors: list[str] = []
        self._store = store
        self._controllers: list[Controller] = []
        self._queue: list[_Due] = []
        self._waiting: dict[tuple[int, Key], float] = {}
        self._tasks: list[Callable[[], None]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self.cache = ObjectCache()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="control-loop", daemon=True)

    def start(self) -> None:
        """Begin; controllers are added before."""
        self._store.subscribe(self._hear)
        for resource in self._store.resources:
            for found in self._store.list(resource, None)[0]:
                self._hear("ADDED", resource, found)
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for it."""
        self._store.unsubscribe(self._hear)
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout=30)

    def add(self, controller: Controller) -> None:
        """Run one more controller."""
        self._controllers.append(controller)

    def objects(self, resource: Resource) -> list[Json]:
        """All objects of a kind; shared: not to be changed."""
        return self.cache.objects(resource)

    def find(self, resource: Resource, key: Key) -> Json | None:
        """Return an object; shared: not to be changed."""
        return self.cache.find(resource, key)

    def call(self, task: Callable[[], None]) -> None:
        """Have something done by the loop's thread, soon."""
        with self._changed:
            self._tasks.append(task)
            self._changed.notify()

    def settle(self) -> None:
        """Wait until what its thread does now is done."""
        done = threading.Event()
        self.call(done.set)
        done.wait(_SETTLES_WITHIN_S)

    def enqueue(self, controller: Controller, key: Key, delay_s: float = 0.0) -> None:
        """Have a controller look at an object."""
        with self._changed:
            self._enqueue(self._controllers.index(controller), key, time.monotonic() + delay_s)
            self._changed.notify()

    def look_again(self, resource: Resource, key: Key) -> None:
        """Have all controllers of a kind look at one of its objects, as if it had changed."""
        found = self.find(resource, key)
        if found is not None:
            self._hear("MODIFIED", resource, found)

    def _hear(self, event_type: str, resource: Resource, found: Json) -> None:
        self.cache.hear(event_type, resource, found)
        with self._changed:
            for number, controller in enumerate(self._controllers):
                if any(resource.key == watched.key for watched in controller.watches):
                    for concerned in controller.keys(resource, found):
                        self._enqueue(number, concerned, time.monotonic())
            self._changed.notify()

    def _enqueue(self, number: int, key: Key, at: float) -> None:
        waiting = self._waiting.get((number, key))
        if waiting is None or at < waiting:
            self._waiting[number, key] = at
            heapq.heappush(self._queue, _Due(at, next(self._numbers), number, key))

    def _run(self) -> None:
        while (step := self._next()) is not None:
            try:
                step()
            except Exception:  # noqa: BLE001 - told to the test that asks for errors; other controllers go on
                self.errors.append(traceback.format_exc())

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            while not self._stopping:
                if self._tasks:
                    return self._tasks.pop(0)
                due = self._pop_due()
                if due is not None:
                    return lambda: self._reconcile(due.controller, due.key)
                wait = self._queue[0].at - time.monotonic() if self._queue else None
                self._changed.wait(wait)
            return None

    def _pop_due(self) -> _Due | None:
        while self._queue and self._queue[0].at <= time.monotonic():
            due = heapq.heappop(self._queue)
            if self._waiting.get((due.controller, due.key)) == due.at:
                del self._waiting[due.controller, due.key]
                return due
        return None

    def _reconcile(self, number: int, key: Key) -> None:
        try:
            again = self._controllers[number].reconcile(key)
        except ApiError:
            again = _AGAIN_S
        if again is not None:
            with self._changed:
                self._enqueue(number, key, time.monotonic() + again)

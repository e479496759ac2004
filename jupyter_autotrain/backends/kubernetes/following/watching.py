"""A cache of the objects of one kind and namespace, kept true by one list and one watch for all of them.

A watch that ends begins again where it was; one that has expired (410) lists anew, and says of what is gone meanwhile
that it is deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, cast

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi, selectors
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError

if TYPE_CHECKING:
    import aiohttp

_WATCH_S = 240
_SILENT_S = 330.0  # a connection over which nothing came for so long is dead
_SHORT_S = 1.0  # a watch that ends sooner without any event would be begun again and again
_FIRST_PAUSE_S = 0.2
_MOST_PAUSE_S = 5.0
_GONE = 410
_log = logging.getLogger(__name__)
Change = Callable[[JsonObject, bool], None]  # takes an object, and whether it is gone


class WatchedObjects:
    """The objects of one kind.

    Args:
        api: The cluster.
        object_type: Which kind.
        namespace: Where.
        label_selector: Which of them.
        on_change: Called in the loop when one is new, different or gone.
        slim: Takes away what nobody reads of an object.
    """

    def __init__(
        self, api: KubernetesApi, object_type: ObjectType, namespace: str, label_selector: str, on_change: Change,
        slim: Callable[[JsonObject], JsonObject],
    ) -> None:  # fmt: skip
        self._api = api
        self._path = object_type.path(namespace)
        self._selector = label_selector
        self._on_change = on_change
        self._slim = slim
        self._objects: dict[str, JsonObject] = {}
        self._by_job: dict[str, dict[str, JsonObject]] = {}
        self._synced = threading.Event()
        self._tried = threading.Event()  # the first list has come, or it is known why not
        self._begun_s = time.monotonic()
        self.fault = ""  # why nothing is known of the objects at the moment

    def of_job(self, job_label: str) -> list[JsonObject]:
        """Return the objects of a job."""
        return list(self._by_job.get(job_label, {}).values())

    def all(self) -> list[JsonObject]:
        """Return all of them."""
        return list(self._objects.values())

    def insert(self, one: JsonObject) -> None:
        """Take an object that was just made; the watch tells of it later."""
        slim = self._slim(one)
        uid = naming.uid_of(slim)
        if uid not in self._objects:
            self._objects[uid] = slim
            self._by_job.setdefault(naming.job_label(slim), {})[uid] = slim

    def wait_until_listed(self, timeout_s: float) -> bool:
        """Wait for the first list; False when it cannot be had, or has not come so long after the watch began."""
        self._tried.wait(max(self._begun_s + timeout_s - time.monotonic(), 0.0))
        return self._synced.is_set()

    async def run(self) -> None:
        """List and watch, until cancelled."""
        pause_s = _FIRST_PAUSE_S
        version = ""
        while True:
            try:
                version = version or await self._list()
                begun_s = time.monotonic()
                before = version
                version = await self._watch(version)
                ended_at_once = version == before and time.monotonic() - begun_s < _SHORT_S
                pause_s = await _wait(pause_s) if ended_at_once else _FIRST_PAUSE_S
            except ApiRefusedError as error:
                self._note(error)
                version = ""
                if error.code != _GONE:
                    pause_s = await _wait(pause_s)
            except AutotrainError as error:
                self._note(error)
                pause_s = await _wait(pause_s)
            except Exception as error:  # noqa: BLE001 - whatever it is: it is listed anew, and shown meanwhile
                _log.exception("the watch of %s is begun again", self._path)
                self.fault = f"what the cluster says cannot be read: {error!r}"
                self._tried.set()
                version = ""
                pause_s = await _wait(pause_s)

    def _note(self, error: AutotrainError) -> None:
        self.fault = error.found.rstrip(".")
        self._tried.set()

    async def _list(self) -> str:
        items, version = await self._api.alist(self._path, selectors(self._selector), self._slim)
        here = set(map(naming.uid_of, items))
        for one in [one for uid, one in self._objects.items() if uid not in here]:
            self._remove(one)
        for one in items:
            self._put(one)
        self.fault = ""
        self._synced.set()
        self._tried.set()
        return version

    async def _watch(self, version: str) -> str:
        """Take what changes; gives the version to go on from when the server ends it.

        Raises:
            ApiRefusedError: That version has expired, or the server refuses.
        """
        query = {
            **selectors(self._selector), "watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_S),
        }  # fmt: skip
        async for event in self._events(query):
            kind = event.get("type")
            found = cast("JsonObject", event.get("object") or {})
            if kind == "ERROR":
                code = found.get("code")
                raise ApiRefusedError(
                    code if isinstance(code, int) else 500, str(found.get("reason")), str(found.get("message"))
                )
            version = str(cast("JsonObject", found.get("metadata") or {}).get("resourceVersion") or version)
            if kind == "DELETED":
                self._remove(self._slim(found))
            elif kind != "BOOKMARK":
                self._put(self._slim(found))
        return version

    async def _events(self, query: dict[str, str]) -> AsyncIterator[JsonObject]:
        async with self._api.opened("GET", self._path, query, read_s=_SILENT_S) as answer:
            await self._api.check(answer)
            self.fault = ""
            async for line in self._lines(answer):
                with contextlib.suppress(ValueError):
                    yield cast("JsonObject", json.loads(line))

    async def _lines(self, answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """Yield the lines of an answer; one that is cut off just ends: a watch goes on where it was."""
        rest = b""
        with contextlib.suppress(BackendUnavailableError):
            async for data in self._api.pieces(answer):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    yield line

    def _put(self, one: JsonObject) -> None:
        uid = naming.uid_of(one)
        before = self._objects.get(uid)
        if before is not None and naming.job_label(before) != naming.job_label(one):
            self._by_job.get(naming.job_label(before), {}).pop(uid, None)
        self._objects[uid] = one
        self._by_job.setdefault(naming.job_label(one), {})[uid] = one
        self._tell(one, is_gone=False)

    def _remove(self, one: JsonObject) -> None:
        uid = naming.uid_of(one)
        self._objects.pop(uid, None)
        of_job = self._by_job.get(naming.job_label(one), {})
        of_job.pop(uid, None)
        if not of_job:
            self._by_job.pop(naming.job_label(one), None)
        self._tell(one, is_gone=True)

    def _tell(self, one: JsonObject, *, is_gone: bool) -> None:
        try:
            self._on_change(one, is_gone)
        except Exception:  # noqa: BLE001 - one object that cannot be dealt with must not hide all the others
            _log.exception("what is new of %s cannot be dealt with", naming.name_of(one))


async def _wait(pause_s: float) -> float:
    await asyncio.sleep(pause_s)
    return min(pause_s * 2, _MOST_PAUSE_S)

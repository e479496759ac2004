"""Deletes the objects of trials that are collected, many by one request, and pods that have nothing left to do."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi, selectors
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.objects import naming, pod_parts
from jupyter_autotrain.backends.kubernetes.objects.fields import items, text
from jupyter_autotrain.backends.kubernetes.objects.workload import (
    CONFIG_MAPS,
    NOT_SERVED_CODES,
    PODS,
    TRIAL_TYPES,
    ObjectType,
)
from jupyter_autotrain.errors import AutotrainError

_GROWTH = 2.0
_CLOSE_S = 2.0  # batches that follow each other this soon would better have been one


class BatchWindow:
    """The window of one kind of request: short for a single one, longer while batches follow each other closely.

    Args:
        least_s: The window after a while without requests.
        most_s: The longest window.
        clock: Seconds that only grow.
    """

    def __init__(self, least_s: float, most_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._least_s = least_s
        self._most_s = most_s
        self._clock = clock
        self._window_s = least_s
        self._ends_s = float("-inf")

    def open(self) -> float:
        """Begin a batch now; return for how many seconds it takes others in."""
        now_s = self._clock()
        follows_closely = now_s - self._ends_s < _CLOSE_S
        self._window_s = min(self._window_s * _GROWTH, self._most_s) if follows_closely else self._least_s
        self._ends_s = now_s + self._window_s
        return self._window_s


_LAST_GRACE_S = 1


class EndingPods:
    """Has pods that are being deleted end soon: their trial has had its grace, or has not begun.

    While its Python starts, a pod ignores SIGTERM: one that was just scheduled, or that a controller makes for a trial
    that has ended. Who may not delete single pods waits for the pod's own grace.

    Args:
        api: The cluster.
    """

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._hastened: set[str] = set()

    async def hasten(self, pods: Iterable[JsonObject]) -> None:
        """Hasten those of some pods that are being deleted, each once.

        Args:
            pods: All that are to be hastened, also those that were.
        """
        ending = {naming.uid_of(pod): pod for pod in pods if _is_ending(pod)}
        new = ending.keys() - self._hastened
        self._hastened = set(ending)
        for uid in new:
            await self._hasten(uid, ending[uid])

    async def _hasten(self, uid: str, pod: JsonObject) -> None:
        options: JsonObject = {
            "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": _LAST_GRACE_S,
            "preconditions": {"uid": uid},
        }  # fmt: skip
        path = PODS.path(text(pod, "metadata", "namespace"), naming.name_of(pod))
        with contextlib.suppress(AutotrainError):
            await self._api.arequest("DELETE", path, options)


def _is_ending(pod: JsonObject) -> bool:
    return bool(text(pod, "metadata", "deletionTimestamp")) and pod_parts.is_alive(pod)


_WINDOW_S = 0.5  # how long a single one waits for others
_MOST_WINDOW_S = 10.0  # while many trials end: what has ended keeps no place on a node
_AGAIN_S = 5.0
_MOST_AT_ONCE = 50  # the names of the jobs stand in the address of the request
_log = logging.getLogger(__name__)


class ObjectDeleter:
    """Deletes objects of one home in one namespace.

    Args:
        api: The cluster.
        namespace: The namespace.
        home: The identity of the home.
        own_code: Tells the cluster first which objects use its code: it goes with the last that is known to.
    """

    def __init__(
        self, api: KubernetesApi, namespace: str, home: str, own_code: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._home = home
        self._waiting: dict[ObjectType, set[str]] = {}
        self._own_code = own_code
        self._window = BatchWindow(_WINDOW_S, _MOST_WINDOW_S)
        self._urgent = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def delete_soon(self, object_type: ObjectType, job_id: str) -> None:
        """Delete the object of a job, together with others. In the loop."""
        self._waiting.setdefault(object_type, set()).add(job_id)
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self._delete_waiting())

    def delete_at_once(self) -> None:
        """Wait for no others any more. In the loop."""
        if self._waiting:
            self._urgent.set()

    async def until_deleted(self) -> None:
        """Wait until nothing is left to delete."""
        while self._waiting and self._running is not None:
            await self._running

    async def _delete_waiting(self) -> None:
        while self._waiting:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._urgent.wait(), self._window.open())
            self._urgent.clear()
            await self._own_code()
            await self._delete_some()

    async def _delete_some(self) -> None:
        object_type = next(iter(self._waiting))
        waiting = self._waiting[object_type]
        chosen = sorted(waiting)[:_MOST_AT_ONCE]
        try:
            await self.delete(object_type, chosen)
            waiting.difference_update(chosen)
        except AutotrainError as error:  # the next window tries again
            _log.warning("objects of ended trials cannot be deleted: %s", error.found)
            await asyncio.sleep(_AGAIN_S)
        if not waiting:
            self._waiting.pop(object_type, None)

    async def delete_unowned_code(self) -> None:
        """Delete the ConfigMaps that an earlier manager has made and was killed before any object owned them.

        A trial that is there, such as one of another profile, may need them: then they stay. One that a submit is just
        about to use is made again by it (`CodeObjects.flush`).
        """
        await self.until_deleted()
        path = CONFIG_MAPS.path(self._namespace)
        try:
            if await self._has_trials():
                return
            found, _ = await self._api.alist(path, selectors(naming.selector_of_home(self._home)))
            for one in found:
                if not items(one, "metadata", "ownerReferences"):
                    await self._api.arequest("DELETE", f"{path}/{naming.name_of(one)}")
        except AutotrainError as error:  # `clean` finds them
            _log.warning("code that nothing uses stays in the cluster: %s", error.found)

    async def _has_trials(self) -> bool:
        for object_type in TRIAL_TYPES:
            path = object_type.path(self._namespace)
            try:
                found, _ = await self._api.alist(path, selectors(naming.selector_of_home(self._home)))
            except ApiRefusedError as error:
                if error.code not in NOT_SERVED_CODES:
                    raise
                continue
            if any(
                naming.label(one, naming.LABEL_EXPERIMENT) and not text(one, "metadata", "deletionTimestamp")
                for one in found
            ):
                return True
        return False

    async def delete(self, object_type: ObjectType, job_ids: list[str]) -> None:
        """Delete the objects of some jobs, and in the background what they own.

        Raises:
            BackendError: The cluster refuses, or does not answer.
        """
        options: JsonObject = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        query = {"labelSelector": naming.selector_of_jobs(job_ids, self._home)}
        await self._api.arequest("DELETE", object_type.path(self._namespace), options, query)

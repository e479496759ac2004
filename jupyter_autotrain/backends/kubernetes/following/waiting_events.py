"""The events that say why a trial waits: listed only while one does, once for all trials of a namespace."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable

from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi, selectors
from jupyter_autotrain.backends.kubernetes.objects.fields import text
from jupyter_autotrain.backends.kubernetes.objects.object_types import EVENTS
from jupyter_autotrain.backends.kubernetes.reasons.start_reasons import told_at
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import AutotrainError

_PATIENCE_S = 3.0  # most trials begin sooner, and cost no request
_REFRESH_S = 5.0
_FORGOTTEN_S = 60.0  # a trial that nobody has asked about for so long waits no more


class WaitingEvents:
    """The warnings of a namespace.

    Args:
        api: The cluster.
        namespace: The namespace.
    """

    def __init__(self, api: KubernetesApi, namespace: str) -> None:
        self._api = api
        self._path = EVENTS.path(namespace)
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[float, float]] = {}  # by name of the object: asked about first, and last
        self._events: list[JsonObject] = []
        self._asked_at = float("-inf")

    def of(self, name: str, pods: Iterable[str]) -> list[JsonObject]:
        """What is known about an object and its pods, the latest last; nothing before it has waited for a while."""
        now = time.monotonic()
        with self._lock:
            first, _ = self._waiting.get(name, (now, now))
            self._waiting[name] = (first, now)
            if now - first < _PATIENCE_S:
                return []
            is_due = now - self._asked_at >= _REFRESH_S
            if is_due:
                self._asked_at = now
            found = self._events
        if is_due:
            self._api.loop.start(self._refresh(now))
        return _about(found, name, pods)

    async def read(self, name: str, pods: Iterable[str]) -> list[JsonObject]:
        """Return what the cluster says now about an object and its pods."""
        await self._refresh(time.monotonic())
        return _about(self._events, name, pods)

    async def _refresh(self, now: float) -> None:
        with contextlib.suppress(AutotrainError):  # who may not read events waits without a reason
            events, _ = await self._api.alist(self._path, selectors("", "type=Warning"))
            with self._lock:
                self._events = sorted(events, key=told_at)
                asked = self._waiting.items()
                self._waiting = {name: times for name, times in asked if now - times[1] < _FORGOTTEN_S}


def _about(events: Iterable[JsonObject], name: str, pods: Iterable[str]) -> list[JsonObject]:
    names = {name, *pods}
    return [event for event in events if _is_about(text(event, "involvedObject", "name"), names, name)]


def _is_about(found: str, names: set[str], name: str) -> bool:
    """Whether it is one of these, or was made of the object: Kueue's Workload, the Job of a JobSet or of a launcher."""
    return found in names or f"-{name}-" in found or found.startswith(f"{name}-")

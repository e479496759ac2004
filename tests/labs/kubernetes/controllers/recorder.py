"""Events: what happens to objects, for people."""

from __future__ import annotations

import uuid

from tests.labs.kubernetes.controllers.times import stamp
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.resources import EVENTS
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore


class EventRecorder:
    """Writes events; the same one again is counted.

    Args:
        component: Who says so, such as kubelet.
        host: On which node; "": on none.
    """

    def __init__(self, store: ObjectStore, component: str, host: str = "") -> None:
        self._store = store
        self._source = {"component": component} | ({"host": host} if host else {})
        self._known: dict[tuple[str, str, str], str] = {}

    def record(self, about: Json, reason: str, message: str, kind: str = "Normal") -> None:
        """Write that something happened to an object."""
        metadata = about["metadata"]
        namespace = metadata.get("namespace", "default")
        known = (metadata["uid"], reason, message)
        now = stamp(self._store.clock())
        try:
            if known in self._known:
                found = self._store.get(EVENTS, namespace, self._known[known])
                changed = {"count": found["count"] + 1, "lastTimestamp": now}
                self._store.patch(EVENTS, namespace, self._known[known], changed)
                return
            self._known[known] = self._create(about, namespace, reason, message, kind)
        except ApiError:
            return  # its namespace goes; events are told on a best effort

    def _create(self, about: Json, namespace: str, reason: str, message: str, kind: str) -> str:
        now = stamp(self._store.clock())
        involved = {"kind": about["kind"], "apiVersion": about["apiVersion"], "namespace": namespace}
        involved |= {key: about["metadata"][key] for key in ("name", "uid")}
        name = f"{about['metadata']['name']}.{uuid.uuid4().hex[:16]}"
        body: Json = {
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "type": kind,
            "source": self._source,
            "reportingComponent": self._source["component"],
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        self._store.create(EVENTS, namespace, body)
        return name

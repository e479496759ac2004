"""Deletes Jobs some time after they have ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.labs.kubernetes.controllers.loop import ControlLoop, Key
from tests.labs.kubernetes.controllers.times import seconds_of
from tests.labs.kubernetes.objects.resources import JOBS, Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore


class TtlController:
    """Watches Jobs with `ttlSecondsAfterFinished`."""

    watches: Sequence[Resource] = (JOBS,)

    def __init__(self, store: ObjectStore, loop: ControlLoop) -> None:
        self._store = store
        self._loop = loop

    def keys(self, resource: Resource, found: Json) -> Iterable[Key]:
        """Yield the Job itself, when it is to be deleted at all."""
        del resource
        if "ttlSecondsAfterFinished" in found["spec"]:
            yield found["metadata"]["namespace"], found["metadata"]["name"]

    def reconcile(self, key: Key) -> float | None:
        """Delete it when its time has come."""
        job = self._loop.find(JOBS, key)
        if job is None or "deletionTimestamp" in job["metadata"]:
            return None
        for condition in job.get("status", {}).get("conditions", ()):
            if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
                ended = seconds_of(condition["lastTransitionTime"])
                left = ended + float(job["spec"]["ttlSecondsAfterFinished"]) - self._store.clock()
                if left > 0:
                    return left
                self._store.delete(JOBS, *key, propagation="Foreground", uid=job["metadata"]["uid"])
        return None

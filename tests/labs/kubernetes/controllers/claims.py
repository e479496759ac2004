"""Binds persistent volume claims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.labs.kubernetes.controllers.loop import ControlLoop, Key
from tests.labs.kubernetes.objects.resources import PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES, Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

_DEFAULT_CLASSES = ("", "standard")


class ClaimController:
    """Each claim is bound at once, unless its class does not exist; the folder is made by who mounts it."""

    watches: Sequence[Resource] = (PERSISTENT_VOLUME_CLAIMS,)

    def __init__(self, store: ObjectStore, loop: ControlLoop) -> None:
        self._store = store
        self._loop = loop

    def keys(self, resource: Resource, found: Json) -> Iterable[Key]:
        """Yield the claim itself."""
        del resource
        yield found["metadata"]["namespace"], found["metadata"]["name"]

    def reconcile(self, key: Key) -> float | None:
        """Bind it."""
        claim = self._loop.find(PERSISTENT_VOLUME_CLAIMS, key)
        if claim is None or claim.get("status", {}).get("phase") == "Bound":
            return None
        wanted = claim["spec"].get("storageClassName") or ""
        known = wanted in _DEFAULT_CLASSES or self._loop.find(STORAGE_CLASSES, ("", wanted)) is not None
        status: Json = {"phase": "Bound" if known else "Pending"}
        if known:
            status["accessModes"] = claim["spec"].get("accessModes", [])
            status["capacity"] = claim["spec"].get("resources", {}).get("requests", {})
        if claim.get("status", {}).get("phase") != status["phase"]:
            self._store.patch(PERSISTENT_VOLUME_CLAIMS, *key, {"status": status}, subresource="status")
        return None

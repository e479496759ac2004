"""The garbage collector: deletes what the owners of have gone, and finishes deletions in the foreground."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.labs.kubernetes.controllers.loop import ControlLoop, Key
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.resources import EVENTS, Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore


class GarbageCollector:
    """Watches all kinds; a key is the uid of an owner that goes or has gone, under its namespace."""

    def __init__(self, store: ObjectStore, loop: ControlLoop) -> None:
        self._store = store
        self._cache = loop.cache

    @property
    def watches(self) -> Sequence[Resource]:
        """All that is served now, but events."""
        return [resource for resource in self._store.resources if resource.key != EVENTS.key]

    def keys(self, resource: Resource, found: Json) -> Iterable[Key]:
        """Yield the object itself, as an owner, and its owners."""
        del resource
        metadata = found["metadata"]
        yield metadata.get("namespace", ""), metadata["uid"]
        for reference in metadata.get("ownerReferences", ()):
            yield metadata.get("namespace", ""), reference["uid"]

    def reconcile(self, key: Key) -> float | None:
        """Look at an owner and at what it owns."""
        _, uid = key
        owner = self._cache.of_uid(uid)
        dependents = self._cache.owned_by(uid)
        if owner is None:
            for resource, found in dependents:
                self._let_go(resource, found, uid)
            return None
        resource, found = owner
        finalizers = found["metadata"].get("finalizers", [])
        if "deletionTimestamp" not in found["metadata"]:
            return None
        if "orphan" in finalizers:
            for dependent_resource, dependent in dependents:
                self._remove_reference(dependent_resource, dependent, uid)
            self._remove_finalizer(resource, found, "orphan")
        elif "foregroundDeletion" in finalizers:
            self._delete_in_foreground(resource, found, dependents)
        return None

    def _let_go(self, resource: Resource, found: Json, uid: str) -> None:
        """Delete an object whose owner has gone, unless it has another one."""
        others = [entry for entry in found["metadata"]["ownerReferences"] if entry["uid"] != uid]
        if any(self._cache.of_uid(entry["uid"]) for entry in others):
            self._remove_reference(resource, found, uid)
            return
        self._delete(resource, found)

    def _delete(self, resource: Resource, found: Json, propagation: str = "Background") -> None:
        metadata = found["metadata"]
        if "deletionTimestamp" in metadata:
            return
        try:
            namespace = metadata.get("namespace", "")
            self._store.delete(resource, namespace, metadata["name"], propagation=propagation, uid=metadata["uid"])
        except ApiError:
            return  # it has gone by itself

    def _delete_in_foreground(
        self, resource: Resource, owner: Json, dependents: Sequence[tuple[Resource, Json]]
    ) -> None:
        uid = owner["metadata"]["uid"]
        for dependent_resource, found in dependents:
            self._delete(dependent_resource, found, "Foreground")
        if not any(_blocks(found, uid) for _, found in self._cache.owned_by(uid)):
            self._remove_finalizer(resource, owner, "foregroundDeletion")

    def _remove_reference(self, resource: Resource, found: Json, uid: str) -> None:
        metadata = found["metadata"]
        left = [entry for entry in metadata["ownerReferences"] if entry["uid"] != uid]
        patch = {"metadata": {"ownerReferences": left}}
        self._store.patch(resource, metadata.get("namespace", ""), metadata["name"], patch)

    def _remove_finalizer(self, resource: Resource, found: Json, finalizer: str) -> None:
        metadata = found["metadata"]
        left = [name for name in metadata.get("finalizers", []) if name != finalizer]
        patch = {"metadata": {"finalizers": left}}
        self._store.patch(resource, metadata.get("namespace", ""), metadata["name"], patch)


def _blocks(found: Json, uid: str) -> bool:
    references = found["metadata"].get("ownerReferences", ())
    return any(entry["uid"] == uid and entry.get("blockOwnerDeletion") for entry in references)

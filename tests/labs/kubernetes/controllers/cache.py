"""All objects as controllers see them: shared, indexed by uid and owner, always as new as the store."""

from __future__ import annotations

from tests.labs.kubernetes.objects.resources import EVENTS, Resource
from tests.labs.kubernetes.objects.values import Json

_Key = tuple[str, str]


class ObjectCache:
    """Fed by the changes of a store; what it returns is not to be changed."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], dict[_Key, Json]] = {}
        self._by_uid: dict[str, tuple[Resource, Json]] = {}
        self._by_owner: dict[str, set[str]] = {}

    def hear(self, event_type: str, resource: Resource, found: Json) -> None:
        """Take over a change."""
        metadata = found["metadata"]
        objects = self._objects.setdefault(resource.key, {})
        key = (metadata.get("namespace", ""), metadata["name"])
        if event_type == "DELETED":
            objects.pop(key, None)
        else:
            objects[key] = found
        if resource.key != EVENTS.key:
            self._index(event_type, resource, found)

    def _index(self, event_type: str, resource: Resource, found: Json) -> None:
        uid = found["metadata"]["uid"]
        for reference in found["metadata"].get("ownerReferences", ()):
            owned = self._by_owner.setdefault(reference["uid"], set())
            if event_type == "DELETED":
                owned.discard(uid)
            else:
                owned.add(uid)
        if event_type == "DELETED":
            self._by_uid.pop(uid, None)
        else:
            self._by_uid[uid] = (resource, found)

    def objects(self, resource: Resource) -> list[Json]:
        """All objects of a kind."""
        return list(self._objects.get(resource.key, {}).values())

    def find(self, resource: Resource, key: _Key) -> Json | None:
        """Return an object."""
        return self._objects.get(resource.key, {}).get(key)

    def of_uid(self, uid: str) -> tuple[Resource, Json] | None:
        """Return an object, and its kind."""
        return self._by_uid.get(uid)

    def owned_by(self, uid: str) -> list[tuple[Resource, Json]]:
        """All objects that name an owner, and their kinds."""
        found = [self._by_uid.get(item) for item in list(self._by_owner.get(uid, ()))]
        present = [entry for entry in found if entry is not None]
        return [entry for entry in present if _names(entry[1], uid)]


def _names(found: Json, owner: str) -> bool:
    return any(reference["uid"] == owner for reference in found["metadata"].get("ownerReferences", ()))

"""The objects of a cluster, in memory, with their versions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tests.labs.kubernetes.objects import metadata, patches, selectors
from tests.labs.kubernetes.objects.errors import already_exists, conflict, forbidden, not_found
from tests.labs.kubernetes.objects.resources import NAMESPACES, SERVICE_ACCOUNTS, Resource, ResourceTable
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store import namespaces
from tests.labs.kubernetes.store.custom_kinds import CustomKinds
from tests.labs.kubernetes.store.history import Callback, Change, History
from tests.labs.kubernetes.validation.admission import Rules

_FIRST_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


class Admission(Protocol):
    """Sees an object before it is stored: it completes it in place, or refuses it by an ApiError."""

    def admit(self, resource: Resource, found: Json, previous: Json | None, subresource: str) -> None:
        """`previous` is None when it is made."""
        ...


class ObjectStore:
    """All objects of a cluster. Thread-safe; what it returns is the caller's own copy.

    Args:
        clock: Seconds since the epoch, for timestamps.

    Attributes:
        resources: What is served.
        admission: What sees objects before they are stored, in this order.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.resources = ResourceTable()
        self.admission: list[Admission] = [Rules(self)]
        self.clock = clock
        self._lock = threading.RLock()
        self._objects: dict[tuple[str, str], dict[tuple[str, str], Json]] = {}
        self._history = History()
        self.subscribe(CustomKinds(self.resources).changed)
        for name in _FIRST_NAMESPACES:
            self.create(NAMESPACES, "", {"metadata": {"name": name}})

    @property
    def version(self) -> int:
        """The resourceVersion of the last change."""
        return self._history.version

    def create(self, resource: Resource, namespace: str, body: Json, *, dry_run: bool = False) -> Json:
        """Make an object.

        Raises:
            ApiError: 403, 404, 409, 422.
        """
        with self._lock:
            made = metadata.for_create(resource, namespace, body, self.clock())
            self._check_namespace(resource, namespace, made["metadata"]["name"])
            self._admit(resource, made, None, "")
            if self._key(made) in self._of(resource):
                raise already_exists(resource, made["metadata"]["name"])
            stored = self._stored("ADDED", resource, made, None, dry_run=dry_run)
            if resource.key == NAMESPACES.key and not dry_run:  # a controller does it, a moment later
                self.create(SERVICE_ACCOUNTS, made["metadata"]["name"], {"metadata": {"name": "default"}})
            return stored

    def get(self, resource: Resource, namespace: str, name: str) -> Json:
        """Return an object.

        Raises:
            ApiError: 404.
        """
        with self._lock:
            found: Json = metadata.copied(self._found(resource, namespace, name))
            return found

    def list(
        self, resource: Resource, namespace: str | None, label_selector: str = "", field_selector: str = ""
    ) -> tuple[list[Json], str]:
        """Return the objects of a namespace, None: of all, and the version that they are of.

        Raises:
            ApiError: 400: A selector is none.
        """
        found, version = self.shared_list(resource, namespace, label_selector, field_selector)
        return [metadata.copied(item) for item in found], version

    def shared_list(
        self, resource: Resource, namespace: str | None, label_selector: str = "", field_selector: str = ""
    ) -> tuple[Sequence[Json], str]:
        """As `list`, but of the objects themselves, which must not be changed."""
        labels = selectors.label_matches(label_selector)
        fields = selectors.field_matches(resource, field_selector)
        with self._lock:
            items = sorted(self._of(resource).items())
            version = str(self._history.version)
        present = [found for (place, _), found in items if namespace in (None, "", place)]
        return [found for found in present if labels(found) and fields(found)], version

    def replace(
        self, resource: Resource, namespace: str, name: str, body: Json, subresource: str = "", *, dry_run: bool = False
    ) -> Json:
        """Change an object to what is given.

        Raises:
            ApiError: 404, 409, 422.
        """
        with self._lock:
            found = self._found(resource, namespace, name)
            changed = metadata.for_update(resource, found, body, subresource)
            self._admit(resource, changed, found, subresource)
            if changed == found:
                unchanged: Json = metadata.copied(found)
                return unchanged
            if metadata.may_go(changed) and not dry_run:
                return self._removed(resource, changed)
            return self._stored("MODIFIED", resource, changed, found, dry_run=dry_run)

    def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        patch: Any,
        patch_type: str = patches.MERGE_PATCH,
        subresource: str = "",
        *,
        dry_run: bool = False,
        decode: Callable[[Json], Json] = metadata.copied,
    ) -> Json:
        """Change some fields of an object; `decode` reads the outcome first.

        Raises:
            ApiError: 400, 404, 409, 415, 422.
        """
        with self._lock:
            changed = patches.apply(self._found(resource, namespace, name), patch, patch_type)
            return self.replace(resource, namespace, name, decode(changed), subresource, dry_run=dry_run)

    def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        grace_s: int | None = None,
        propagation: str = "Background",
        uid: str = "",
        dry_run: bool = False,
    ) -> Json:
        """Delete an object, or mark it until what keeps it is done.

        Raises:
            ApiError: 404, 409.
        """
        with self._lock:
            found = self._found(resource, namespace, name)
            if uid and uid != found["metadata"]["uid"]:
                raise conflict(resource, name, metadata.another_uid(uid, found))
            marked = metadata.for_delete(resource, found, grace_s, propagation, self.clock())
            if dry_run or marked == found:
                unchanged: Json = metadata.copied(found)
                return unchanged
            if marked is None:
                return self._removed(resource, found)
            stored = self._stored("MODIFIED", resource, marked, found)
            if resource.key == NAMESPACES.key:
                namespaces.delete_content(self, name)
            return stored

    def subscribe(self, callback: Callback) -> None:
        """Have each later change told, in order, in the writer's thread and under the lock."""
        with self._lock:
            self._history.subscribe(callback)

    def unsubscribe(self, callback: Callback) -> None:
        """No longer."""
        with self._lock:
            self._history.unsubscribe(callback)

    def changes_since(self, version: int) -> Sequence[Change]:
        """Return the changes after a version.

        Raises:
            ApiError: 410: They are no longer known.
        """
        with self._lock:
            return self._history.since(version)

    @property
    def oldest_version(self) -> int:
        """The version from which on changes are known."""
        return self._history.oldest

    def compact(self) -> None:
        """Forget all changes so far: who watches from before has to list again."""
        with self._lock:
            self._history.compact()

    def _admit(self, resource: Resource, found: Json, previous: Json | None, subresource: str) -> None:
        for item in self.admission:
            item.admit(resource, found, previous, subresource)

    def _check_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        if not resource.namespaced:
            return
        if self._found(NAMESPACES, "", namespace)["metadata"].get("deletionTimestamp"):
            raise forbidden(resource, name, _terminating(namespace))

    def _of(self, resource: Resource) -> dict[tuple[str, str], Json]:
        return self._objects.setdefault(resource.key, {})

    @staticmethod
    def _key(found: Json) -> tuple[str, str]:
        return found["metadata"].get("namespace", ""), found["metadata"]["name"]

    def _found(self, resource: Resource, namespace: str, name: str) -> Json:
        try:
            return self._of(resource)[(namespace if resource.namespaced else "", name)]
        except KeyError:
            raise not_found(resource, name) from None

    def _removed(self, resource: Resource, found: Json) -> Json:
        last: Json = metadata.copied(found)
        del self._of(resource)[self._key(found)]
        told = self._told("DELETED", resource, last, found)
        namespaces.remove_if_empty(self, found["metadata"].get("namespace", ""))
        return told

    def _stored(
        self, event_type: str, resource: Resource, found: Json, previous: Json | None, *, dry_run: bool = False
    ) -> Json:
        if dry_run:
            return found
        self._of(resource)[self._key(found)] = found
        return self._told(event_type, resource, found, previous)

    def _told(self, event_type: str, resource: Resource, found: Json, previous: Json | None) -> Json:
        self._history.record(event_type, resource, found, previous)
        told: Json = metadata.copied(found)
        return told


def _terminating(namespace: str) -> str:
    return f"unable to create new content in namespace {namespace} because it is being terminated"

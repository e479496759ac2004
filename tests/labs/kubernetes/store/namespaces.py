"""The end of a namespace: all that is in it goes first."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Protocol

from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.resources import NAMESPACES, Resource, ResourceTable
from tests.labs.kubernetes.objects.values import Json


class Objects(Protocol):
    """Store of the objects, as namespaces see it."""

    resources: ResourceTable

    def shared_list(self, resource: Resource, namespace: str | None) -> tuple[Sequence[Json], str]:
        """Return the objects of a namespace; they must not be changed."""
        ...

    def delete(self, resource: Resource, namespace: str, name: str) -> Json:
        """Delete an object."""
        ...

    def replace(self, resource: Resource, namespace: str, name: str, body: Json) -> Json:
        """Change an object."""
        ...


def _namespaced(objects: Objects) -> dict[tuple[str, str], Resource]:
    return {resource.key: resource for resource in objects.resources if resource.namespaced}


def delete_content(objects: Objects, namespace: str) -> None:
    """Delete all that a namespace holds, and the namespace if it is empty."""
    for resource in _namespaced(objects).values():
        for found in list(objects.shared_list(resource, namespace)[0]):
            with contextlib.suppress(ApiError):  # another deletion took it along
                objects.delete(resource, namespace, found["metadata"]["name"])
    remove_if_empty(objects, namespace)


def remove_if_empty(objects: Objects, namespace: str) -> None:
    """Let a namespace go that is being deleted and holds nothing any more."""
    for found in objects.shared_list(NAMESPACES, None)[0]:
        if found["metadata"]["name"] == namespace and "deletionTimestamp" in found["metadata"]:
            held = _namespaced(objects).values()
            if not any(objects.shared_list(resource, namespace)[0] for resource in held):
                objects.replace(NAMESPACES, "", namespace, found | {"spec": {}})
            return

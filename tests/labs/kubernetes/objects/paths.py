"""Meaning of a path of the API."""

from __future__ import annotations

from dataclasses import dataclass

from tests.labs.kubernetes.objects.resources import NAMESPACES, Resource, ResourceTable


@dataclass(frozen=True, slots=True)
class Target:
    """A resource, or one of its objects or subresources.

    Attributes:
        namespace: "" where there is none, or all are meant.
        name: "" for the collection.
    """

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def told(self) -> str:
        """As permissions name it, such as pods/log."""
        return f"{self.resource.plural}/{self.subresource}" if self.subresource else self.resource.plural


def parse(resources: ResourceTable, path: str) -> Target | None:
    """Return what a path names; None: nothing that is served."""
    parts = path.replace("/namespaces//", "/").strip("/").split("/")  # an empty namespace means all of them
    if parts[:2] == ["api", "v1"]:
        return _below(resources, "", "v1", parts[2:])
    if parts[0] == "apis" and len(parts) > 3:
        return _below(resources, parts[1], parts[2], parts[3:])
    return None


def _below(resources: ResourceTable, group: str, version: str, parts: list[str]) -> Target | None:
    if not parts or "" in parts:
        return None
    if parts[0] == "namespaces" and _names_namespace(parts):
        return _namespaced(resources, group, version, parts)
    resource = resources.find(group, version, parts[0])
    if resource is None or (resource.namespaced and len(parts) > 1):
        return None
    return _target(resource, "", parts[1:])


def _names_namespace(parts: list[str]) -> bool:
    return len(parts) > 2 and parts[2] not in NAMESPACES.subresources


def _namespaced(resources: ResourceTable, group: str, version: str, parts: list[str]) -> Target | None:
    resource = resources.find(group, version, parts[2])
    if resource is None or not resource.namespaced:
        return None
    return _target(resource, parts[1], parts[3:])


def _target(resource: Resource, namespace: str, rest: list[str]) -> Target | None:
    if len(rest) > 2:
        return None
    name, subresource = (*rest, "", "")[:2]
    if subresource and subresource not in resource.subresources:
        return None
    return Target(resource, namespace, name, subresource)

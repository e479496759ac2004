"""Kinds that are served, as clients ask for them: one document, or one per group and version."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tests.labs.kubernetes.objects.resources import Resource, ResourceTable
from tests.labs.kubernetes.objects.values import Json

VERSION: Json = {
    "major": "1", "minor": "36", "gitVersion": "v1.36.2", "gitCommit": "", "gitTreeState": "clean",
    "buildDate": "2025-01-01T00:00:00Z", "goVersion": "go1.24", "compiler": "gc", "platform": "linux/amd64",
}  # fmt: skip
REVIEWS = (
    Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False, ()),
    Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False, ()),
)
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_PART_VERBS = {"log": ("get",), "exec": ("create", "get"), "eviction": ("create",)}
_STABILITY = {"alpha": 0, "beta": 1, "": 2}


def served(resources: ResourceTable) -> list[Resource]:
    """All resources, also those that keep no objects."""
    return [*resources, *REVIEWS]


def groups(found: Iterable[Resource]) -> dict[str, list[str]]:
    """Return the versions of each group but the core one, the preferred one first."""
    versions: dict[str, set[str]] = {}
    for resource in found:
        if resource.group:
            versions.setdefault(resource.group, set()).add(resource.version)
    return {group: sorted(names, key=_preference, reverse=True) for group, names in sorted(versions.items())}


def _preference(version: str) -> tuple[int, int, int]:
    parsed = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if not parsed:
        return -1, 0, 0
    return _STABILITY[parsed[2] or ""], int(parsed[1]), int(parsed[3] or 0)


def group(name: str, versions: Sequence[str]) -> Json:
    """Return an APIGroup."""
    told = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": told, "preferredVersion": told[0]}


def group_list(found: Iterable[Resource]) -> Json:
    """Return the answer to /apis."""
    items = [group(name, versions) for name, versions in groups(found).items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": items}


def resource_list(found: Iterable[Resource], api_version: str) -> Json:
    """Return the answer to the path of a group and version."""
    items: list[Json] = []
    for resource in found:
        if resource.api_version == api_version:
            items.append(_resource(resource))
            items.extend(_part(resource, name) for name in resource.subresources)
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": items}


def _resource(resource: Resource) -> Json:
    told: Json = {"name": resource.plural, "singularName": resource.kind.lower(), "namespaced": resource.namespaced}
    told |= {"kind": resource.kind, "verbs": list(_verbs(resource))}
    if resource.short_names:
        told["shortNames"] = list(resource.short_names)
    return told


def _verbs(resource: Resource) -> Sequence[str]:
    return ("create",) if resource in REVIEWS else _VERBS


def _part(resource: Resource, name: str) -> Json:
    kind = {"eviction": "Eviction", "exec": "PodExecOptions"}.get(name, resource.kind)
    verbs = list(_PART_VERBS.get(name, ("get", "patch", "update")))
    plural = f"{resource.plural}/{name}"
    return {"name": plural, "singularName": "", "namespaced": resource.namespaced, "kind": kind, "verbs": verbs}

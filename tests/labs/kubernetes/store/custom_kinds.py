"""Kinds that CustomResourceDefinitions make."""

from __future__ import annotations

from collections.abc import Iterator

from tests.labs.kubernetes.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource, ResourceTable
from tests.labs.kubernetes.objects.values import Json


class CustomKinds:
    """Serves what definitions say, as they come and go."""

    def __init__(self, resources: ResourceTable) -> None:
        self._resources = resources

    def changed(self, event_type: str, resource: Resource, found: Json) -> None:
        """Take a definition that is there, has changed or is gone."""
        if resource.key != CUSTOM_RESOURCE_DEFINITIONS.key:
            return
        for kind, schema in _kinds(found):
            if event_type == "DELETED":
                self._resources.remove(kind)
            else:
                self._resources.add(kind, schema)


def _kinds(definition: Json) -> Iterator[tuple[Resource, Json | None]]:
    spec = definition["spec"]
    names = spec["names"]
    for version in spec["versions"]:
        if version.get("served", True):
            parts = tuple(name for name in ("status", "scale") if name in (version.get("subresources") or {}))
            kind = Resource(
                spec["group"], version["name"], names["plural"], names["kind"], spec["scope"] == "Namespaced", parts,
                tuple(names.get("shortNames") or ()),
            )  # fmt: skip
            yield kind, (version.get("schema") or {}).get("openAPIV3Schema")

"""What the API server of a cluster has to tell before a trial can be made into one of its objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.core.json import JsonObject


class Served(Protocol):
    """The kinds of objects that a server has."""

    def has(self, object_type: ObjectType) -> bool:
        """Whether it serves this kind in this version."""
        ...

    def schema(self, object_type: ObjectType) -> JsonObject:
        """The OpenAPI schema of the objects of a kind; empty where it tells none."""
        ...

    def objects(self, object_type: ObjectType, namespace: str) -> Sequence[JsonObject]:
        """The objects of a kind in a namespace, in all of the cluster for ""; none where they may not be listed."""
        ...


@dataclass(frozen=True, slots=True)
class TrialNeeds:
    """What decides which kind of object a trial can be.

    Attributes:
        launcher: As `TrialSpec.launcher`.
        nodes: How many pods it has.
        elastic: Whether it goes on without some of them.
        namespace: Where its object is made.
    """

    launcher: str = "env"
    nodes: int = 1
    elastic: bool = False
    namespace: str = "default"


def properties(schema: JsonObject, *path: str) -> JsonObject:
    """The properties of a part of a schema, each step of the path a property or, where that is an array, its items."""
    found: object = schema
    for name in path:
        found = _inner(found).get(name)
    return _inner(found)


def _inner(schema: object) -> JsonObject:
    """The properties of a schema or of the items of an array."""
    if not isinstance(schema, dict):
        return {}
    items = schema.get("items")
    inner = items if isinstance(items, dict) else schema
    found = inner.get("properties")
    return found if isinstance(found, dict) else {}

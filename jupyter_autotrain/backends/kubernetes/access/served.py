"""The kinds that the API server of a cluster serves: asked once in a while, since a kind is chosen for every trial."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.objects.fields import items, part, text
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.errors import BackendError

Get = Callable[[str], JsonObject]  # path to the answer; BackendError where there is none
_List = Callable[[ObjectType, "str | None"], Sequence[JsonObject]]
T = TypeVar("T")
_KNOWN_S = 60.0
_KINDS_KNOWN_S = 600.0  # an operator is rarely installed
_NOT_FOUND = 404
_UNREADABLE = (403, _NOT_FOUND)
_KIND = "x-kubernetes-group-version-kind"


@dataclass(frozen=True, slots=True)
class TrialNeeds:
    """The needs of a trial that decide which kind of object it can be.

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


class ServedCluster:
    """The kinds of objects that a cluster has. Thread-safe. One that does not answer raises a `BackendError`.

    Args:
        get: Asks its API server.
        list_objects: Lists the objects of a kind in a namespace, in all of the cluster for None.
    """

    def __init__(self, get: Get, list_objects: _List) -> None:
        self._get = get
        self._list = list_objects
        self._lock = threading.Lock()
        self._known: dict[tuple[object, ...], tuple[float, object]] = {}

    def answers(self) -> bool:
        """Return whether there is a cluster that can be asked."""
        try:
            self._remembered(("version",), lambda: self._get("/version"))
        except BackendError:
            return False
        return True

    def has(self, object_type: ObjectType) -> bool:
        """Return whether it serves this kind in this version."""
        return self._remembered(("kind", object_type), lambda: serves(self._get, object_type), _KINDS_KNOWN_S)

    def schema(self, object_type: ObjectType) -> JsonObject:
        """Return the OpenAPI schema of the objects of a kind; empty where it serves none."""
        return self._remembered(("schema", object_type), lambda: schema_of(self._get, object_type), _KINDS_KNOWN_S)

    def objects(self, object_type: ObjectType, namespace: str) -> Sequence[JsonObject]:
        """Return the objects of a kind in a namespace, in all of the cluster for ""; none where they are hidden."""
        return self._remembered((object_type, namespace), lambda: self._listed(object_type, namespace))

    def _listed(self, object_type: ObjectType, namespace: str) -> Sequence[JsonObject]:
        try:
            return self._list(object_type, namespace or None)
        except ApiRefusedError as error:
            if error.code in _UNREADABLE:
                return ()
            raise

    def _remembered(self, key: tuple[object, ...], ask: Callable[[], T], most_s: float = _KNOWN_S) -> T:
        with self._lock:
            known = self._known.get(key)
        if known is not None and time.monotonic() - known[0] < most_s:
            return known[1]  # type: ignore[return-value] # what is kept under a key is of its kind
        found = ask()
        with self._lock:
            self._known[key] = (time.monotonic(), found)
        return found


def serves(get: Get, object_type: ObjectType) -> bool:
    """Return whether a server has a kind in this version."""
    found = _if_there(get, _root(object_type))
    return any(one.get("kind") == object_type.kind for one in items(found, "resources"))


def not_served(get: Get, object_type: ObjectType) -> str:
    """Return what is told of a kind that a server does not have in this version."""
    group = object_type.group
    found = items(_if_there(get, f"/apis/{group}"), "versions") if group else []
    others = [text(one, "groupVersion") for one in found if one.get("version") != object_type.version]
    told = f"{object_type.kind}: {object_type.api_version} is not served"
    return f"{told}; expected {' or '.join(sorted(others))}" if others else f"{told}; is it installed there?"


def schema_of(get: Get, object_type: ObjectType) -> JsonObject:
    """Return the OpenAPI schema of a kind; empty where a server tells none. Before 1.24 there is version 2 alone."""
    index = _if_there(get, "/openapi/v3")
    if index:
        address = text(index, "paths", _root(object_type).removeprefix("/"), "serverRelativeURL")
        schemas = part(get(address), "components", "schemas") if address else {}
    else:
        schemas = part(_if_there(get, "/openapi/v2"), "definitions")
    own = {"group": object_type.group, "version": object_type.version, "kind": object_type.kind}
    for schema in schemas.values():
        if isinstance(schema, dict) and own in items(schema, _KIND):
            return schema
    return {}


def _root(object_type: ObjectType) -> str:
    return f"/apis/{object_type.api_version}" if object_type.group else f"/api/{object_type.version}"


def _if_there(get: Get, path: str) -> JsonObject:
    try:
        return get(path)
    except ApiRefusedError as error:
        if error.code != _NOT_FOUND:
            raise
        return {}


def properties(schema: JsonObject, *path: str) -> JsonObject:
    """Return the properties of a part of a schema, each step a property or, where that is an array, its items."""
    found: object = schema
    for name in path:
        found = _inner(found).get(name)
    return _inner(found)


def _inner(schema: object) -> JsonObject:
    """Return the properties of a schema or of the items of an array."""
    if not isinstance(schema, dict):
        return {}
    array = schema.get("items")
    return part(array if isinstance(array, dict) else schema, "properties")

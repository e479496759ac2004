"""The schemas that a cluster serves, fetched once per cluster and version and kept in the home."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast
from urllib.parse import parse_qsl, urlsplit

from jupyter_autotrain.backends.kubernetes.access.object_schema import ObjectSchema
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.core.matching import closest_match

Get = Callable[[str, Mapping[str, str]], JsonObject]  # path and query to the answer; BackendError where refused
_KINDS = "x-kubernetes-group-version-kind"
_KNOWN_S = 600.0  # of version 2, whose address does not change with its content


class ServedSchemas:
    """Of one cluster.

    Args:
        get: Asks its API server.
        is_missing: Whether an error of `get` says that there is no such path.
        cluster: Its address: what is kept is kept per cluster.
        folder: Where it is kept; None: only as long as this object lives.
    """

    def __init__(
        self, get: Get, is_missing: Callable[[Exception], bool], cluster: str, folder: Path | None = None
    ) -> None:
        self._get = get
        self._is_missing = is_missing
        self._cluster = cluster
        self._folder = folder
        self._index: Mapping[str, str] | None = None
        self._known: dict[ObjectType, ObjectSchema | None] = {}

    def faults(self, manifest: JsonObject) -> list[str]:
        """All that the cluster would not take of a manifest, a line each; also that it does not serve its kind.

        Raises:
            BackendError: The cluster does not answer, or refuses to say.
        """
        kind = str(manifest.get("kind"))
        group, _, version = str(manifest.get("apiVersion")).rpartition("/")
        schema = self.schema(ObjectType(group, version, "", kind))
        if schema is None:
            return [self._not_served(kind, group, version)]
        return [f"{kind} {fault}" for fault in schema.faults(manifest)]

    def schema(self, object_type: ObjectType) -> ObjectSchema | None:
        """The schema of a kind; None where the cluster does not serve it.

        Raises:
            BackendError: The cluster does not answer, or refuses to say.
        """
        key = ObjectType(object_type.group, object_type.version, "", object_type.kind)
        if key not in self._known:
            self._known[key] = self._found(key)
        return self._known[key]

    def groups(self) -> list[str]:
        """What is served, as "group/version"; the core group has no group.

        Raises:
            BackendError: The cluster does not answer, or refuses to say.
        """
        index = self._paths()
        if index is None:
            return [found.api_version for found in _types_of(self._document_2())]
        return [path.removeprefix("apis/").removeprefix("api/") for path in index]

    def _not_served(self, kind: str, group: str, version: str) -> str:
        wanted = f"{group}/{version}" if group else version
        others = [name for name in self.groups() if group and name.startswith(f"{group}/") and name != wanted]
        if others:
            return f"{kind}: {wanted} is not served; expected {' or '.join(sorted(others))}"
        near = closest_match(wanted, self.groups())
        return f"{kind}: {wanted} is not served; " + (f"did you mean {near!r}?" if near else "is it installed there?")

    def _paths(self) -> Mapping[str, str] | None:
        """The documents of version 3 by group and version; None where the cluster has version 2 only."""
        if self._index is None:
            try:
                found = cast("Mapping[str, JsonObject]", self._get("/openapi/v3", {})["paths"])
            except Exception as error:
                if self._is_missing(error):
                    return None
                raise
            self._index = {path: str(entry["serverRelativeURL"]) for path, entry in found.items()}
        return self._index

    def _found(self, key: ObjectType) -> ObjectSchema | None:
        index = self._paths()
        if index is None:
            address = "/openapi/v2"
        else:
            path = f"apis/{key.api_version}" if key.group else f"api/{key.version}"
            if path not in index:
                return None
            address = index[path]
        name = f"{key.kind}-{hashlib.sha256(f'{self._cluster} {address} {key}'.encode()).hexdigest()[:24]}"
        kept = self._kept(name, math.inf if index is not None else _KNOWN_S)
        if kept is not None:
            return kept
        definitions = self._document_2() if index is None else self._document_3(address)
        found = _schema_of(key, definitions)
        if found is not None:
            self._keep(name, found)
        return found

    def _document_3(self, address: str) -> Mapping[str, JsonObject]:
        parts = urlsplit(address)
        document = self._get(parts.path, dict(parse_qsl(parts.query)))
        components = cast("JsonObject", document.get("components") or {})
        return cast("Mapping[str, JsonObject]", components.get("schemas") or {})

    def _document_2(self) -> Mapping[str, JsonObject]:
        return cast("Mapping[str, JsonObject]", self._get("/openapi/v2", {})["definitions"])

    def _kept(self, name: str, most_s: float) -> ObjectSchema | None:
        if self._folder is None:
            return None
        path = self._folder / name
        try:
            if not 0.0 <= time.time() - path.stat().st_mtime < most_s:
                return None
            found = json.loads(path.read_bytes())
            return ObjectSchema(found["root"], found["definitions"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _keep(self, name: str, schema: ObjectSchema) -> None:
        if self._folder is None or not self._folder.parent.exists():
            return
        with suppress(OSError):  # then it is fetched again
            self._folder.mkdir(mode=0o700, exist_ok=True)
            content = json.dumps({"root": schema.root, "definitions": dict(schema.definitions)})
            wire.write_atomically(str(self._folder / name), content.encode(), sync=False)


def _types_of(definitions: Mapping[str, JsonObject]) -> Iterator[ObjectType]:
    for schema in definitions.values():
        for kind in cast("Sequence[JsonObject]", schema.get(_KINDS) or ()):
            yield ObjectType(str(kind.get("group") or ""), str(kind.get("version")), "", str(kind.get("kind")))


def _schema_of(key: ObjectType, definitions: Mapping[str, JsonObject]) -> ObjectSchema | None:
    """The schema of a kind, with only those definitions that it refers to."""
    for schema in definitions.values():
        if key in set(_types_of({"": schema})):
            needed: dict[str, JsonObject] = {}
            _collect(schema, definitions, needed)
            return ObjectSchema(schema, needed)
    return None


def _collect(value: JsonValue, definitions: Mapping[str, JsonObject], needed: dict[str, JsonObject]) -> None:
    """Add what a schema refers to, and what that refers to."""
    if isinstance(value, Mapping):
        name = str(value.get("$ref") or "").rpartition("/")[2]
        if name in definitions and name not in needed:
            needed[name] = definitions[name]
            _collect(definitions[name], definitions, needed)
        for inner in value.values():
            _collect(inner, definitions, needed)
    elif isinstance(value, list):
        for inner in value:
            _collect(inner, definitions, needed)

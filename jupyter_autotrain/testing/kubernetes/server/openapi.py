"""The schemas of what is served, as OpenAPI documents of version 3 and 2."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from jupyter_autotrain.testing.kubernetes.objects.resources import Resource, ResourceTable
from jupyter_autotrain.testing.kubernetes.objects.values import Json
from jupyter_autotrain.testing.kubernetes.server.discovery import VERSION
from jupyter_autotrain.testing.kubernetes.validation.schemas import QUANTITY, REF, Schemas

_REF_2 = "#/definitions/"
_KINDS = "x-kubernetes-group-version-kind"


class OpenApi:
    """Documents of what is served now."""

    def __init__(self, resources: ResourceTable) -> None:
        self._resources = resources
        self._schemas = Schemas(resources)

    def index(self) -> Json:
        """The documents of version 3; their addresses change with their content."""
        found: Json = {}
        for version in sorted({resource.api_version for resource in self._resources}):
            path = f"apis/{version}" if "/" in version else f"api/{version}"
            content = json.dumps(self.document(version), sort_keys=True).encode()
            digest = hashlib.sha256(content).hexdigest().upper()
            found[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
        return {"paths": found}

    def document(self, api_version: str) -> Json:
        """The document of a group and version, of version 3; without schemas where it is not served."""
        members = [item for item in self._resources if item.api_version == api_version]
        info = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
        paths = {_path(resource): {"get": {"x-kubernetes-action": "list"}} for resource in members}
        schemas = self._schemas_of(members)
        return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}

    def document_2(self) -> Json:
        """Everything in one document of version 2."""
        schemas = self._schemas_of(list(self._resources))
        info = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
        definitions = {name: _as_version_2(schema) for name, schema in schemas.items()}
        definitions[QUANTITY] = {"type": "string"}
        return {"swagger": "2.0", "info": info, "paths": {}, "definitions": definitions}

    def _schemas_of(self, members: list[Resource]) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for resource in members:
            schema = self._with_full_names(self._schemas.of(resource))
            kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
            found[self._schemas.name(resource)] = schema | {_KINDS: [kind]}
            self._collect(schema, found)
        return dict(sorted(found.items()))

    def _with_full_names(self, schema: Any) -> Any:  # noqa: ANN401 (JSON values)
        if isinstance(schema, list):
            return [self._with_full_names(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        found = {key: self._with_full_names(value) for key, value in schema.items()}
        if isinstance(found.get("$ref"), str):
            found["$ref"] = REF + self._schemas.full_name(found["$ref"].removeprefix(REF))
        return found

    def _collect(self, schema: Any, found: dict[str, Json]) -> None:  # noqa: ANN401 (a JSON value)
        if isinstance(schema, list):
            for item in schema:
                self._collect(item, found)
        elif isinstance(schema, dict):
            reference = schema.get("$ref")  # of a property of this name it is no text
            name = reference.removeprefix(REF) if isinstance(reference, str) else ""
            if name and name not in found:
                found[name] = self._schemas.components[name]
                self._collect(found[name], found)
            for item in schema.values():
                self._collect(item, found)


def _path(resource: Resource) -> str:
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    return f"{root}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"


def _as_version_2(schema: Any) -> Any:  # noqa: ANN401 (JSON values)
    if isinstance(schema, list):
        return [_as_version_2(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": "string", "format": "int-or-string"}
    found = {key: _as_version_2(value) for key, value in schema.items()}
    if isinstance(found.get("$ref"), str):
        found["$ref"] = found["$ref"].replace(REF, _REF_2)
    return found

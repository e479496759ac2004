"""The schemas of what is served: those of built-in kinds are made from the models of the official client."""

from __future__ import annotations

import functools
from typing import Any

from tests.labs.kubernetes.objects.resources import Resource, ResourceTable
from tests.labs.kubernetes.objects.values import Json

REF = "#/components/schemas/"
_META = (
    "ObjectMeta", "ListMeta", "OwnerReference", "ManagedFieldsEntry", "LabelSelector", "LabelSelectorRequirement",
    "Status", "StatusCause", "StatusDetails", "DeleteOptions", "Preconditions", "Condition",
)  # fmt: skip
_MODELS = {"Event": "CoreV1Event"}  # other models are named V1 and the kind
_QUANTITIES = (
    "limits", "requests", "capacity", "allocatable", "hard", "used", "overhead", "sizeLimit", "divisor", "default",
    "defaultRequest", "max", "min", "maxLimitRequestRatio", "allocatedResources",
)  # fmt: skip
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_BASIC: dict[str, Json] = {QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]}}


@functools.cache
def built_in(resources: tuple[Resource, ...]) -> dict[str, Json]:
    """Return the schemas of built-in kinds and of all that they hold, by the names that a server gives them."""
    from pydantic.json_schema import models_json_schema

    from kubernetes import client

    models = [getattr(client, _MODELS.get(item.kind, f"V1{item.kind}")) for item in resources]
    _, found = models_json_schema([(model, "validation") for model in models], ref_template="{model}")
    groups = {_MODELS.get(item.kind, f"V1{item.kind}"): item.group for item in resources}
    names = {model: _served_name(model, groups.get(model, "")) for model in found["$defs"]}
    return _BASIC | {names[model]: _object(schema, names) for model, schema in found["$defs"].items()}


def _served_name(model: str, group: str) -> str:
    kind = model.removeprefix("Core").removeprefix("V1")
    if kind in _META:
        return f"io.k8s.apimachinery.pkg.apis.meta.v1.{kind}"
    short = group.split(".", maxsplit=1)[0] or ("batch" if kind.startswith("Job") else "core")
    return f"io.k8s.api.{short}.v1.{kind}"


def _object(schema: Json, names: dict[str, str]) -> Json:
    found: Json = {"type": "object", "description": schema.get("description", "").split("\n")[0]}
    if "properties" in schema:
        properties = schema["properties"].items()
        found["properties"] = {name: _property(name, item, names) for name, item in properties}
    if schema.get("required"):
        found["required"] = list(schema["required"])
    return found


def _property(name: str, schema: Json, names: dict[str, str]) -> Json:
    found = _value(schema, names)
    if name in _QUANTITIES and found.get("type") == "object":
        found["additionalProperties"] = {"$ref": REF + QUANTITY}
    elif name in _QUANTITIES and found.get("type") == "string":
        return {"$ref": REF + QUANTITY}
    return found


def _value(schema: Any, names: dict[str, str]) -> Json:
    if schema is True:
        return {"x-kubernetes-preserve-unknown-fields": True}
    if "$ref" in schema:
        return {"$ref": REF + names[schema["$ref"]]}
    if "anyOf" in schema:
        return _one_of([item for item in schema["anyOf"] if item.get("type") != "null"], names)
    found: Json = {key: schema[key] for key in ("type", "format") if key in schema}
    if "items" in schema:
        found["items"] = _value(schema["items"], names)
    if "additionalProperties" in schema:
        found["additionalProperties"] = _value(schema["additionalProperties"], names)
    return found or {"x-kubernetes-preserve-unknown-fields": True}


def _one_of(choices: list[Json], names: dict[str, str]) -> Json:
    if len(choices) == 1:
        return _value(choices[0], names)
    types = {item.get("type") for item in choices}
    if types == {"integer", "string"}:
        return {
            "format": "int-or-string",
            "x-kubernetes-int-or-string": True,
            "oneOf": [{"type": "integer"}, {"type": "string"}],
        }
    if types == {"string"}:
        return {"type": "string", "format": "byte"}
    return {"x-kubernetes-preserve-unknown-fields": True}


class Schemas:
    """The schemas of all that is served now."""

    def __init__(self, resources: ResourceTable) -> None:
        self._resources = resources

    @property
    def components(self) -> dict[str, Json]:
        """Return those of built-in kinds, by name."""
        return built_in(self._resources.built_in)

    def of(self, resource: Resource) -> Json:
        """Return the schema of the objects of a resource."""
        custom = self._resources.schema(resource)
        if custom is None:
            return self.components[self.name(resource)]
        properties = dict(custom.get("properties", {}))
        text = {"type": "string"}
        properties |= {"apiVersion": text, "kind": text, "metadata": {"$ref": REF + OBJECT_META}}
        return custom | {"type": "object", "properties": properties}

    def name(self, resource: Resource) -> str:
        """Return the name of the schema of a resource."""
        if self._resources.schema(resource) is None:
            return _served_name(_MODELS.get(resource.kind, f"V1{resource.kind}"), resource.group)
        reversed_group = ".".join(reversed(resource.group.split(".")))
        return f"{reversed_group}.{resource.version}.{resource.kind}"

    def resolved(self, schema: Json) -> Json:
        """Return a schema itself where it refers to another; a kind's short name will do, such as PodTemplateSpec."""
        while "$ref" in schema:
            schema = self.components[self.full_name(schema["$ref"].removeprefix(REF))]
        return schema

    def full_name(self, name: str) -> str:
        """Return the name that a server gives the schema of a built-in kind.

        Raises:
            KeyError: There is none.
        """
        if name in self.components:
            return name
        for prefix in ("io.k8s.api.core.v1.", "io.k8s.apimachinery.pkg.apis.meta.v1.", "io.k8s.api.batch.v1."):
            if prefix + name in self.components:
                return prefix + name
        raise KeyError(f"{name}: no schema of the double; those of built-in kinds can be referred to")

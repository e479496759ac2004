"""The OpenAPI description, made from the same models that check the requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.server.endpoint import Endpoint

_PROBLEM: Final[JsonObject] = {
    "description": "What was found, what was expected, what to do next",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_PROBLEM_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "expected", "action"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "expected": {"type": "string"},
        "action": {"type": "string"},
    },
}
_FAILURES: Final = (
    HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)  # fmt: skip


def document(endpoints: Iterable[Endpoint[Any]], version: str, base_url: str) -> JsonObject:
    """Return the description of the operations below a base URL."""
    paths: dict[str, dict[str, JsonValue]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {"title": "jupyter_autotrain", "version": version},
        "servers": [{"url": base_url}],
        "paths": paths,
        "components": {"schemas": {"Problem": _PROBLEM_SCHEMA}},
    }


def _operation(endpoint: Endpoint[Any]) -> JsonObject:
    schema = endpoint.model.model_json_schema()
    properties: Mapping[str, JsonObject] = schema.get("properties", {})
    in_path = endpoint.path_names
    others = {name: value for name, value in properties.items() if name not in in_path}
    required = [name for name in schema.get("required", []) if name in others]
    parameters = [_parameter(name, properties[name], "path", required=True) for name in in_path]
    operation: dict[str, JsonValue] = {
        "summary": endpoint.summary,
        "operationId": f"{endpoint.method.lower()}{endpoint.path.replace('/', '_').replace('{', '').replace('}', '')}",
        "responses": _responses(endpoint),
    }
    if endpoint.has_body:
        body: JsonObject = {"type": "object", "properties": others, "required": required, "additionalProperties": False}
        operation["requestBody"] = {"required": bool(required), "content": {"application/json": {"schema": body}}}
    else:
        parameters += [_parameter(name, others[name], "query", required=name in required) for name in others]
    operation["parameters"] = parameters
    return operation


def _parameter(name: str, schema: JsonObject, place: str, *, required: bool) -> JsonValue:
    options = schema.get("anyOf")
    if isinstance(options, list):  # a query leaves a parameter out instead of saying null
        schema = next(option for option in options if option != {"type": "null"})
    return {"name": name, "in": place, "required": required, "schema": schema}


def _responses(endpoint: Endpoint[Any]) -> JsonObject:
    members: JsonObject = {name: {"type": kind} for name, kind in endpoint.returns.items()}
    schema: JsonObject = {"type": "object", "required": [*endpoint.returns], "properties": members}
    content: JsonObject = {"application/json": {"schema": schema}}
    if endpoint.content_types:
        content = {kind: {} for kind in endpoint.content_types}
    answered: JsonObject = {"description": endpoint.summary, "content": content}
    return {str(int(endpoint.status)): answered} | {str(int(status)): _PROBLEM for status in _FAILURES}

"""One operation of the API: its path, the model of what is asked, and the function that answers.

The OpenAPI description is made from the same models that check the requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, BinaryIO, Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.server.context import ServerContext

Method = Literal["GET", "POST", "PATCH", "DELETE"]
WRITTEN_BY_A_TRIAL: Final[Mapping[str, str]] = MappingProxyType(
    {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
)
"""Headers of what a trial wrote: where a browser is led to it as a page, nothing in it runs or loads."""

_PLACE: Final = re.compile(r"\{(\w+)\}")


class Asked(BaseModel):
    """The parameters of a request: of its path and query, or of its path and body. Nothing else is taken."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ExperimentAsked(Asked):
    """A request about one experiment."""

    experiment: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="The id of the experiment.")


class TrialAsked(ExperimentAsked):
    """A request about one trial."""

    trial: int = Field(ge=1, le=10**9, description="The number of the trial.")


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: `content` is JSON, or bytes of the given type; a `file` is sent after it."""

    content: JsonValue | bytes
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    file: BinaryIO | None = None


AskedT = TypeVar("AskedT", bound=Asked)


@dataclass(frozen=True, slots=True)
class Endpoint(Generic[AskedT]):
    """One operation.

    Attributes:
        method: The HTTP method.
        path: The path below the API, with `{places}` for fields of the model.
        resource: What the authorizer is asked about.
        summary: What it does, in one line.
        model: What is asked; fields that the path does not name are in the query, or in the body where there is one.
        run: Answers; called in a thread, so it may read the store.
        returns: The members of the JSON object that it gives, with their JSON types.
        content_types: Of its answer, where that is no JSON.
        status: Of its answer where nothing fails.
        is_slow: Whether it may ask other machines; then it keeps no other request waiting.
        is_private: Whether only those who may write may read it.
    """

    method: Method
    path: str
    resource: str
    summary: str
    model: type[AskedT]
    run: Callable[[ServerContext, AskedT], Answer]
    returns: Mapping[str, str] = field(default_factory=dict)
    content_types: tuple[str, ...] = ()
    status: int = 200
    is_slow: bool = False
    is_private: bool = False

    @property
    def action(self) -> str:
        """The action that the authorizer is asked about: `read` or `write`."""
        return "read" if self.method == "GET" and not self.is_private else "write"

    @property
    def has_body(self) -> bool:
        """True when the body holds the members that the path does not name."""
        return self.method in {"POST", "PATCH"}

    @property
    def path_names(self) -> list[str]:
        """The fields of the model that the path names."""
        return _PLACE.findall(self.path)

    def read(self, in_path: Mapping[str, str], others: Mapping[str, Any]) -> AskedT:
        """Return the request, checked.

        Raises:
            ValidationError: It is not as the model says; names all faults.
        """
        if self.has_body:
            return self.model.model_validate({**others, **in_path}, strict=True)
        return self.model.model_validate_strings({**others, **in_path})


def path_pattern(path: str) -> str:
    """Return the path as a regular expression; the model checks the text at a place."""
    return _PLACE.sub(r"(?P<\1>[^/]+)", path)


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

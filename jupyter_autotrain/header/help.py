"""The schema's account of itself: the keys, the text of `help KEY`, and the published JSON Schema.

A schema knows the types of backends that there are, and what may stand inside `backend:`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, create_model
from pydantic_core import PydanticUndefined

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.header.backend_models import (
    BackendForms,
    BackendTypes,
    NamedBackend,
    backend_field,
    base_type,
    inline_model,
    section_model,
)
from jupyter_autotrain.header.distributions import PARAMETERS
from jupyter_autotrain.header.document import Fault, PlainScalar, combined_error, expected_instead, resolve
from jupyter_autotrain.header.schema import Header
from jupyter_autotrain.header.value_faults import keys_of


@cache
def with_backend_types(types: BackendTypes) -> type[Header]:
    """Return the header's schema with the types of backends: their profiles, and a section for each that has options.

    Args:
        types: Name of each type, and the model of its options.
    """
    fields: dict[str, Any] = {}
    for name, options in types:
        model = section_model(name, options)
        if model.model_fields:
            fields[name] = (model | None, _section_field(model))
    sections = tuple(fields)
    fields["backend"] = (Annotated[Any, BackendForms(types)], backend_field())
    extended = create_model("Header", __base__=Header, __doc__=Header.__doc__, **fields)
    extended.backend_types = types
    extended.backend_sections = sections
    return extended


def _section_field(model: type[BaseModel]) -> Any:  # noqa: ANN401 - pydantic's field is typed so
    examples = [f"{{{name}: {field.examples[0]}}}" for name, field in model.model_fields.items() if field.examples]
    description = (model.__doc__ or "").strip().partition("\n")[0]
    return Field(default=None, description=description, examples=examples[:1])


_TYPE = re.compile(r"\btype\s*:\s*['\"]?([\w.-]+)")
_BACKEND = re.compile(r"\s*(?:- )?backend\s*:")


def backend_keys(path: Sequence[str], rows: Sequence[str], schema: type[Header]) -> dict[str, str]:
    """Return the keys of the mapping around the cursor, each with what it means: those of its type, once it has one.

    Args:
        path: The keys around the cursor, beginning with `backend`.
        rows: The header up to the cursor.
        schema: It knows the types of backends.
    """
    models = dict(schema.backend_types)
    begun = next((number for number in reversed(range(len(rows))) if _BACKEND.match(rows[number])), 0)
    types = _TYPE.findall("\n".join(rows[begun:]))
    if types and types[-1] in models:
        return described_keys(keys_of(path[1:], inline_model(types[-1], models[types[-1]])))
    if len(path) > 1:
        return {}
    return {"type": "What kind of backend it is.", **described_keys(NamedBackend.model_fields)}


def described_keys(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the keys of a model's fields, each with what it means."""
    return {name: str(field.description or "") for name, field in fields.items()}


def backend_values(key: str, backends: Sequence[str], schema: type[Header]) -> list[str]:
    """Return the values of a key inside `backend:` that can be listed.

    Args:
        key: With dots, beginning with `backend`.
        backends: Names of backends.
        schema: It knows the types of backends.
    """
    if key in {"backend", "backend.name"}:
        return list(backends)
    return [name for name, _ in schema.backend_types] if key == "backend.type" else []


def help_lines(schema: type[Header]) -> list[str]:
    """Return the keys of `backend:`, and for each type those of its profiles."""
    lines = key_lines("  backend.", NamedBackend.model_fields)
    for type_name, options in schema.backend_types:
        lines += _type_lines(type_name, options, schema.backend_types)
    return lines


def key_lines(before: str, fields: Mapping[str, Any]) -> list[str]:
    """Return a line for each field, with what it means; `before` stands before its key."""
    return [f"{before}{name}: {field.description}" for name, field in fields.items()]


def _type_lines(type_name: str, options: type[BaseModel], types: BackendTypes) -> list[str]:
    base, inherited = base_type(options, types)
    own = {name: field for name, field in options.model_fields.items() if name not in inherited}
    if not own and not base:
        return []
    title = f" as type {base}" if base else ""
    return [f"  type {type_name}:{title}{', and' if own and base else ''}", *key_lines("    ", own)]


KEY_GROUPS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "common": ("name", "objective", "search", "trials", "concurrency", "backend", "resources"),
        "search": ("tuner", "constraints", "early_stop", "budget", "timeout", "retries", "seed", "start_from"),
        "code and data": ("setup", "ship", "data", "returns", "fetch_limit", "environment", "env", "pass_env"),
        "secrets": ("secrets", "not_secrets"),
        "clients that train together": ("mode", "clients", "federated"),
        "several processes": ("launcher", "elastic", "parallel", "stall"),
        "around a run": ("autolog", "post_mortem", "priority", "weight", "on_rerun", "hooks", "notify", "track"),
    }
)
"""The keys of the header by what they are about, those that most cells have first; sections of backends apart."""

_URL = "https://json-schema.org/draft/2020-12/schema"


def known_keys(schema: type[Header] = Header) -> tuple[str, ...]:
    """Return the keys of the header, nested ones with dots, in the order of the schema."""
    return _keys((), schema)


def _keys(section: tuple[str, ...], schema: type[Header]) -> tuple[str, ...]:
    found: tuple[str, ...] = ()
    for name in keys_of(section, schema):
        found += (".".join((*section, name)), *_keys((*section, name), schema))
    return found


def field_of(key: str, schema: type[Header] = Header) -> Any:  # noqa: ANN401 - pydantic's description of a field
    """Return the schema's field of a dotted key, or None."""
    *section, name = key.split(".")
    return keys_of(section, schema).get(name)


@cache
def json_schema(schema: type[Header] = Header) -> JsonObject:
    """Return the header as JSON Schema (draft 2020-12)."""
    described = schema.model_json_schema(mode="validation")
    return {"$schema": _URL, **described, "title": "jupyter_autotrain header"}


def options_of(key: str, schema: type[Header] = Header) -> tuple[str, ...]:
    """Return the values that a key can take, where they can be listed."""
    if field_of(key, schema) is None:
        return ()
    described = _described(key, schema)
    for option in described.get("anyOf", [described]):
        if "enum" in option:
            return tuple(option["enum"])
        if option.get("type") == "boolean":
            return ("true", "false")
    return ()


def _described(key: str, schema: type[Header]) -> dict[str, Any]:
    whole: Any = json_schema(schema)
    found: dict[str, Any] = whole
    for part in key.split("."):
        properties = _follow(found, whole["$defs"]).get("properties", {})
        found = properties.get(part, {})
    return found


def _follow(described: dict[str, Any], definitions: dict[str, dict[str, Any]]) -> dict[str, Any]:
    options = [described, *described.get("anyOf", [])]
    reference = next((option["$ref"] for option in options if "$ref" in option), "")
    return definitions[reference.rpartition("/")[2]] if reference else described


def default_of(key: str, schema: type[Header] = Header) -> str:
    """Return the default of a key, as one would write it."""
    field = field_of(key, schema)
    value = field.get_default(call_default_factory=True) if field is not None else None
    if value is PydanticUndefined or value is None or value in ((), {}) or keys_of(key.split("."), schema):
        return "none"
    return written(value)


def written(value: object) -> str:
    """Return a value as one would write it in a header."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, PlainScalar) else str(resolve(value))


def help_text(key: str, schema: type[Header] = Header) -> str:
    """Return what a key means, takes, defaults to, and an example.

    Raises:
        HeaderError: When there is no such key.
    """
    field = field_of(key, schema)
    if field is None:
        raise combined_error(
            [Fault(f"unknown key {key!r}", expected_instead(key, known_keys(schema)), "see %autotrain help")]
        )
    name = key.rpartition(".")[2]
    lines = [key, f"  {field.description}"]
    if options := options_of(key, schema):
        lines.append(f"  one of: {', '.join(options)}")
    lines += _inner_lines(key, schema)
    if key == "backend":
        lines += help_lines(schema)
    if key == "search":
        lines.append(f"  distributions: {', '.join(map(distribution_form, PARAMETERS))}")
    lines.append(f"  default: {default_of(key, schema)}")
    lines += [f"  example: {name}: {example}" for example in field.examples]
    return "\n".join(lines)


def _inner_lines(key: str, schema: type[Header]) -> list[str]:
    """Return the keys inside a key, and those inside each entry with the user's own name, with what they mean."""
    path = key.split(".")
    if inner := keys_of(path, schema):
        return key_lines(f"  {key}.", inner)
    return key_lines(f"  {key}.NAME.", keys_of((*path, "NAME"), schema))


def distribution_form(name: str) -> str:
    """Return how a distribution is called, as `uniform(low, high)`."""
    return f"{name}({', '.join(PARAMETERS[name]) or 'a, b, ...'})"

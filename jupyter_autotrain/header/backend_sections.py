"""The schema of a header with the types of backends that there are, and what may stand inside `backend:`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, Field, create_model

from jupyter_autotrain.header.backend_models import (
    BackendForms,
    BackendTypes,
    NamedBackend,
    backend_field,
    base_type,
    inline_model,
    section_model,
)
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


def keys(path: Sequence[str], rows: Sequence[str], schema: type[Header]) -> dict[str, str]:
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
        return described(keys_of(path[1:], inline_model(types[-1], models[types[-1]])))
    if len(path) > 1:
        return {}
    return {"type": "What kind of backend it is.", **described(NamedBackend.model_fields)}


def described(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the keys of a model's fields, each with what it means."""
    return {name: str(field.description or "") for name, field in fields.items()}


def values(key: str, backends: Sequence[str], schema: type[Header]) -> list[str]:
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

"""What may stand inside `backend:`: names, types, and the keys of a profile that is written out. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from jupyter_autotrain.header.backend_models import NamedBackend, base_type, inline_model
from jupyter_autotrain.header.model_faults import keys_of
from jupyter_autotrain.header.schema import Header

_TYPE = re.compile(r"\btype\s*:\s*['\"]?([\w.-]+)")
_BACKEND = re.compile(r"\s*(?:- )?backend\s*:")


def keys(path: Sequence[str], rows: Sequence[str], schema: type[Header]) -> dict[str, str]:
    """The keys of the mapping around the cursor, each with what it means: those of its type, once it has one.

    Args:
        path: The keys around the cursor, beginning with `backend`.
        rows: The header up to the cursor.
        schema: It knows the types of backends.
    """
    models = dict(schema.backend_types)
    begun = next((number for number in reversed(range(len(rows))) if _BACKEND.match(rows[number])), 0)
    types = _TYPE.findall("\n".join(rows[begun:]))
    if types and types[-1] in models:
        return _described(keys_of(path[1:], inline_model(types[-1], models[types[-1]])))
    if len(path) > 1:
        return {}
    return {"type": "What kind of backend it is.", **_described(NamedBackend.model_fields)}


def _described(fields: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(field.description or "") for name, field in fields.items()}


def values(key: str, backends: Sequence[str], schema: type[Header]) -> list[str]:
    """The values of a key inside `backend:` that can be listed.

    Args:
        key: With dots, beginning with `backend`.
        backends: Names of backends.
        schema: It knows the types of backends.
    """
    if key in {"backend", "backend.name"}:
        return list(backends)
    return [name for name, _ in schema.backend_types] if key == "backend.type" else []


def help_lines(schema: type[Header]) -> list[str]:
    """The keys of `backend:`, and for each type those of its profiles."""
    lines = [f"  backend.{name}: {field.description}" for name, field in NamedBackend.model_fields.items()]
    for type_name, options in schema.backend_types:
        base, inherited = base_type(options, schema.backend_types)
        own = {name: field for name, field in options.model_fields.items() if name not in inherited}
        if own or base:
            title = f" as type {base}" if base else ""
            lines.append(f"  type {type_name}:{title}{', and' if own and base else ''}")
            lines += [f"    {name}: {field.description}" for name, field in own.items()]
    return lines

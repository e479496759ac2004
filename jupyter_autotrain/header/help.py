"""The schema's account of itself: the keys, the text of `help KEY`, and the published JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Final, get_args

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.header.backend_models import BackendTypes, base_type, section_model
from jupyter_autotrain.header.backend_sections import help_lines, key_lines
from jupyter_autotrain.header.distributions import PARAMETERS
from jupyter_autotrain.header.document import Fault, PlainScalar, combined_error, expected_instead, resolve
from jupyter_autotrain.header.schema import Header
from jupyter_autotrain.header.types import Duration, Size
from jupyter_autotrain.header.value_faults import keys_of

KEY_GROUPS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "common": ("name", "objective", "search", "trials", "concurrency", "backend", "resources"),
        "search": ("tuner", "constraints", "early_stop", "budget", "timeout", "retries", "seed", "start_from"),
        "code and data": ("setup", "ship", "data", "returns", "fetch_limit", "environment", "env", "pass_env"),
        "secrets": ("secrets", "not_secrets"),
        "several processes": ("launcher", "elastic", "parallel"),
        "around a run": ("on_rerun", "hooks", "notify"),
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


_HEAD = """\
# Options of backends

A profile in `autotrain.yaml`, or `backend:` of a header, is a type with options: `lab: {type: ssh, hosts: [gpu1]}`.
Those marked **h** can also stand in the type's own section of a header, for one experiment: `slurm: {partition: gpu}`.
`%autotrain help backend` lists them too, `%autotrain schema backends` gives them as JSON Schema.
"""
_COLUMNS = "| option | | default | means | example |\n|---|---|---|---|---|\n"


def options_page(types: BackendTypes) -> str:
    """Return the page in Markdown.

    Args:
        types: Name of each type, and the model of its options.
    """
    ordered = tuple(sorted(types, key=lambda one: (len(one[1].__mro__), one[0])))  # first those that others extend
    return "\n".join([_HEAD, *(_of_type(name, model, ordered) for name, model in ordered)])


def _of_type(name: str, model: type[BaseModel], types: BackendTypes) -> str:
    base, inherited = base_type(model, types)
    own = [key for key in model.model_fields if key not in inherited]
    about = (model.__doc__ or "").strip().partition("\n")[0]
    lines = f"## `type: {name}`\n\n{about}"
    if base:
        lines += f" All options of `{base}`" + (", and:" if own else ".")
    if not own:
        return lines + "\n"
    in_header = frozenset(section_model(name, model).model_fields)
    return f"{lines}\n\n{_COLUMNS}" + "".join(_rows(model, (), own, in_header))


def _rows(
    model: type[BaseModel], above: tuple[str, ...], names: Sequence[str], in_header: frozenset[str]
) -> Iterator[str]:
    fields = keys_of(above, model)
    for name in names:
        field = fields[name]
        path = (*above, name)
        mark = "**h**" if path[0] in in_header else ""
        example = _code(f"{name}: {field.examples[0]}") if field.examples else ""
        yield f"| {_code('.'.join(path))} | {mark} | {_default(field)} | {_cell(field.description)} | {example} |\n"
        yield from _rows(model, path, list(keys_of(path, model)), in_header)


def _default(field: Any) -> str:  # noqa: ANN401 - pydantic's description of a field
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True)
    if value is None or value is PydanticUndefined or value in ((), {}):
        return ""
    if _is_of(field, Size):
        return _code(format_bytes(value, binary=value % (1 << 20) == 0).replace(" ", ""))
    return _code(_time(value) if _is_of(field, Duration) else written(value))


def _is_of(field: Any, kind: Any) -> bool:  # noqa: ANN401 - pydantic's description of a field, and an annotated type
    return all(mark in field.metadata for mark in get_args(kind)[1:])


def _time(value_s: float) -> str:
    """As one would write it in a header."""
    for unit, seconds in (("d", 86_400), ("h", 3600), ("m", 60)):
        if value_s % seconds == 0:
            return f"{value_s / seconds:g}{unit}"
    return f"{value_s:g}s"


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")

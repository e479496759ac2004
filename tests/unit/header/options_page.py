"""The page of the backends' options, in Markdown, made from their models: `make golden` writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.header.backend_models import BackendTypes, base_type, section_model
from jupyter_autotrain.header.help import written
from jupyter_autotrain.header.types import Duration, Size
from jupyter_autotrain.header.value_faults import keys_of

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


def _default(field: Any) -> str:
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True)
    if value is None or value is PydanticUndefined or value in ((), {}):
        return ""
    if _is_of(field, Size):
        return _code(format_bytes(value, binary=value % (1 << 20) == 0).replace(" ", ""))
    return _code(_time(value) if _is_of(field, Duration) else written(value))


def _is_of(field: Any, kind: Any) -> bool:
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

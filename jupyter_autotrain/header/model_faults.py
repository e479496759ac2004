"""What a pydantic model finds wrong with settings, as faults with lines and nearest matches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from jupyter_autotrain.core.matching import closest_match
from jupyter_autotrain.header.document import Document
from jupyter_autotrain.header.faults import Fault, KeyPath, UnfitError, expected_instead, shown

M = TypeVar("M", bound=BaseModel)
_MOST_FAULTS = 200  # that are explained one by one
_EXPECTED = {
    "model_type": "expected a mapping such as {key: value}",
    "dict_type": "expected a mapping such as {key: value}",
    "missing": "expected a value",
    "tuple_type": "expected a list such as [a, b]",
    "too_short": "expected a list with more in it",
}
_WORDS = (
    ("Input should be", "expected"),
    ("greater than or equal to", "at least"),
    ("less than or equal to", "at most"),
    ("greater than", "more than"),
)


def validated(
    model: type[M], settings: Mapping[str, object], document: Document, path: KeyPath = (), folder: Path | None = None
) -> tuple[M | None, list[Fault]]:
    """Settings as a model has them, or None and all that is wrong with them.

    Args:
        model: The model.
        settings: What is checked.
        document: What they are a part of; it knows their lines.
        path: Where in it.
        folder: To which relative paths refer.
    """
    try:
        return model.model_validate(settings, context={"folder": folder}), []
    except ValidationError as error:
        return None, _faults(error, document, model, path)
    except (ArithmeticError, RecursionError) as error:  # values given in Python: text cannot be so large or deep
        return None, [Fault(f"a value that cannot be read: {error}", "expected plain settings", "simplify it")]


def _faults(error: ValidationError, document: Document, model: type[BaseModel], path: KeyPath = ()) -> list[Fault]:
    details = error.errors(include_url=False)
    faults = [_fault(detail, document, model, path) for detail in details[:_MOST_FAULTS]]
    if len(details) > _MOST_FAULTS:
        location = document.location((*path, *details[_MOST_FAULTS]["loc"]))
        faults.append(Fault(f"and {len(details) - _MOST_FAULTS} faults more", location=location))
    return faults


def _fault(detail: Mapping[str, Any], document: Document, model: type[BaseModel], above: KeyPath) -> Fault:
    context = detail.get("ctx", {})
    path: KeyPath = tuple(part for part in detail["loc"] if part != "[key]")
    cause = context.get("error")
    if detail["type"] == "extra_forbidden":
        return _unknown(path, document, model, above)
    dotted = ".".join(str(part) for part in (*above, *path))
    if isinstance(cause, UnfitError):
        found = cause.found or shown(detail["input"])
        return Fault(f"{dotted}: {found}", cause.expected, cause.action, document.location((*above, *path, *cause.at)))
    expected = _EXPECTED.get(detail["type"]) or detail["msg"]
    for theirs, ours in _WORDS:
        expected = expected.replace(theirs, ours)
    found = "is missing" if detail["type"] == "missing" else shown(detail["input"])
    return Fault(f"{dotted}: {found}", expected, _try(path, model), document.location((*above, *path)))


def _unknown(path: KeyPath, document: Document, model: type[BaseModel], above: KeyPath) -> Fault:
    key = str(path[-1])
    keys = list(keys_of(path[:-1], model))
    section = ".".join(str(part) for part in (*above, *path[:-1]))
    inside = f" in {section}" if section else ""
    action = "" if closest_match(key, keys) else "see %autotrain help"
    return Fault(
        f"unknown key {shown(key)}{inside}", expected_instead(key, keys), action, document.location((*above, *path))
    )


def _try(path: KeyPath, model: type[BaseModel]) -> str:
    field = keys_of(path[:-1], model).get(str(path[-1])) if path else None
    return f"as in `{path[-1]}: {field.examples[0]}`" if field is not None and field.examples else ""


def keys_of(section: Iterable[str | int], model: type[BaseModel]) -> dict[str, Any]:
    """The fields of a section of a model by name, also of one in a list; empty for what has none or the user's own."""
    fields: dict[str, Any] = dict(model.model_fields)
    of_each: type[BaseModel] | None = None  # what every value of a mapping with the user's own keys is
    for part in section:
        if isinstance(part, int):
            continue
        annotation = fields[part].annotation if part in fields else None
        found = of_each or _section_of(annotation)
        of_each = found if get_origin(annotation) is dict else None
        fields = dict(found.model_fields) if found and not of_each else {}
    return fields


def _section_of(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in get_args(annotation):
        if (found := _section_of(inner)) is not None:
            return found
    return None

"""The faults of values: against their model, or as credentials, which are named and never shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from jupyter_autotrain.agent.credentials import ALLOWED, holds_credential, is_credential, names_credential
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.header.document import (
    Document,
    Fault,
    KeyPath,
    Lines,
    SourceLocation,
    UnfitError,
    dotted,
    expected_instead,
    looks_secret,
    shown,
)

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
    """Return settings as a model has them, or None and all that is wrong with them.

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
    key = dotted((*above, *path))
    if isinstance(cause, UnfitError):
        found = cause.found or shown(detail["input"])
        return Fault(f"{key}: {found}", cause.expected, cause.action, document.location((*above, *path, *cause.at)))
    expected = _EXPECTED.get(detail["type"]) or detail["msg"]
    for theirs, ours in _WORDS:
        expected = expected.replace(theirs, ours)
    found = "is missing" if detail["type"] == "missing" else shown(detail["input"])
    return Fault(f"{key}: {found}", expected, _try(path, model), document.location((*above, *path)))


def _unknown(path: KeyPath, document: Document, model: type[BaseModel], above: KeyPath) -> Fault:
    key = str(path[-1])
    keys = list(keys_of(path[:-1], model))
    section = dotted((*above, *path[:-1]))
    inside = f" in {section}" if section else ""
    action = "" if closest_match(key, keys) else "see %autotrain help"
    return Fault(
        f"unknown key {shown(key)}{inside}", expected_instead(key, keys), action, document.location((*above, *path))
    )


def _try(path: KeyPath, model: type[BaseModel]) -> str:
    field = keys_of(path[:-1], model).get(str(path[-1])) if path else None
    return f"as in `{path[-1]}: {field.examples[0]}`" if field is not None and field.examples else ""


def keys_of(section: Iterable[str | int], model: type[BaseModel]) -> dict[str, Any]:
    """Return the fields of a section of a model by name, also of one in a list.

    Empty for what has none or the user's own.
    """
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


_SHOWN_NAME = 60
DEEPEST = 24


def in_settings(document: Document) -> Iterator[Fault]:
    """Yield a fault for each text of the settings that looks like a secret and is not named under `not_secrets:`."""
    named = document.data.get("not_secrets")
    allowed = set(map(str, named if isinstance(named, list | tuple) else [named]))
    for path, text in _texts(document.data, ()):
        is_free = path[0] in {"secrets", "not_secrets", "backend"} or not allowed.isdisjoint(map(str, path))
        if not is_free and _is_secret_setting(path, text):
            yield _secret_fault(path, document.location(path))


def _is_secret_setting(path: KeyPath, text: str) -> bool:
    if holds_credential(text):
        return True
    return path[0] == "env" and (is_credential(str(path[-1]), text) or looks_secret(text))


def in_profile(
    settings: Mapping[str, object], document: Document, above: KeyPath, names: Collection[str] = ()
) -> Iterator[tuple[KeyPath, Fault]]:
    """Yield the path and the fault of each text of a profile that is, or by its name would be, a secret.

    Args:
        settings: The profile.
        document: What it is a part of.
        above: Where in it.
        names: Keys whose text is the name of a secret that is kept elsewhere; only its form can make it one.
    """
    for path, text in _texts(settings, above):
        name = next(str(part) for part in reversed(path) if isinstance(part, str))
        by_name = names_credential(name) or is_credential(name, text)
        if _is_secret(text) if name in names else by_name:
            yield (
                path,
                Fault(
                    f"{dotted(path)[:_SHOWN_NAME]}: what looks like a secret (not shown here)",
                    "expected no secrets in a profile",
                    "name a key file (`key_file: ~/.ssh/id_lab`), or set an environment variable and name that",
                    document.location(path),
                ),
            )


def _is_secret(text: str) -> bool:
    return holds_credential(text) or looks_secret(text)


def in_comments(lines: Lines) -> Iterator[Fault]:
    """Yield a fault for each comment of a header that holds a secret: a header is kept as it is written."""
    for number, text in lines:
        comment = text.partition("#")[2]
        if comment and ALLOWED not in comment and holds_credential(comment):
            expected = "expected no secrets in a header"
            action = "remove it"
            yield Fault(
                "a comment holds what looks like a secret (not shown here)", expected, action, SourceLocation(number)
            )


def _texts(value: object, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if len(path) > DEEPEST:
        return  # text is never so deep, and a value given in Python may hold itself
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))


def _secret_fault(path: KeyPath, location: SourceLocation) -> Fault:
    name = str(path[-1])[:_SHOWN_NAME]
    variable = name.upper() if name.isidentifier() else "API_KEY"
    return Fault(
        f"{dotted(path)[:_SHOWN_NAME]}: what looks like a secret (not shown here)",
        "expected its name under secrets:",
        f"write `secrets: [{variable}]` and set it in the environment; if it is none, `not_secrets: [{name}]`",
        location,
    )

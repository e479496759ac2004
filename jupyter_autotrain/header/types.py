"""The kinds of values a header key can take: how each is read, bounded, and described in JSON Schema."""

from __future__ import annotations

import keyword
import math
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema

from jupyter_autotrain.agent.credentials import names_credential
from jupyter_autotrain.header.document import UnfitError, looks_secret, resolve
from jupyter_autotrain.header.quantities import (
    DURATION_FORM,
    RATE_FORM,
    SIZE_FORM,
    parse_duration,
    parse_rate,
    parse_size,
)

_REFERENCE = re.compile(r"[\w.\-@]{1,100}(#[1-9]\d{0,8})?")
_NAME = re.compile(r"[A-Za-z0-9][\w.\-]{0,63}")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_PATTERN = re.compile(r"[\w*]{1,200}")


def _text(value: object) -> str:
    if isinstance(value, str) and value != "":
        return str(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise UnfitError("expected text")


def list_of_words(value: object) -> tuple[object, ...]:
    """One text stands for a list of one."""
    items = [value] if isinstance(value, str | int) and value != "" else value
    if not isinstance(items, list | tuple):
        raise UnfitError("expected a list such as [a, b]")
    return tuple(items)


def _number(value: object) -> float:
    number = resolve(value)
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise UnfitError("expected a number")
    return number


def _integer(value: object) -> int:
    number = resolve(value)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int):
        raise UnfitError("expected an integer")
    return number


def _truth(value: object) -> bool:
    answer = resolve(value)
    if not isinstance(answer, bool):
        raise UnfitError("expected true or false")
    return answer


def _indices(value: object) -> object:
    if isinstance(value, str):
        return tuple(value.split(","))
    if isinstance(value, int):
        return (value,)
    if not isinstance(value, list | tuple):
        raise UnfitError("expected GPU numbers such as [0, 1]")
    return tuple(value)


def _local_path(value: object, info: ValidationInfo) -> str:
    """Return a path on this machine; a relative one refers to the folder of the file that it stands in."""
    path = _text(value)
    folder = (info.context or {}).get("folder")
    return path if folder is None or path.startswith("~") else str(Path(folder, path))


def _remote_path(value: object) -> str:
    """Return a path on another machine; no shell reads it there."""
    path = _text(value)
    if "$" in path:
        raise UnfitError("expected a path without variables", "write it out; `~` is the home folder there")
    if path.startswith("~") and path.partition("/")[0] != "~":
        raise UnfitError("expected a path that begins with / or ~/", "write out the home folder of another account")
    return path


def read_name(value: object) -> str:
    """Return the name of an experiment or a profile.

    Raises:
        UnfitError: It cannot be one.
    """
    name = _text(value)
    if not _NAME.fullmatch(name):
        raise UnfitError("expected at most 64 letters, digits, dots, dashes and underscores", "rename it")
    return name


def _variable(value: object) -> str:
    name = unicodedata.normalize("NFKC", _text(value))  # as Python itself reads names
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UnfitError("expected a variable name such as model")
    return name


def _secret(value: object) -> str:
    name = _text(value) if isinstance(value, str | int) else ""
    if not _VARIABLE.fullmatch(name) or looks_secret(name):
        raise UnfitError(
            "expected the NAME of an environment variable, such as HF_TOKEN",
            "set the value in the environment, outside the notebook",
            found="something that is not a name (not shown here, it may be a secret)",
        )
    return name


def _pattern(value: object) -> str:
    name = _text(value) if isinstance(value, str | int) else ""
    if not _PATTERN.fullmatch(name):
        raise UnfitError("expected the name of an environment variable, such as WANDB_PROJECT or SLURM_*")
    if names_credential(name):
        raise UnfitError("expected no secrets here", f"write `secrets: [{name}]`")
    return name


def _secrets(value: object) -> object:
    if isinstance(value, dict):
        raise UnfitError(
            "expected a list of names such as [HF_TOKEN]",
            "set the values in the environment, outside the notebook",
            found="secrets with values (not shown here)",
        )
    return list_of_words(value)


def _variable_text(value: object) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = _text(value)
    if "\0" in text:
        raise UnfitError("expected text without a NUL character")
    return text


def _quantity(parse: Callable[[str | float], float], form: str) -> Callable[[object], float]:
    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise UnfitError(f"expected {form}")
        try:
            return parse(value)
        except UnfitError as error:
            raise UnfitError(f"expected {error.expected}", error.action) from None

    return read


def _rate(value: object) -> float:
    """Bytes per second, which a checked profile keeps as a number."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value)
    if not isinstance(value, str):
        raise UnfitError(f"expected {RATE_FORM}")
    return _quantity(parse_rate, RATE_FORM)(value)


def _schema(*kinds: str, **more: object) -> WithJsonSchema:
    return WithJsonSchema({"type": list(kinds) if len(kinds) > 1 else kinds[0], **more})


_LIST = {"items": {"type": "string"}}
Text = Annotated[str, BeforeValidator(_text)]


def _trial_reference(value: object) -> str:
    text = str(value).strip() if isinstance(value, str) else ""
    if not _REFERENCE.fullmatch(text):
        raise UnfitError("expected a trial such as digits#3, or the name of an experiment")
    return text


LocalPath = Annotated[str, BeforeValidator(_local_path)]
RemotePath = Annotated[str, BeforeValidator(_remote_path)]
Name = Annotated[str, BeforeValidator(read_name)]
TrialReference = Annotated[str, BeforeValidator(_trial_reference)]


def _pilots(value: object) -> object:
    return int(value) if isinstance(value, bool) else value


VariableName = Annotated[str, BeforeValidator(_variable)]
# Bounds precede these: the other way round they do not get into the JSON Schema.
AS_INTEGER = BeforeValidator(_integer)
AS_NUMBER = BeforeValidator(_number)
Truth = Annotated[bool, BeforeValidator(_truth)]
Count = Annotated[int, Field(ge=1, le=1_000_000), AS_INTEGER]
Workers = Annotated[int, Field(ge=1, le=10_000), AS_INTEGER]
Few = Annotated[int, Field(ge=0, le=10_000), AS_INTEGER]
Pilots = Annotated[int, BeforeValidator(_pilots), Field(ge=0)]
Size = Annotated[int, BeforeValidator(_quantity(parse_size, SIZE_FORM)), _schema("string", "integer")]
Duration = Annotated[float, BeforeValidator(_quantity(parse_duration, DURATION_FORM)), _schema("string", "number")]
Rate = Annotated[float, BeforeValidator(_rate), _schema("string", "number")]
Texts = Annotated[tuple[Text, ...], BeforeValidator(list_of_words), _schema("array", "string", **_LIST)]
VariableNames = Annotated[tuple[VariableName, ...], BeforeValidator(list_of_words), _schema("array", "string", **_LIST)]
Pattern = Annotated[str, BeforeValidator(_pattern)]
Patterns = Annotated[tuple[Pattern, ...], BeforeValidator(list_of_words), _schema("array", "string", **_LIST)]
Secret = Annotated[str, BeforeValidator(_secret)]
Secrets = Annotated[tuple[Secret, ...], BeforeValidator(_secrets), _schema("array", "string", **_LIST)]
CellNumbers = Annotated[tuple[Count, ...], BeforeValidator(list_of_words), _schema("array", "integer")]
Indices = Annotated[tuple[Few, ...], BeforeValidator(_indices), _schema("array", "string", "integer")]
VariableText = Annotated[str, BeforeValidator(_variable_text), _schema("string", "number", "boolean", "null")]

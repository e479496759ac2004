"""JSON values and a codec for frozen dataclasses."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from typing import TypeAlias, TypeVar, Union, cast

JsonValue: TypeAlias = Union[bool, int, float, str, "Sequence[JsonValue]", "Mapping[str, JsonValue]", None]
JsonObject: TypeAlias = Mapping[str, JsonValue]
T = TypeVar("T")


def to_json(value: object) -> JsonValue:
    """Turn dataclasses, enums, mappings and sequences into plain JSON values.

    A dataclass whose class has a `KIND` attribute is tagged with it, so that a union can be read back.
    """
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return cast("JsonValue", value.value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
        kind = getattr(value, "KIND", None)
        return {"kind": kind, **fields} if kind else fields
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no JSON form")


def from_json(cls: type[T], value: JsonValue) -> T:
    """Rebuild a value written by `to_json`; unknown keys are ignored: older code reads newer records."""
    return cast("T", _decode(cls, value))


@cache
def _hints(cls: type) -> dict[str, object]:
    # JsonValue names itself, so its parts must be known wherever a class uses it.
    return dict(typing.get_type_hints(cls, localns={"JsonValue": JsonValue, "Sequence": Sequence, "Mapping": Mapping}))


def _decode(hint: object, value: JsonValue) -> object:  # noqa: PLR0911 - one line per shape reads best
    origin = typing.get_origin(hint)
    args = typing.get_args(hint)
    if value is None or hint is JsonValue or isinstance(hint, str | typing.ForwardRef):
        return value
    if origin in {Union, types.UnionType}:
        return _decode_union([a for a in args if a is not type(None)], value)
    if origin is tuple and isinstance(value, Sequence):
        items = [args[0]] * len(value) if len(args) == 2 and args[1] is Ellipsis else args
        return tuple(_decode(h, v) for h, v in zip(items, value, strict=True))
    if origin is not None and isinstance(value, Mapping):
        return {key: _decode(args[1], item) for key, item in value.items()}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
        hints = _hints(hint)
        names = [f.name for f in dataclasses.fields(hint) if f.init and f.name in value]
        return hint(**{name: _decode(hints[name], value[name]) for name in names})
    if hint is float and isinstance(value, int):
        return float(value)
    return value


def _decode_union(options: list[object], value: JsonValue) -> object:
    tagged = {o.KIND: o for o in options if hasattr(o, "KIND")}
    if isinstance(value, Mapping) and value.get("kind") in tagged:
        return _decode(tagged[cast("str", value["kind"])], value)
    return _decode(options[0], value) if len(options) == 1 else value

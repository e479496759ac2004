"""JSON values and a codec for frozen dataclasses.

Our own, measured against cattrs 26.2 and msgspec 0.22: msgspec decodes no union of several dataclasses (search spaces,
placements), writes NaN as null and drops the tag of a union; cattrs is as fast to read, but changes what does not fit
(2.7 to 2, None to "None") without an error, and its import takes 65 ms of every command.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, TypeVar, Union, cast

if TYPE_CHECKING:
    from typing import TypeAlias

JsonValue: TypeAlias = Union[bool, int, float, str, "Sequence[JsonValue]", "Mapping[str, JsonValue]", None]
JsonObject: TypeAlias = Mapping[str, JsonValue]
T = TypeVar("T")
_Decode: TypeAlias = Callable[[JsonValue], object]
_PLAIN = frozenset({bool, int, float, str, type(None)})
_UNIONS = {Union, getattr(types, "UnionType", Union)}  # Python 3.9 has no `X | Y`


def to_json(value: object) -> JsonValue:
    """Turn dataclasses, enums, mappings and sequences into plain JSON values.

    A dataclass whose class has a `KIND` attribute is tagged with it, so that a union can be read back. Fields that a
    dataclass computes itself (`init=False`) are left out.

    Raises:
        TypeError: A value has no JSON form.
    """
    if type(value) in _PLAIN:
        return cast("JsonValue", value)
    if isinstance(value, Enum):
        return cast("JsonValue", value.value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = getattr(value, "KIND", None)
        tag: dict[str, JsonValue] = {"kind": kind} if kind else {}
        return tag | {name: to_json(getattr(value, name)) for name in _field_names(type(value))}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(map(to_json, value))
    if isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{type(value).__name__} has no JSON form")


@cache
def _field_names(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(cls) if field.init)


def from_json(cls: type[T], value: JsonValue) -> T:
    """Rebuild a value written by `to_json`; unknown keys are ignored: older code reads newer records.

    Raises:
        TypeError: A field without a default is missing.
        ValueError: An enum has no such member, or a tuple another length.
    """
    hint: object = cls
    return cast("T", _decoder(hint)(value))


@cache
def _decoder(hint: object) -> _Decode:  # noqa: PLR0911 - one line per shape reads best
    """Return the function that rebuilds values of one type, made once; a value of another shape stays as it is."""
    origin = typing.get_origin(hint)
    args = typing.get_args(hint)
    if hint is JsonValue or isinstance(hint, (str, typing.ForwardRef)):
        return _unchanged
    if origin in _UNIONS:
        return _union(tuple(option for option in args if option is not type(None)))
    if origin is tuple:
        return _tuple(args)
    if origin is not None:
        return _mapping(args[-1])
    if isinstance(hint, type) and issubclass(hint, Enum):
        return lambda value: None if value is None else hint(value)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _dataclass(hint)
    return _float if hint is float else _unchanged


def _unchanged(value: JsonValue) -> object:
    return value


def _float(value: JsonValue) -> object:
    return float(value) if isinstance(value, int) else value


def _union(options: tuple[object, ...]) -> _Decode:
    tagged = {option.KIND: option for option in options if hasattr(option, "KIND")}
    only = _decoder(options[0]) if len(options) == 1 else _unchanged

    def decode(value: JsonValue) -> object:
        kind = value.get("kind") if isinstance(value, Mapping) else None
        return _decoder(tagged[kind])(value) if kind in tagged else only(value)

    return decode if tagged else only


def _tuple(hints: tuple[object, ...]) -> _Decode:
    same = _decoder(hints[0]) if len(hints) == 2 and hints[1] is Ellipsis else None

    def decode(value: JsonValue) -> object:
        if not isinstance(value, Sequence):
            return value
        if same:
            return tuple(map(same, value))
        if len(value) != len(hints):
            raise ValueError(f"{len(value)} values were found; {len(hints)} were expected")
        return tuple(_decoder(hint)(item) for hint, item in zip(hints, value))  # noqa: B905 - strict= is of Python 3.10

    return decode


def _mapping(hint: object) -> _Decode:
    item_of = _decoder(hint)

    def decode(value: JsonValue) -> object:
        return {key: item_of(item) for key, item in value.items()} if isinstance(value, Mapping) else value

    return decode


def _dataclass(cls: type) -> _Decode:
    def decode(value: JsonValue) -> object:
        if not isinstance(value, Mapping):
            return value
        fields = _field_decoders(cls)
        return cls(**{name: fields[name](value[name]) for name in fields if name in value})

    return decode


@cache
def _field_decoders(cls: type) -> Mapping[str, _Decode]:
    # JsonValue names itself, so its parts must be known wherever a class uses it.
    hints = typing.get_type_hints(cls, localns={"JsonValue": JsonValue, "Sequence": Sequence, "Mapping": Mapping})
    fields = dataclasses.fields(cls)
    return {field.name: _decoder(hints[field.name]) for field in fields if field.init}

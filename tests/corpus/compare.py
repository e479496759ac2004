"""Comparison of two values, exactly, all the way down, and where they differ."""

from __future__ import annotations

import functools
import math
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pandas as pd

_MOST_DIFFERENCES = 500
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)
Parts = Mapping[str, object]


class Leaf:
    """A value without parts, and how it is compared."""

    def __init__(self, value: object, same: Callable[[object, object], object]) -> None:
        self.value = value
        self.same = same


def differences(left: object, right: object) -> list[str]:
    """Return the paths at which two values differ, such as `.coef_` or `['loss'][3]`; `.` when the values as such do.

    Floats, arrays and tensors must agree in every bit of their numbers, NaN equals NaN; estimators, modules and all
    other objects are compared by what a pickle would keep of them. Pictures are equal when their types are.
    """
    found: list[str] = []
    todo: list[tuple[str, object, object]] = [("", left, right)]
    alive: list[object] = []  # the ids of parts that live no longer could come again
    seen: set[tuple[int, int]] = set()
    while todo and len(found) < _MOST_DIFFERENCES:
        path, one, other = todo.pop()
        if one is other or (id(one), id(other)) in seen:
            continue
        seen.add((id(one), id(other)))
        alive += [one, other]
        pairs = _pairs(one, other)
        if pairs is None:
            found.append(path or ".")
            continue
        todo += [(f"{path}{step}", a, b) for step, a, b in pairs]
    return found


def _pairs(one: object, other: object) -> list[tuple[str, object, object]] | None:
    """Return the parts to compare in turn; None when the two differ here."""
    if _type_name(one) != _type_name(other):
        return None
    first = parts(one)
    second = parts(other)
    if isinstance(first, Leaf) and isinstance(second, Leaf):
        return [] if first.same(first.value, second.value) else None
    if isinstance(first, Leaf) or isinstance(second, Leaf) or first.keys() != second.keys():
        return None
    return [(step, value, second[step]) for step, value in first.items()]


def _type_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def parts(value: object) -> Parts | Leaf:
    """Return what a value is made of, by name."""
    if type(value).__module__.startswith("torch") and hasattr(value, "untyped_storage"):
        return _tensor(value)
    if type(value).__module__.startswith("matplotlib."):
        return {}
    return _parts(value)


@functools.singledispatch
def _parts(value: object) -> Parts | Leaf:
    try:
        made_by, *rest = _reduced(value)
    except Exception:  # noqa: BLE001 - what cannot be taken apart is compared as a whole, whatever it raises
        return Leaf(value, lambda one, other: one == other)
    named: dict[str, object] = {" made by": made_by}
    for label, part in zip((" arguments", "", " items", " entries"), rest, strict=False):
        if label == "" and isinstance(part, dict):
            named |= {f".{key}": inner for key, inner in part.items()}
        else:
            named[label] = list(part) if isinstance(part, Iterator) else part
    return named


def _reduced(value: object) -> list[object]:
    reduced = value.__reduce_ex__(4)
    return [reduced] if isinstance(reduced, str) else list(reduced)


def _equal(one: object, other: object) -> bool:
    return one == other


@_parts.register
def _(value: int) -> Leaf:
    return Leaf(value, lambda one, other: one == other or (_is_address(one) and _is_address(other)))


def _is_address(value: object) -> bool:
    """Tell whether `id` gives such numbers here; some estimators keep one, which no two processes share."""
    return isinstance(value, int) and 1 << 44 < value < 1 << 47


@_parts.register
def _(value: bool | str | bytes | bytearray | complex | None) -> Leaf:
    return Leaf(value, _equal)


@_parts.register
def _(value: float) -> Leaf:
    return Leaf(value, lambda one, other: one == other or (_is_nan(one) and _is_nan(other)))


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


@_parts.register
def _(value: list | tuple | deque) -> Parts:  # type: ignore[type-arg]  # dispatch needs the bare classes
    return {f"[{index}]": item for index, item in enumerate(value)} | _attributes(value)


@_parts.register
def _(value: dict) -> Parts:  # type: ignore[type-arg]  # dispatch needs the bare class
    named: dict[str, object] = {}
    for index, (key, item) in enumerate(value.items()):
        label = repr(key) if isinstance(key, str | int | float | tuple | None) else str(index)
        named |= {f"[{label}]": item, f" key {index}": key}
    return named | _attributes(value)


def _attributes(value: object) -> dict[str, object]:
    """Return what a subclass of a container carries beside its items."""
    return {f".{key}": item for key, item in getattr(value, "__dict__", {}).items()}


@_parts.register
def _(value: set | frozenset) -> Leaf:  # type: ignore[type-arg]  # dispatch needs the bare classes
    return Leaf(value, lambda one, other: one == other or sorted(map(repr, one)) == sorted(map(repr, other)))  # type: ignore[call-overload]


@_parts.register
def _(value: types.FunctionType) -> Parts:
    code = value.__code__
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    return {
        " code": (code.co_name, code.co_code, code.co_names, code.co_varnames),
        " defaults": (value.__defaults__, value.__kwdefaults__),
        " closure": cells,
    }


@_parts.register
def _(value: types.MethodType) -> Parts:
    return {" function": value.__func__, " self": value.__self__}


@_parts.register
def _(value: types.BuiltinFunctionType | types.ModuleType | type) -> Leaf:
    return Leaf(getattr(value, "__qualname__", getattr(value, "__name__", "")), _equal)


@_parts.register
def _(value: np.ndarray) -> Parts | Leaf:
    if value.dtype.hasobject:
        return {" shape": value.shape, " items": value.ravel().tolist()}
    return Leaf(value, _same_array)


def _same_array(one: object, other: object) -> bool:
    assert isinstance(one, np.ndarray)
    assert isinstance(other, np.ndarray)
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    return one.tobytes() == other.tobytes() or np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")


@_parts.register
def _(value: pd.DataFrame) -> Parts:
    columns = {f"[{label!r} at {at}]": value.iloc[:, at] for at, label in enumerate(value.columns)}
    return {".columns": value.columns, ".index": value.index, **columns}


@_parts.register
def _(value: pd.Series) -> Parts | Leaf:
    if value.dtype == object:
        return {".name": value.name, ".index": value.index, ".values": value.to_numpy()}
    return Leaf(value, lambda one, other: one.dtype == other.dtype and one.name == other.name and one.equals(other))  # type: ignore[attr-defined]


@_parts.register
def _(value: pd.Index) -> Leaf:
    return Leaf(value, lambda one, other: one.identical(other))  # type: ignore[attr-defined]


def _tensor(value: object) -> Parts:
    import torch  # only notebooks that hold a tensor have it

    assert isinstance(value, torch.Tensor)
    grad = value.grad if value.is_leaf else None
    plain = {".requires_grad": value.requires_grad, ".dtype": str(value.dtype), ".shape": tuple(value.shape)}
    return {**plain, ".grad": grad, ".data": Leaf(value.detach(), _same_tensor), **_attributes(value)}


@_parts.register
def _(value: Leaf) -> Leaf:
    return value


def _same_tensor(one: object, other: object) -> bool:
    import torch

    assert isinstance(one, torch.Tensor)
    assert isinstance(other, torch.Tensor)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return torch.equal(one, other) or bool(((one == other) | (one.isnan() & other.isnan())).all())

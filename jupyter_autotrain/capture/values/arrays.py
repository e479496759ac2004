"""Pickles of NumPy arrays and parts of pandas tables, and the arrays that lie in the same memory."""

from __future__ import annotations

import ctypes
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.values.standins import rebuilding

ReducedValue = tuple[object, ...] | None
"""The way to make a value again, as `__reduce__` gives it; None where pickle knows itself."""
_FINISH_ARRAY = rebuilding("finish_array")
_WRITES_TO_FILE = {"r+", "w+"}


def reduce_array(value: Any) -> ReducedValue:  # noqa: ANN401 - any array
    """Pickle an array; one that can be written to and has no attributes as NumPy does it."""
    np = sys.modules["numpy"]
    if value.dtype.hasobject or not _is_pickled_by_numpy(type(value), np):
        return None
    if type(value) is np.ndarray and value.size > 1 and 0 in value.strides:
        return np.broadcast_to, (_once(value).copy(), value.shape)
    attributes = dict(getattr(value, "__dict__", {}))
    attributes.pop("_mmap", None)
    if isinstance(value, np.ma.MaskedArray) or (value.flags.writeable and not attributes):
        return None
    make, arguments, state = np.ndarray.__reduce__(value)
    return make, arguments, (state, attributes, value.flags.writeable), None, None, _FINISH_ARRAY


def _once(value: Any) -> Any:  # noqa: ANN401 - any array
    """Return an array without the repetitions that broadcasting gave it."""
    parts = [slice(None) if stride else slice(0, 1) for stride in value.strides]
    return value[tuple(parts)]


def _is_pickled_by_numpy(kind: type[Any], np: Any) -> bool:  # noqa: ANN401 - NumPy itself
    """Return whether a class leaves it to NumPy how its arrays are pickled; masked arrays are known too."""
    names = ("__reduce__", "__reduce_ex__", "__setstate__")
    inherited = all(getattr(kind, name) is getattr(np.ndarray, name) for name in names)
    return inherited or kind is np.ma.MaskedArray


def mapped_file(value: Any) -> list[str]:  # noqa: ANN401 - any array
    """Return in words which file writing to an array changes here, but not in a trial."""
    np = sys.modules["numpy"]
    while isinstance(value, np.ndarray):
        if isinstance(value, np.memmap) and value.mode in _WRITES_TO_FILE:
            return [f"is mapped to the file {value.filename}; a trial has its content now, and does not write to it"]
        value = value.base
    return []


# Which arrays and tensors lie in the same memory: a trial gets a copy of each, which is told


_WORK = 1_000
_COMPARED_AT_MOST = 2_000
_LOOKED_AT_MOST = 100_000


def overlapping(held: Mapping[str, Sequence[object]]) -> Iterator[tuple[str, str]]:
    """Yield each pair of names whose arrays have an element in common, and a name twice that holds such arrays.

    Args:
        held: The arrays, tensors and buffers that each name holds; what two names hold both is one in a trial too.
    """
    np = sys.modules.get("numpy")
    if np is None:
        return
    bounds = getattr(np.lib, "array_utils", np).byte_bounds
    places = list[_Place]()
    for name, values in held.items():
        for value in {id(one): one for one in values}.values():
            memory = _memory_of(value, np)
            if memory.size:
                low, high = bounds(memory)
                places.append(_Place(low, high, name, id(value), memory))
    places.sort(key=lambda place: (place.low, place.high))
    found = set[tuple[str, str]]()
    before = list[_Place]()
    for place in places[:_LOOKED_AT_MOST]:
        before = [earlier for earlier in before if earlier.high > place.low][-_COMPARED_AT_MOST:]
        for other in before:
            pair = (min(place.name, other.name), max(place.name, other.name))
            if pair not in found and _meet(place, other, np):
                found.add(pair)
                yield pair
        before.append(place)


class _Place(NamedTuple):
    """The memory of an array: the addresses of its first byte and after its last one, its name and identity."""

    low: int
    high: int
    name: str
    identity: int
    memory: Any


def _memory_of(value: Any, np: Any) -> Any:  # noqa: ANN401 - NumPy itself, and any array
    """Return an array, a tensor, a storage or a buffer as an array of NumPy in the same memory."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, bytearray | array):
        return np.frombuffer(value, np.uint8) if value else np.empty(0)
    if not hasattr(value, "numel"):  # a storage of torch
        return _at(value.data_ptr(), (value.nbytes(),), (1,), 1, np)
    item_bytes = value.element_size()
    strides = tuple(stride * item_bytes for stride in value.stride())
    return _at(value.data_ptr(), tuple(value.shape), strides, item_bytes, np)


def _at(start: int, shape: tuple[int, ...], strides: tuple[int, ...], item_bytes: int, np: Any) -> Any:  # noqa: ANN401 - NumPy itself
    if 0 in shape:
        return np.empty(0)
    reach = sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))
    memory = (ctypes.c_char * (reach + item_bytes)).from_address(start)
    return np.ndarray(shape, f"V{item_bytes}", memory, 0, strides)


def _meet(one: _Place, other: _Place, np: Any) -> bool:  # noqa: ANN401 - NumPy itself
    """Return whether two arrays have an element in common; where this is too expensive to find out, True."""
    try:
        return one.identity != other.identity and bool(np.shares_memory(one.memory, other.memory, max_work=_WORK))
    except np.exceptions.TooHardError:
        return True


# How the parts of pandas tables are pickled, so that they are copied when they are written to, as here


_BLOCK = rebuilding("block")


def reduce_table_part(value: Any) -> ReducedValue:  # noqa: ANN401 - any part of a table
    """Pickle the inside of a table, or an index; other values as pickle does it."""
    pandas = sys.modules.get("pandas")
    internals = sys.modules.get("pandas.core.internals.managers")
    if pandas is None or internals is None:
        return None
    if isinstance(value, pandas.Index):
        return _index(value)
    if isinstance(value, internals.BaseBlockManager):
        return _manager(value)
    if type(value).__name__ == "BlockValuesRefs":
        return type(value), ()
    if isinstance(value, internals.Block) and _is_counted(value):
        return _BLOCK, (value.values, (value.mgr_locs.indexer, value.ndim), value.refs)
    return None


def set_on_table(value: Any) -> list[str]:  # noqa: ANN401 - any value
    """Return the attributes that were set on a table or a column by hand; pandas keeps them in no pickle."""
    core = sys.modules.get("pandas.core.generic")
    if core is None or not looking.is_kind(value, core.NDFrame):
        return []
    return [name for name in vars(value) if not name.startswith("_") and name not in value._metadata]  # noqa: SLF001 - as pandas does


def _is_counted(block: Any) -> bool:  # noqa: ANN401 - a block
    """Tell whether another block has the same values.

    Both must know, else writing to one changes the other.
    """
    references = getattr(block, "refs", None)
    return references is not None and references.has_reference()


def _manager(value: Any) -> ReducedValue:  # noqa: ANN401 - what holds the blocks of a table
    if not any(map(_is_counted, value.blocks)):
        return None
    single = len(value.axes) == 1
    return type(value), (value.blocks[0], value.axes[0]) if single else (value.blocks, value.axes)


def _index(value: Any) -> ReducedValue:  # noqa: ANN401 - an index
    """Return the pickled form of an index.

    It never changes, so its values need not be those of a column that may.
    """
    reduced = value.__reduce__()
    data = reduced[1][1].get("data") if len(reduced) > 1 and isinstance(reduced[1][-1], dict) else None
    if not isinstance(data, sys.modules["numpy"].ndarray):
        return None
    make, (kind, parts), *rest = reduced
    return make, (kind, {**parts, "data": data.view()}), *rest

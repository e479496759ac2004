"""How NumPy arrays are pickled, so that what shares memory here shares it in a trial."""

from __future__ import annotations

import sys
from typing import Any

from jupyter_autotrain.capture.values.array_layout import ArrayLayout, ReducedValue
from jupyter_autotrain.capture.values.embedded import Embedded
from jupyter_autotrain.capture.values.memory import Region, Span, is_sparse, span

_ARRAY = Embedded("array")
_ATTRIBUTES = Embedded("set_attributes")
_OBJECT_VIEW = Embedded("object_view")
_WRITES_TO_FILE = {"r+", "w+"}


def reduce_array(value: Any, layout: ArrayLayout) -> ReducedValue:  # noqa: ANN401 - any array
    """Pickle an array; one that owns its memory, which nothing else lies in, as NumPy does it."""
    np = sys.modules["numpy"]
    kind = type(value)
    if value.dtype.hasobject:
        return _objects(value, layout) if kind is np.ndarray else None
    if not value.size or layout.is_apart(value):
        return None
    if not _is_pickled_by_numpy(kind, np):
        layout.copies.append(f"is a {kind.__name__}, which pickles itself: memory that it shares becomes its own")
        return None
    one = _span(value)
    owns = value.flags.owndata
    if not owns:
        layout.copies += _mapped_file(value, np)
    region = layout.shared(one, owns=owns)
    if region is None:
        if kind is np.ndarray and value.flags.forc:
            return None
        one = _span(np.ndarray.copy(value, order="K")) if is_sparse(one) else one
        region = layout.alone(one)
    return _rebuilt(value, one, region)


def _span(value: Any) -> Span:  # noqa: ANN401 - any array
    address = value.__array_interface__["data"][0]
    if value.flags.c_contiguous:
        return Span(address, address + value.nbytes, address, value.shape, value.strides, value.itemsize, value)
    return span(address, value.shape, value.strides, value.itemsize, value)


def _is_pickled_by_numpy(kind: type[Any], np: Any) -> bool:  # noqa: ANN401 - NumPy itself
    """Whether a class leaves it to NumPy how its arrays are pickled; masked arrays are known too."""
    if kind is np.ndarray:
        return True
    names = ("__reduce__", "__reduce_ex__", "__setstate__")
    inherited = all(getattr(kind, name) is getattr(np.ndarray, name) for name in names)
    return inherited or kind is np.ma.MaskedArray


def _rebuilt(value: Any, one: Span, region: Region) -> ReducedValue:  # noqa: ANN401 - any array
    strides = None if value.flags.c_contiguous else one.strides
    layout = (value.dtype, value.shape, strides, region.offset(one.start))
    arguments = (region.buffer(), type(value), layout, value.flags.writeable)
    attributes = {name: item for name, item in getattr(value, "__dict__", {}).items() if name != "_mmap"}
    if not attributes:
        return _ARRAY, arguments
    return _ARRAY, arguments, attributes, None, None, _ATTRIBUTES


def _objects(value: Any, layout: ArrayLayout) -> ReducedValue:  # noqa: ANN401 - any array
    """An array of objects: its elements travel one by one, so a view of it is made upon the whole."""
    root = value
    while type(root.base) is type(root) and root.base.dtype == value.dtype:
        root = root.base
    if not layout.shares_objects(root, value) or root is value:
        return None
    here, first = (array.__array_interface__["data"][0] for array in (value, root))
    return _OBJECT_VIEW, (root, (value.shape, value.strides, here - first))


def _mapped_file(value: Any, np: Any) -> list[str]:  # noqa: ANN401 - any array
    """The file that writing to an array changes here, but not in a trial."""
    while isinstance(value, np.ndarray):
        if isinstance(value, np.memmap) and value.mode in _WRITES_TO_FILE:
            return [f"is mapped to the file {value.filename}; a trial has its content now, and does not write to it"]
        value = value.base
    return []

"""Which arrays and tensors share memory, found by their addresses."""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import combinations
from pickle import PickleBuffer
from typing import Any, NamedTuple

_ALIGNED_BYTES = 16
_COMPARED_AT_MOST = 64
_SPARSE = 2
_WORK = 10_000


class Span(NamedTuple):
    """Where one array lies.

    Attributes:
        low: The address of its first byte.
        high: That after its last byte.
        start: The address of its first element; other than `low` where a stride is negative.
        shape: Its shape.
        strides: Its strides in bytes.
        item_bytes: The size of an element.
        value: The array; held, so that nothing else takes its place.
    """

    low: int
    high: int
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    item_bytes: int
    value: object

    def own_bytes(self) -> int:
        """The bytes of its elements; those that a stride of 0 repeats count once."""
        size_bytes = self.item_bytes
        for length, stride in zip(self.shape, self.strides, strict=True):
            size_bytes *= length if stride else 1
        return size_bytes


def span(start: int, shape: Sequence[int], strides: Sequence[int], item_bytes: int, value: object) -> Span:
    """Where an array with this first element lies; shape and strides in bytes."""
    low = high = start
    for length, stride in zip(shape, strides, strict=True):
        reach = (length - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return Span(low, high + item_bytes, start, tuple(shape), tuple(strides), item_bytes, value)


class Region:
    """A piece of memory that travels once, and everything that lies in it.

    Args:
        spans: The arrays; one, or several that overlap.
        owner: The object that is this memory and travels itself, such as a bytearray; None when there is none.
    """

    def __init__(self, spans: Sequence[Span], owner: object = None) -> None:
        self.spans = spans
        self.owner = owner
        self.low = min(one.low for one in spans)
        self.high = max(one.high for one in spans)
        self.is_shared = owner is not None or len({id(one.value) for one in spans}) > 1
        # What lies askew here lies so there too, whatever else lies in the same memory.
        self._lead_bytes = self.low % _ALIGNED_BYTES if self.is_shared and owner is None else 0
        self._buffer: object = owner

    def offset(self, address: int) -> int:
        """Where an address lies in the buffer."""
        return address - self.low + self._lead_bytes

    @property
    def size_bytes(self) -> int:
        """The size of the buffer."""
        return self.high - self.low + self._lead_bytes

    def buffer(self) -> object:
        """What to pickle; always the same object, so that it travels once."""
        if self._buffer is None:
            self._buffer = PickleBuffer(self._content())
        return self._buffer

    def _content(self) -> bytearray | memoryview:
        whole = memoryview((ctypes.c_char * (self.high - self.low)).from_address(self.low)).cast("B")
        first = self.spans[0]
        if not self.is_shared and first.own_bytes() < first.high - first.low:
            return _without_gaps(first)
        return bytearray(self._lead_bytes) + whole if self._lead_bytes else whole


class ArrayMemory:
    """The memory of all arrays of one capture.

    They are first noted, as they are found; once all are known, `join` makes regions of those that overlap.
    """

    def __init__(self) -> None:
        self._owned: dict[int, int] = {}
        self._noted: list[tuple[int, int]] | None = None
        self._regions: list[Region] = []
        self._starts: list[int] = []
        self._object_views: dict[int, tuple[object, dict[int, object]]] = {}

    @property
    def has_views(self) -> bool:
        """Whether any array was noted that does not own its memory; else none can overlap."""
        return self._noted is not None

    def views_of(self, root: object) -> dict[int, object]:
        """The views of an array of objects found so far, itself among them, by identity; to be added to."""
        return self._object_views.setdefault(id(root), (root, {}))[1]

    def note(self, low: int, high: int, *, owns: bool) -> bool:
        """Note an array; True when it lies in memory that was noted before.

        Args:
            low: The address of its first byte.
            high: That after its last byte.
            owns: Whether it owns its memory: then nothing but itself and views, noted without this, can lie there.
        """
        if owns and self._noted is None:
            known = low in self._owned
            self._owned[low] = high
            return known
        if self._noted is None:
            self._noted = sorted(self._owned.items())
        return _insert(self._noted, low, high)

    def join(self, spans: Iterable[Span], owners: Iterable[Span] = ()) -> None:
        """Make the regions in which several arrays lie.

        Args:
            spans: The arrays.
            owners: Other objects that arrays may be views of, such as bytearrays; they travel themselves.
        """
        parts = [part for cluster in _clusters([*spans, *owners]) for part in _overlapping(cluster)]
        whole = {id(one.value) for one in owners}
        regions: list[Region] = []
        for part in parts:
            owned = (one.value for one in part if id(one.value) in whole)
            regions.append(Region(part, next(owned, None)))
        self._regions = sorted((one for one in regions if one.is_shared), key=lambda one: one.low)
        self._starts = [one.low for one in self._regions]

    def region(self, low: int, high: int) -> Region | None:
        """The joined region in which these addresses lie; None when nothing else lies there."""
        at = bisect_right(self._starts, low) - 1
        if at < 0 or self._regions[at].high < high:
            return None
        return self._regions[at]


def is_sparse(one: Span) -> bool:
    """Whether an array lies scattered over much more memory than its own elements need."""
    return one.high - one.low > _SPARSE * one.own_bytes() + _ALIGNED_BYTES


def _insert(noted: list[tuple[int, int]], low: int, high: int) -> bool:
    """Insert addresses into a sorted list of pieces that do not overlap; True when they overlap one."""
    first = last = bisect_right(noted, (high - 1, high))
    while first and noted[first - 1][1] > low:
        first -= 1
    overlapped = noted[first:last]
    if overlapped:
        low, high = min(low, overlapped[0][0]), max(high, overlapped[-1][1])
    noted[first:last] = [(low, high)]
    return bool(overlapped)


def _clusters(spans: Sequence[Span]) -> list[list[Span]]:
    """Arrays whose addresses overlap, together."""
    clusters: list[list[Span]] = []
    high = -1
    for one in sorted(spans, key=lambda one: one.low):
        if one.low < high:
            clusters[-1].append(one)
        else:
            clusters.append([one])
        high = max(high, one.high)
    return clusters


def _overlapping(cluster: list[Span]) -> list[list[Span]]:
    """Arrays that truly share elements, together; columns of one table only interleave.

    Looked at only where the memory around them is much larger than they are; else it travels as it is.
    """
    size_bytes = max(one.high for one in cluster) - min(one.low for one in cluster)
    needed_bytes = sum(one.own_bytes() for one in cluster)
    if len(cluster) > _COMPARED_AT_MOST or size_bytes <= _SPARSE * needed_bytes:
        return [cluster]
    import numpy as np  # noqa: PLC0415 - only captures with scattered arrays pay

    views = [_view(one, np) for one in cluster]
    group = list(range(len(cluster)))
    for one, other in combinations(range(len(cluster)), 2):
        if group[one] != group[other] and _meet(views[one], views[other], np):
            joined = group[one]
            left = group[other]
            group = [joined if number == left else number for number in group]
    parts: dict[int, list[Span]] = {number: [] for number in sorted(set(group))}
    for span, number in zip(cluster, group, strict=True):
        parts[number].append(span)
    return list(parts.values())


def _meet(view: Any, other: Any, np: Any) -> bool:  # noqa: ANN401 - NumPy and its arrays
    """Whether two arrays have an element in common; where this is too expensive to find out, True."""
    try:
        return bool(np.shares_memory(view, other, max_work=_WORK))
    except np.exceptions.TooHardError:
        return True


def _view(one: Span, np: Any) -> Any:  # noqa: ANN401 - NumPy itself
    """The bytes of an array, whatever it is made of."""
    memory = (ctypes.c_char * (one.high - one.low)).from_address(one.low)
    return np.ndarray(one.shape, f"V{one.item_bytes}", memory, one.start - one.low, one.strides)


def _without_gaps(one: Span) -> bytearray:
    """The memory of a single array; what lies between its elements is not its own."""
    import numpy as np  # noqa: PLC0415 - only captures of such arrays pay

    clean = bytearray(one.high - one.low)
    np.ndarray(one.shape, f"V{one.item_bytes}", clean, one.start - one.low, one.strides)[...] = _view(one, np)
    return clean

"""How big things are, told without copying or pickling them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import islice

from jupyter_autotrain.capture.refuse import parts

_SEEN_AT_MOST = 20_000
_SAMPLE = 1_000
_UNITS = ("B", "kB", "MB", "GB", "TB")


def human(size_bytes: float) -> str:
    """A size for people: `4.2 MB` (powers of 1000)."""
    for unit in _UNITS[:-1]:
        if size_bytes < 999.5:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.3g} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.3g} {_UNITS[-1]}"


def measure(value: object) -> int:
    """Roughly the bytes that a value takes when pickled; long lists of plain items are sampled."""
    total, seen, stack = 0, set[int](), [value]
    while stack and len(seen) < _SEEN_AT_MOST:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        own = _own_bytes(item)
        if own is not None:
            total += own
            continue
        total += _plain_bytes(item)
        stack.extend(inner for _, inner in parts(item))
    return total


def tree(sizes: Mapping[str, int], *, rows: int = 3) -> str:
    """The largest entries of a table of sizes, one line each, and what the rest comes to."""
    largest = sorted(sizes.items(), key=lambda entry: (-entry[1], entry[0]))
    lines = [f"  {human(size):>8}  {name}" for name, size in largest[:rows]]
    if rest := largest[rows:]:
        lines.append(f"  {human(sum(size for _, size in rest)):>8}  in {len(rest)} more")
    return "\n".join(lines)


def _own_bytes(item: object) -> int | None:
    """Bytes of an object that knows its size: arrays, tensors, tables, text."""
    if isinstance(item, str | bytes | bytearray):
        return len(item)
    if isinstance(item, type):
        return 0
    size = getattr(item, "nbytes", None)
    if isinstance(size, int):
        return size
    usage = getattr(item, "memory_usage", None)
    if callable(usage) and type(item).__module__.startswith("pandas"):
        counted = usage(deep=False)
        return int(counted if isinstance(counted, int) else counted.sum())
    return None


def _plain_bytes(item: object) -> int:
    """Bytes of the numbers and short texts that a container holds directly."""
    if not isinstance(item, list | tuple | set | frozenset) or not item:
        return 8
    sample = [part for part in islice(item, _SAMPLE) if isinstance(part, int | float | str | bytes | complex)]
    known = sum(len(part) if isinstance(part, str | bytes) else min(sys.getsizeof(part), 9) for part in sample)
    return known * len(item) // min(len(item), _SAMPLE)

"""Fused projections in a trace: products whose output a model cuts into parts, by their places or by unequal sizes.

Such a cut looks like any other, which keeps the dim that it cuts whole. Of a product with weights it need not: the
weights can be laid out so that each device has its share of every part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

from jupyter_autotrain.parallel.trace.traced_ops import SeenTensor, TracedOp

_PRODUCTS: Final = frozenset(("linear", "addmm", "mm"))
_SPLITS: Final = frozenset(("split", "split_with_sizes"))


def note_parts(seen: Sequence[SeenTensor], records: Sequence[TracedOp]) -> dict[str, list[int]]:
    """Give the cuts of fused projections the sizes of all parts, as the argument `parts`.

    Returns: Path of the module with the product → features of its parts.
    """
    made = _products(records)
    cuts: dict[int, list[TracedOp]] = defaultdict(list)
    reads: dict[int, int] = defaultdict(int)
    for record in records:
        for place in record.inputs:
            reads[place] += 1
            if place in made and record.kind in {"slice", *_SPLITS}:
                cuts[place].append(record)
    found = {}
    for place, cutting in cuts.items():
        parts = _parts(seen, place, cutting)
        if parts and reads[place] == len(cutting):
            found[made[place]] = parts
            for record in cutting:
                record.args = {**record.args, "parts": parts}
    return found


def _products(records: Sequence[TracedOp]) -> Mapping[int, str]:
    """Return what modules make that multiply by weights and do nothing else, each with the module's path."""
    made: dict[int, str] = {}
    for record in records:
        path, _, _ = record.name.rpartition(".")
        is_product = record.kind in _PRODUCTS
        goes_on = record.kind in {"view", "_unsafe_view"} and made.get(record.inputs[0]) == path
        if path and (is_product or goes_on):
            made[record.outputs[0]] = path
    return made


def _parts(seen: Sequence[SeenTensor], place: int, cutting: Sequence[TracedOp]) -> list[int]:
    """Return the sizes of the parts into which the last dim is cut; none where it is cut otherwise."""
    shape = seen[place].shape
    last = {len(shape) - 1, -1}
    if any(record.args.get("dim", 0) not in last for record in cutting):
        return []
    if len(cutting) == 1 and cutting[0].kind in _SPLITS:
        parts = [seen[out].shape[-1] for out in cutting[0].outputs]
        return parts if len(set(parts)) > 1 else []
    if any(record.kind != "slice" or record.args.get("step", 1) != 1 for record in cutting):
        return []
    return _tiles(shape[-1], sorted(_stretch(seen, record) for record in cutting))


def _stretch(seen: Sequence[SeenTensor], record: TracedOp) -> tuple[int, int]:
    """Return where a slice of the last dim begins, and how long it is."""
    first = record.args.get("start")
    whole = seen[record.inputs[0]].shape[-1]
    return (first if isinstance(first, int) else 0) % whole, seen[record.outputs[0]].shape[-1]


def _tiles(size: int, stretches: Sequence[tuple[int, int]]) -> list[int]:
    """Return the sizes of stretches that one after another are the whole; none otherwise."""
    parts = [length for _, length in stretches]
    ends = list(accumulate(parts))
    is_whole = len(parts) > 1 and [first for first, _ in stretches] == [0, *ends[:-1]] and ends[-1] == size
    return parts if is_whole else []

"""Packed sequences on shapes: how many rows each step has is known where the lengths are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import torch

from jupyter_autotrain.parallel.trace.values import IntegerValues


def pack(
    values: IntegerValues, x: torch.Tensor, lengths: torch.Tensor, batch_first: bool
) -> tuple[torch.Tensor, ...] | None:
    """Stand in for `torch._VF._pack_padded_sequence`: all rows, and rows per step; None if lengths are unknown."""
    known = values.numbers(lengths)
    if known is None:
        return None
    steps_first = x.transpose(0, 1) if batch_first else x
    sizes = _counts(known, max(known))
    rows = values.of_numbers(_rows(sizes, len(known)), lengths)
    flat = steps_first.reshape(-1, *steps_first.shape[2:])
    return flat.index_select(0, rows), values.of_numbers(sizes, lengths)


def pad(
    values: IntegerValues,
    data: torch.Tensor,
    batch_sizes: torch.Tensor,
    batch_first: bool,
    padding_value: float,
    total_length: int,
) -> tuple[torch.Tensor, ...] | None:
    """Stand in for `torch._VF._pad_packed_sequence`: padded sequences, and their lengths; None if sizes are unknown."""
    sizes = values.numbers(batch_sizes)
    if sizes is None:
        return None
    batch = sizes[0]
    steps = max(total_length, len(sizes))
    rows = values.of_numbers(_rows(sizes, batch), batch_sizes)
    flat = data.new_full((steps * batch, *data.shape[1:]), padding_value).index_copy(0, rows, data)
    out = flat.view(steps, batch, *data.shape[1:])
    return out.transpose(0, 1) if batch_first else out, values.of_numbers(_counts(sizes, batch), batch_sizes)


def _counts(numbers: Sequence[int], end: int) -> list[int]:
    """How many of the numbers are greater than 0, 1, ... up to the end: lengths become sizes of steps, and back."""
    return [_count_above(numbers, place) for place in range(end)]


def _count_above(numbers: Sequence[int], place: int) -> int:
    return sum(number > place for number in numbers)


def _rows(sizes: Sequence[int], batch: int) -> list[int]:
    """Where the rows lie among (steps x batch) padded ones."""
    return list(chain.from_iterable(range(step * batch, step * batch + size) for step, size in enumerate(sizes)))

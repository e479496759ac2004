"""The one rule by which the attempts of a trial make one curve: a later attempt replaces it from its first step on.

A trial that resumes at step 50 keeps what was reported below 50; one that begins anew keeps nothing. Each metric is
joined by its own steps.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, TypeAlias

from jupyter_autotrain.store.mixin import check_types, undamaged

TimedColumns: TypeAlias = tuple[memoryview, memoryview, memoryview]
"""Steps (int64), times (seconds since the epoch) and values (float64, NaN where NaN was reported) as they lie there."""

_CHUNKS: Final = """
SELECT number, attempt, columns FROM series JOIN chunks ON chunks.series = series.id
WHERE series.experiment = ? AND name = ? {} ORDER BY number, attempt, first_id
"""
_NEWEST_FIRST: Final = """
SELECT attempt, columns FROM series JOIN chunks ON chunks.series = series.id
WHERE series.experiment = ? AND name = ? AND number = ? AND attempt <= ? ORDER BY attempt DESC, first_id DESC
"""
_ITEM_BYTES: Final = 8


def curves(
    connection: sqlite3.Connection, key: int, name: str, number: int | None = None
) -> Iterator[tuple[int, list[TimedColumns]]]:
    """Give the curve of a metric in pieces, trial by trial; of all trials or of one."""
    of_one = "" if number is None else "AND number = ?"
    rows = connection.execute(_CHUNKS.format(of_one), (key, name) if number is None else (key, name, number))
    for trial, of_trial in groupby(rows, itemgetter(0)):
        curve: list[TimedColumns] = []
        for _, of_attempt in groupby(of_trial, itemgetter(1)):
            pieces = [_timed_columns(trial, name, blob) for _, _, blob in of_attempt]
            curve = [*_below(curve, _first_step(pieces[0])), *pieces]
        yield trial, curve


def newest_values(
    connection: sqlite3.Connection, key: int, name: str, trial: tuple[int, int], first_step: int
) -> Iterator[Sequence[float]]:
    """Give the values of a curve from its newest piece to its oldest, each piece in order.

    Args:
        connection: Inside the transaction that adds more of them.
        key: The experiment's.
        name: The metric.
        trial: Its number and present attempt.
        first_step: The first step of what is about to be added.
    """
    number, at = trial
    end: int | None = None
    for attempt, blob in connection.execute(_NEWEST_FIRST, (key, name, number, at)):
        piece = _timed_columns(number, name, blob)
        if attempt != at:
            at = attempt
            end = first_step if end is None else min(end, first_step)
        first_step = _first_step(piece)
        for _, _, values in [piece] if end is None else _below([piece], end):
            yield values.cast("d")


def _below(pieces: Iterable[TimedColumns], step: int) -> Iterator[TimedColumns]:
    """Give the rows whose step is below `step`; steps do not fall."""
    for steps, times, values in pieces:
        size = _ITEM_BYTES * bisect_left(steps.cast("q"), step)
        if size:
            yield steps[:size], times[:size], values[:size]
        if size < len(steps):
            return


def _first_step(piece: TimedColumns) -> int:
    return int(piece[0].cast("q")[0])


def _timed_columns(number: int, name: str, blob: bytes) -> TimedColumns:
    """Return the columns of a chunk, not copied: a long series is thinned out before anybody needs its numbers.

    Raises:
        DamagedRowError: They are not what was written.
    """
    with undamaged(f"metric {name!r} of trial {number}"):
        check_types((number, int), (name, str), (blob, bytes))
        third, odd = divmod(len(blob), 3)
        if odd or not third or third % _ITEM_BYTES:
            raise ValueError("its columns are not of one length")
        columns = memoryview(blob)
        return columns[:third], columns[third : 2 * third], columns[2 * third :]

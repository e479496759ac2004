"""The reports of trials: metrics and notes, curves over attempts, and the value that a trial is ranked by.

The one rule by which the attempts of a trial make one curve: a later attempt replaces it from its first step on. A
trial that resumes at step 50 keeps what was reported below 50; one that begins anew keeps nothing. Each metric is
joined by its own steps.

The value of a trial: its curve of the objective's metric, attempts joined, by the objective's own rule. It moves in
the transaction that adds the points, so it always is what a new computation from them would give.

Reading metrics and notes of trials. Points are kept as columns (see `schema`), because one row per point would cost
an order of magnitude both ways.
"""

from __future__ import annotations

import math
import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from typing import Final, TypeAlias

from jupyter_autotrain.core.objective import Objective, RunningValue
from jupyter_autotrain.core.records import MetricPoint, Note
from jupyter_autotrain.store.mixin import StoreMixin, check_types, key_of, plain, undamaged

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
            curve = [*below(curve, _first_step(pieces[0])), *pieces]
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
        for _, _, values in [piece] if end is None else below([piece], end):
            yield values.cast("d")


def below(pieces: Iterable[TimedColumns], step: int) -> Iterator[TimedColumns]:
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


Point = tuple[str, int, float, float | None]


def update_objective_value(
    connection: sqlite3.Connection, where: tuple[int, int, int], objective: Objective, points: Sequence[Point]
) -> None:
    """Bring a trial's value up to date with points that are about to be added.

    Args:
        connection: Inside the transaction that adds them.
        where: Experiment key, trial number, attempt; an attempt that is not the trial's present one changes nothing.
        objective: The experiment's objective.
        points: Rows of (name, step, time in seconds since the epoch, value or None for NaN).
    """
    reports = [(step, value) for name, step, _, value in points if name == objective.metric]
    query = "SELECT value, value_count FROM trials WHERE experiment = ? AND number = ? AND attempt = ?"
    row = connection.execute(query, where).fetchone() if reports else None
    if row is None:
        return
    value, count = row
    first_step = reports[0][0]
    if count or _has_reported(connection, where, objective):
        running = RunningValue(objective, value, count, _newest(connection, where, objective, first_step))
    else:  # what the curve keeps of the attempts before begins the value
        running = RunningValue(objective)
        running.extend(_newest(connection, where, objective, first_step, math.inf))
    running.extend(value for _, value in reports if value is not None)
    connection.execute(
        "UPDATE trials SET value = ?, value_count = ? WHERE experiment = ? AND number = ? AND attempt = ?",
        (running.value, running.count, *where),
    )


def _has_reported(connection: sqlite3.Connection, where: tuple[int, int, int], objective: Objective) -> bool:
    query = "SELECT 1 FROM series WHERE experiment = ? AND number = ? AND attempt = ? AND name = ?"
    return connection.execute(query, (*where, plain(objective.metric))).fetchone() is not None


def _newest(
    connection: sqlite3.Connection, where: tuple[int, int, int], objective: Objective, first_step: int, most: float = 0
) -> list[float]:
    """Return the newest finite values of the curve: as many as the objective's window holds, else up to `most`."""
    missing = objective.window or most
    pieces: list[list[float]] = []
    if missing:
        for values in newest_values(connection, where[0], plain(objective.metric), where[1:], first_step):
            pieces.append(list(filter(math.isfinite, values)))
            missing -= len(pieces[-1])
            if missing <= 0:
                break
    return [*chain.from_iterable(reversed(pieces))]


Columns: TypeAlias = "tuple[array[int], array[float]]"
"""Steps (int64) and values (float64, NaN where NaN was reported) of the curve of one trial."""


@dataclass(frozen=True, slots=True)
class MetricChunk:
    """Points of one metric of one attempt that arrived together; `last_id` is the id of the newest of them.

    `times` are seconds since the epoch, one per point.
    """

    last_id: int
    number: int
    attempt: int
    name: str
    columns: Columns
    times: array[float]


class MetricTables(StoreMixin):
    """The metrics and notes that trials report."""

    def points(
        self, experiment_id: str, after_id: int = 0, limit: int = 100_000, names: Collection[str] | None = None
    ) -> list[MetricPoint]:
        """Get the points whose id is above `after_id`, in order of id, at most `limit`; of some metrics or of all."""
        query = (
            "SELECT first_id, last_id, number, attempt, name, columns FROM chunks JOIN series ON series.id = series "
            "WHERE chunks.experiment = ? AND last_id > ? ORDER BY last_id"
        )
        found: list[MetricPoint] = []
        with self._database.read() as connection:
            for row in connection.execute(query, (key_of(connection, experiment_id), after_id)):
                if len(found) >= limit:
                    break
                if names is None or row[4] in names:
                    found.extend(_points_of_chunk(row, after_id))
        return found[:limit]

    def series(self, experiment_id: str, name: str, of_trial: int | None = None) -> dict[int, Columns]:
        """Return one metric of all trials, or of one, as columns by trial number, attempts joined as `curves` says."""
        found: dict[int, Columns] = {}
        with self._database.read() as connection:
            for number, pieces in curves(connection, key_of(connection, experiment_id), name, of_trial):
                steps = b"".join(piece[0] for piece in pieces)
                values = b"".join(piece[2] for piece in pieces)
                found[number] = array("q", steps), array("d", values)
        return found

    def metric_chunks(self, experiment_id: str, after_id: int = 0) -> list[MetricChunk]:
        """Return what arrived after the piece that ended with `after_id`, as columns, in order of arrival.

        Views follow an experiment with it: it costs nothing per point.
        """
        query = (
            "SELECT last_id, number, attempt, name, columns FROM chunks JOIN series ON series.id = series "
            "WHERE chunks.experiment = ? AND last_id > ? ORDER BY last_id"
        )
        with self._database.read() as connection:
            rows = connection.execute(query, (key_of(connection, experiment_id), after_id)).fetchall()
        return list(map(_metric_chunk, rows))

    def metric_names(self, experiment_id: str, number: int | None = None, attempt: int | None = None) -> list[str]:
        """Return the metrics reported so far, in order of their first report.

        They are those of all trials, of one, or of one attempt.
        """
        query = (
            "SELECT name FROM series WHERE experiment = :experiment AND (:number IS NULL OR number = :number) "
            "AND (:attempt IS NULL OR attempt = :attempt) GROUP BY name ORDER BY min(id)"
        )
        with self._database.read() as connection:
            where = {"experiment": key_of(connection, experiment_id), "number": number, "attempt": attempt}
            return [name for (name,) in connection.execute(query, where)]

    def last_steps(self, experiment_id: str) -> dict[tuple[int, int], int]:
        """Return the step that each trial reported last, by (number, attempt).

        Those that reported nothing are not in it.
        """
        newest = (
            "SELECT number, attempt, name, max(last_id) FROM chunks JOIN series ON series.id = series "
            "WHERE chunks.experiment = ? GROUP BY number, attempt"
        )
        of_chunk = "SELECT columns FROM chunks WHERE experiment = ? AND last_id = ?"
        steps: dict[tuple[int, int], int] = {}
        with self._database.read() as connection:
            key = key_of(connection, experiment_id)
            for number, attempt, name, last_id in connection.execute(newest, (key,)).fetchall():
                (blob,) = connection.execute(of_chunk, (key, last_id)).fetchone()
                steps[number, attempt] = _columns(number, name, blob)[0][-1]
        return steps

    def notes(self, experiment_id: str, after_id: int = 0) -> list[Note]:
        """Messages of the trials whose id is above `after_id`, in order of arrival."""
        query = (
            "SELECT id, number, attempt, time_s, level, text, count FROM notes "
            "WHERE experiment = ? AND id > ? ORDER BY id"
        )
        with self._database.read() as connection:
            rows = connection.execute(query, (key_of(connection, experiment_id), after_id)).fetchall()
        return list(map(_note, rows))


def _note(row: tuple[int, int, int, float, str, str, int]) -> Note:
    with undamaged(f"a note of trial {row[1]}"):
        check_types((row[3], int | float), (row[4], str), (row[5], str))
        return Note(*row)


def _columns(number: int, name: str, blob: bytes) -> tuple[array[int], array[float], array[float]]:
    """Return steps, times and values of a chunk.

    Raises:
        DamagedRowError: They are not what was written.
    """
    with undamaged(f"metric {name!r} of trial {number}"):
        check_types((number, int), (name, str), (blob, bytes))
        third, odd = divmod(len(blob), 3)
        if odd or not third:
            raise ValueError("its columns are not of one length")
        return array("q", blob[:third]), array("d", blob[third : 2 * third]), array("d", blob[2 * third :])


def _metric_chunk(row: tuple[int, int, int, str, bytes]) -> MetricChunk:
    last_id, number, attempt, name, blob = row
    steps, times, values = _columns(number, name, blob)
    return MetricChunk(last_id, number, attempt, name, (steps, values), times)


def _points_of_chunk(row: tuple[int, int, int, int, str, bytes], after_id: int) -> Iterator[MetricPoint]:
    first_id, last_id, number, attempt, name, blob = row
    steps, times, values = _columns(number, name, blob)
    with undamaged(f"metric {name!r} of trial {number}"):
        if last_id + 1 - first_id != len(values):
            raise ValueError(f"{len(values)} points in place of {last_id + 1 - first_id}")
    for index in range(max(after_id + 1 - first_id, 0), len(values)):
        value = values[index]
        finite = value if math.isfinite(value) else None
        yield MetricPoint(first_id + index, number, attempt, name, steps[index], times[index], finite)

"""Reading metrics and notes of trials.

Points are kept as columns (see `schema`), because one row per point would cost an order of magnitude both ways.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from jupyter_autotrain.core.records import MetricPoint, Note
from jupyter_autotrain.store.curves import curves
from jupyter_autotrain.store.mixin import StoreMixin, check_types, key_of, undamaged

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
    """What trials report."""

    def points(
        self, experiment_id: str, after_id: int = 0, limit: int = 100_000, names: Collection[str] | None = None
    ) -> list[MetricPoint]:
        """The points whose id is above `after_id`, in order of id, at most `limit`; of some metrics or of all."""
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

    def series(self, experiment_id: str, name: str) -> dict[int, Columns]:
        """Return one metric of all trials as columns, by trial number, attempts joined as `curves` says."""
        found: dict[int, Columns] = {}
        with self._database.read() as connection:
            for number, pieces in curves(connection, key_of(connection, experiment_id), name):
                steps = b"".join(piece[0] for piece in pieces)
                values = b"".join(piece[2] for piece in pieces)
                found[number] = array("q", steps), array("d", values)
        return found

    def metric_chunks(self, experiment_id: str, after_id: int = 0) -> list[MetricChunk]:
        """What arrived after the piece that ended with `after_id`, as columns, in order of arrival.

        Views follow an experiment with it: it costs nothing per point.
        """
        query = (
            "SELECT last_id, number, attempt, name, columns FROM chunks JOIN series ON series.id = series "
            "WHERE chunks.experiment = ? AND last_id > ? ORDER BY last_id"
        )
        with self._database.read() as connection:
            rows = connection.execute(query, (key_of(connection, experiment_id), after_id)).fetchall()
        return [_metric_chunk(row) for row in rows]

    def metric_names(self, experiment_id: str, number: int | None = None, attempt: int | None = None) -> list[str]:
        """The metrics reported so far, in order of their first report; of all trials, or of one, or of one attempt."""
        query = (
            "SELECT name FROM series WHERE experiment = :experiment AND (:number IS NULL OR number = :number) "
            "AND (:attempt IS NULL OR attempt = :attempt) GROUP BY name ORDER BY min(id)"
        )
        with self._database.read() as connection:
            where = {"experiment": key_of(connection, experiment_id), "number": number, "attempt": attempt}
            return [name for (name,) in connection.execute(query, where)]

    def last_steps(self, experiment_id: str) -> dict[tuple[int, int], int]:
        """The step that each trial reported last, by (number, attempt); those that reported nothing are not in it."""
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
        return [_note(row) for row in rows]


def _note(row: tuple[int, int, int, float, str, str, int]) -> Note:
    with undamaged(f"a note of trial {row[1]}"):
        check_types((row[3], int | float), (row[4], str), (row[5], str))
        return Note(*row)


def _columns(number: int, name: str, blob: bytes) -> tuple[array[int], array[float], array[float]]:
    """Steps, times and values of a chunk.

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

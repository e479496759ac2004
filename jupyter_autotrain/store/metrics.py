"""Metrics and notes of trials, and the cursors that tell how far each stream has been read.

Points and cursor move in one transaction, so a manager killed at any instant neither loses nor doubles one.
Points are kept as columns (see `schema`), because one row per point would cost an order of magnitude both ways.
"""

from __future__ import annotations

import math
import sqlite3
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.records import MetricPoint, Note
from jupyter_autotrain.errors import StoreError
from jupyter_autotrain.store.section import Section, key_of, plain
from jupyter_autotrain.store.values import keep_value

Columns: TypeAlias = "tuple[array[int], array[float]]"
"""Steps (int64) and values (float64, NaN where NaN was reported) of one trial, in order of arrival."""

_CURSOR = "SELECT offset FROM cursors WHERE experiment = ? AND number = ? AND attempt = ? AND stream = ?"
_ADVANCE = (
    "INSERT INTO cursors (experiment, number, attempt, stream, offset) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (experiment, number, attempt, stream) DO UPDATE SET offset = excluded.offset"
)
_MOST_STEP = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Ingest:
    """What was read from one stream of one attempt, up to byte `cursor_after`.

    Attributes:
        experiment_id: The experiment.
        number: The trial.
        attempt: The attempt.
        stream: `stdout`, `stderr` or `metrics`.
        cursor_after: The offset up to which the stream has been read with this.
        points: Rows of (name, step, time in seconds since the epoch, value or None for NaN).
        notes: Rows of (time in seconds since the epoch, level, text, how often so far).
        cursor_before: The offset from which on it has been read with this; None: from where the last one ended.
        objective: What ranks the experiment's trials: the trial's value follows the points by its rule.
    """

    experiment_id: str
    number: int
    attempt: int
    stream: str
    cursor_after: int
    points: Sequence[tuple[str, int, float, float | None]] = ()
    notes: Sequence[tuple[float, str, str, int]] = ()
    cursor_before: int | None = None
    objective: Objective | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """Points of one metric of one attempt that arrived together; `last_id` is the id of the newest of them.

    `times` are seconds since the epoch, one per point.
    """

    last_id: int
    number: int
    attempt: int
    name: str
    columns: Columns
    times: array[float]


class Metrics(Section):
    """What trials report."""

    def cursor(self, experiment_id: str, number: int, attempt: int, stream: str) -> int:
        """How many bytes of a stream have been taken in."""
        with self._database.read() as connection:
            return _cursor(connection, (key_of(connection, experiment_id), number, attempt), stream)

    def ingest(self, rows: Sequence[Ingest]) -> None:
        """Take in what was read, all of it or nothing.

        A row whose cursor does not lie beyond the stored one was taken in before and is ignored, and so is a row of a
        deleted experiment. A step beyond 64 bits becomes the nearest that fits.

        Raises:
            StoreError: A row does not begin where the stream was left: some of its points would be lost or doubled.
        """
        with self._database.write() as connection:
            for row in rows:
                found = connection.execute("SELECT key FROM experiments WHERE id = ?", (row.experiment_id,)).fetchone()
                if found is not None:
                    _take_in(connection, found[0], row)

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
        """One metric of all trials as columns, by trial number; of each trial the latest attempt that reported it."""
        query = (
            "SELECT number, columns FROM series JOIN chunks ON chunks.series = series.id "
            "WHERE series.experiment = ?1 AND name = ?2 AND attempt = (SELECT max(attempt) FROM series AS other "
            "WHERE other.experiment = ?1 AND other.name = ?2 AND other.number = series.number) "
            "ORDER BY number, first_id"
        )
        columns: dict[int, Columns] = {}
        with self._database.read() as connection:
            for number, blob in connection.execute(query, (key_of(connection, experiment_id), name)):
                steps, values = columns.setdefault(number, (array("q"), array("d")))
                third = len(blob) // 3
                steps.frombytes(blob[:third])
                values.frombytes(blob[2 * third :])
        return columns

    def pieces(self, experiment_id: str, after_id: int = 0) -> list[Piece]:
        """What arrived after the piece that ended with `after_id`, as columns, in order of arrival.

        Views follow an experiment with it: it costs nothing per point.
        """
        query = (
            "SELECT last_id, number, attempt, name, columns FROM chunks JOIN series ON series.id = series "
            "WHERE chunks.experiment = ? AND last_id > ? ORDER BY last_id"
        )
        with self._database.read() as connection:
            rows = connection.execute(query, (key_of(connection, experiment_id), after_id)).fetchall()
        return [_piece(row) for row in rows]

    def metric_names(self, experiment_id: str, number: int | None = None, attempt: int | None = None) -> list[str]:
        """The metrics reported so far, in order of their first report; of all trials, or of one, or of one attempt."""
        query = (
            "SELECT name FROM series WHERE experiment = ?1 AND (?2 IS NULL OR number = ?2) "
            "AND (?3 IS NULL OR attempt = ?3) GROUP BY name ORDER BY min(id)"
        )
        with self._database.read() as connection:
            where = (key_of(connection, experiment_id), number, attempt)
            return [name for (name,) in connection.execute(query, where)]

    def last_step(self, experiment_id: str, number: int, attempt: int) -> int | None:
        """The step that an attempt of a trial reported last; None when it has reported nothing."""
        query = (
            "SELECT columns FROM chunks JOIN series ON series.id = series WHERE chunks.experiment = ? "
            "AND number = ? AND attempt = ? ORDER BY last_id DESC LIMIT 1"
        )
        with self._database.read() as connection:
            row = connection.execute(query, (key_of(connection, experiment_id), number, attempt)).fetchone()
        return None if row is None else _columns(row[0])[0][-1]

    def notes(self, experiment_id: str, after_id: int = 0) -> list[Note]:
        """Messages of the trials whose id is above `after_id`, in order of arrival."""
        query = (
            "SELECT id, number, attempt, time_s, level, text, count FROM notes "
            "WHERE experiment = ? AND id > ? ORDER BY id"
        )
        with self._database.read() as connection:
            return [Note(*row) for row in connection.execute(query, (key_of(connection, experiment_id), after_id))]


def _take_in(connection: sqlite3.Connection, key: int, row: Ingest) -> None:
    where = (key, row.number, row.attempt)
    stored = _cursor(connection, where, row.stream)
    if row.cursor_after <= stored:
        return
    _check_begin(row, stored)
    connection.execute(_ADVANCE, (*where, row.stream, row.cursor_after))
    if row.objective is not None:
        keep_value(connection, where, row.objective, row.points)
    for name, columns in _by_name(row.points).items():
        _add_chunk(connection, where, (name, stored), columns)
    for note in row.notes:
        _add_note(connection, where, note)


def _cursor(connection: sqlite3.Connection, where: tuple[int, int, int], stream: str) -> int:
    row = connection.execute(_CURSOR, (*where, stream)).fetchone()
    return int(row[0]) if row else 0


def _check_begin(row: Ingest, stored: int) -> None:
    if row.cursor_before not in {None, stored}:
        raise StoreError(
            f"{row.stream} of trial {row.number} was read from byte {row.cursor_before} on.",
            f"It was taken in up to byte {stored} before.",
            "Read it again from there.",
        )


def _add_note(connection: sqlite3.Connection, where: tuple[int, int, int], note: tuple[float, str, str, int]) -> None:
    """Keep a note; one that is sent again takes the place of the one before, with an id of its own that readers see."""
    time_s, level, text, count = note[0], note[1], plain(note[2]), note[3]
    if count > 1:
        again = "DELETE FROM notes WHERE experiment = ? AND number = ? AND attempt = ? AND level = ? AND text = ?"
        connection.execute(again, (*where, level, text))
    connection.execute(
        "INSERT INTO notes (experiment, number, attempt, time_s, level, text, count) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*where, time_s, level, text, count),
    )


def _columns(blob: bytes) -> Columns:
    third = len(blob) // 3
    return array("q", blob[:third]), array("d", blob[2 * third :])


def _piece(row: tuple[int, int, int, str, bytes]) -> Piece:
    last_id, number, attempt, name, blob = row
    third = len(blob) // 3
    return Piece(last_id, number, attempt, name, _columns(blob), array("d", blob[third : 2 * third]))


def _by_name(
    points: Sequence[tuple[str, int, float, float | None]],
) -> Mapping[str, tuple[list[int], list[float], list[float]]]:
    groups: dict[str, tuple[list[int], list[float], list[float]]] = {}
    for given, step, time_s, value in points:
        name = plain(given)
        steps, times, values = groups.get(name) or groups.setdefault(name, ([], [], []))
        steps.append(step)
        times.append(time_s)
        values.append(math.nan if value is None else value)
    return groups


def _add_chunk(
    connection: sqlite3.Connection,
    where: tuple[int, int, int],
    source: tuple[str, int],
    columns: tuple[list[int], list[float], list[float]],
) -> None:
    (name, offset), (steps, times, values) = source, columns
    last = connection.execute("SELECT last_id FROM chunks ORDER BY first_id DESC LIMIT 1").fetchone()
    first_id = last[0] + 1 if last else 1
    blob = b"".join((_int64(steps).tobytes(), array("d", times).tobytes(), array("d", values).tobytes()))
    connection.execute(
        "INSERT INTO chunks (first_id, last_id, experiment, series, columns, source_offset) VALUES (?, ?, ?, ?, ?, ?)",
        (first_id, first_id + len(steps) - 1, where[0], _series_id(connection, where, name), blob, offset),
    )


def _int64(steps: list[int]) -> array[int]:
    try:
        return array("q", steps)
    except OverflowError:
        return array("q", [min(max(step, -_MOST_STEP - 1), _MOST_STEP) for step in steps])


def _series_id(connection: sqlite3.Connection, where: tuple[int, int, int], name: str) -> int:
    query = "SELECT id FROM series WHERE experiment = ? AND number = ? AND attempt = ? AND name = ?"
    row = connection.execute(query, (*where, name)).fetchone()
    if row is None:
        add = "INSERT INTO series (experiment, number, attempt, name) VALUES (?, ?, ?, ?)"
        return int(connection.execute(add, (*where, name)).lastrowid or 0)
    return int(row[0])


def _points_of_chunk(row: tuple[int, int, int, int, str, bytes], after_id: int) -> Iterator[MetricPoint]:
    first_id, last_id, number, attempt, name, blob = row
    third = len(blob) // 3
    steps, times, values = array("q", blob[:third]), array("d", blob[third : 2 * third]), array("d", blob[2 * third :])
    for index in range(max(after_id + 1 - first_id, 0), last_id + 1 - first_id):
        value = values[index]
        yield MetricPoint(
            first_id + index, number, attempt, name, steps[index], times[index], value if math.isfinite(value) else None
        )

"""Ingests what trials report, and keeps the cursors: how far each stream has been read.

Points and cursor move in one transaction, so a manager killed at any instant neither loses nor doubles one.

Measured steps of plans stay when their experiments are deleted; a migration in `schema` fills them.
"""

from __future__ import annotations

import json
import math
import sqlite3
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from jupyter_autotrain.agent.json import from_json
from jupyter_autotrain.core.measurement import Measurement
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import TrialSource
from jupyter_autotrain.store.metrics import below, curves, update_objective_value
from jupyter_autotrain.store.mixin import StoreMixin, key_of, note_changes, plain, undamaged

NoteRow: TypeAlias = "tuple[float, str, str, int]"
"""Time in seconds since the epoch, level, text, how often so far."""

_CURSOR = "SELECT offset FROM cursors WHERE experiment = ? AND number = ? AND attempt = ? AND stream = ?"
_ADVANCE = (
    "INSERT INTO cursors (experiment, number, attempt, stream, offset) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (experiment, number, attempt, stream) DO UPDATE SET offset = excluded.offset"
)
_MOST_STEP = (1 << 63) - 1
_SOURCE = "SELECT source FROM trials WHERE experiment = ? AND number = ? AND source IS NOT NULL"
_IS_KNOWN = "SELECT 1 FROM series WHERE experiment = ? AND number = ? AND name = ?"


@dataclass(frozen=True, slots=True)
class Ingest:
    """The part that was read of one stream of one attempt, up to byte `cursor_after`.

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
    notes: Sequence[NoteRow] = ()
    cursor_before: int | None = None
    objective: Objective | None = None


class IngestTables(StoreMixin):
    """The progress of reading each stream, and its content."""

    def cursor(self, experiment_id: str, number: int, attempt: int, stream: str) -> int:
        """Return how many bytes of a stream have been ingested."""
        with self._database.read() as connection:
            return _cursor(connection, (key_of(connection, experiment_id), number, attempt), stream)

    def ingest(self, rows: Sequence[Ingest]) -> list[Ingest]:
        """Store what was read, in one transaction.

        A row whose cursor does not lie beyond the stored one was ingested before and is ignored, and so is a row of a
        deleted experiment. A step beyond 64 bits becomes the nearest that fits.

        Returns:
            The rows that do not begin at their stream's cursor. Nothing of them is ingested, because points would be
            lost or doubled; the stream has to be read again from the cursor.
        """
        left_out = []
        with self._database.write() as connection:
            note_changes(connection, {row.experiment_id for row in rows if row.points}, "metrics")
            note_changes(connection, {row.experiment_id for row in rows if row.notes}, "notes")
            for row in rows:
                found = connection.execute("SELECT key FROM experiments WHERE id = ?", (row.experiment_id,)).fetchone()
                if found is not None and not _ingest(connection, found[0], row):
                    left_out.append(row)
        return left_out

    def forget_reports(self, experiment_id: str, number: int, attempt: int) -> None:
        """Forget all that an attempt of a trial has reported, so that it can be ingested again from its stream."""
        with self._database.write() as connection:
            where = (key_of(connection, experiment_id), number, attempt)
            for table in ("series", "cursors", "notes"):
                forget = f"DELETE FROM {table} WHERE experiment = ? AND number = ? AND attempt = ?"  # noqa: S608 - own names
                connection.execute(forget, where)
            unranked = (
                "UPDATE trials SET value = NULL, value_count = 0 WHERE experiment = ? AND number = ? AND attempt = ?"
            )
            connection.execute(unranked, where)


def _ingest(connection: sqlite3.Connection, key: int, row: Ingest) -> bool:
    """Ingest one row; false when it does not begin at the stream's cursor."""
    where = (key, row.number, row.attempt)
    stored = _cursor(connection, where, row.stream)
    if row.cursor_before == row.cursor_after:
        _add_notes(connection, where, row.notes)  # nothing was read, but there are notes
        return True
    if row.cursor_after <= stored:
        return True
    if row.cursor_before not in {None, stored}:
        return False
    connection.execute(_ADVANCE, (*where, row.stream, row.cursor_after))
    groups = _by_name(row.points)
    for name, (steps, _, _) in groups.items():
        _inherit(connection, where, name, steps[0])
    if row.objective is not None:
        update_objective_value(connection, where, row.objective, row.points)
    for name, columns in groups.items():
        _add_chunk(connection, where, (name, stored), columns)
    _add_notes(connection, where, row.notes)
    return True


def _cursor(connection: sqlite3.Connection, where: tuple[int, int, int], stream: str) -> int:
    row = connection.execute(_CURSOR, (*where, stream)).fetchone()
    return int(row[0]) if row else 0


def _add_notes(connection: sqlite3.Connection, where: tuple[int, int, int], notes: Sequence[NoteRow]) -> None:
    for note in notes:
        _add_note(connection, where, note)


def _add_note(connection: sqlite3.Connection, where: tuple[int, int, int], note: NoteRow) -> None:
    """Keep a note; one that is sent again takes the place of the one before, with an id of its own that readers see."""
    time_s = note[0]
    level = note[1]
    text = plain(note[2])
    count = note[3]
    if count > 1:
        again = "DELETE FROM notes WHERE experiment = ? AND number = ? AND attempt = ? AND level = ? AND text = ?"
        connection.execute(again, (*where, level, text))
    connection.execute(
        "INSERT INTO notes (experiment, number, attempt, time_s, level, text, count) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*where, time_s, level, text, count),
    )


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
    source: tuple[str, int | None],
    columns: tuple[list[int], list[float], list[float]],
) -> None:
    (name, offset) = source
    (steps, times, values) = columns
    last = connection.execute("SELECT last_id FROM chunks ORDER BY first_id DESC LIMIT 1").fetchone()
    first_id = last[0] + 1 if last else 1
    blob = b"".join((_int64(steps).tobytes(), array("d", times).tobytes(), array("d", values).tobytes()))
    connection.execute(
        "INSERT INTO chunks (first_id, last_id, experiment, series, columns, source_offset) VALUES (?, ?, ?, ?, ?, ?)",
        (first_id, first_id + len(steps) - 1, where[0], _series_id(connection, where, name), blob, offset),
    )


def _inherit(connection: sqlite3.Connection, where: tuple[int, int, int], name: str, first_step: int) -> None:
    """Give a trial the curve of its source up to its own first step, as that of attempt 0; once for each metric."""
    row = connection.execute(_SOURCE, where[:2]).fetchone()
    if row is None or connection.execute(_IS_KNOWN, (*where[:2], name)).fetchone() is not None:
        return
    with undamaged(f"the source of trial {where[1]}"):
        source = from_json(TrialSource, json.loads(row[0]))
    found = connection.execute("SELECT key FROM experiments WHERE id = ?", (source.experiment_id,)).fetchone()
    if found is None:  # it was deleted since
        return
    begun: tuple[int, int, int] = (*where[:2], 0)
    for _, pieces in list(curves(connection, found[0], name, source.number)):
        for steps, times, values in below(pieces, first_step):
            columns = (list(steps.cast("q")), list(times.cast("d")), list(values.cast("d")))
            _add_chunk(connection, begun, (name, None), columns)


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


MOST: Final = 500  # of the newest, that are looked at


class PlacedMeasurement(NamedTuple):
    """A measurement with the place where its trial ran, and when it came, in seconds since the epoch."""

    place: str
    time_s: float
    measured: Measurement


class MeasurementTable(StoreMixin):
    """The measured steps of plans."""

    def measurements(self) -> list[PlacedMeasurement]:
        """Return the newest measurements first; what trials have told that is none is left out."""
        query = f"SELECT place, time_s, measured FROM measurements ORDER BY id DESC LIMIT {MOST}"  # noqa: S608 - a number
        with self._database.read() as connection:
            rows = connection.execute(query).fetchall()
        return [PlacedMeasurement(place, time_s, one) for place, time_s, text in rows if (one := _measurement(text))]


def _measurement(text: str) -> Measurement | None:
    """Return what a trial has told; None where it is no measurement, since trials may write anything."""
    try:
        found = from_json(Measurement, json.loads(text))
        _ = found.error, found.memory_error
    except (ValueError, TypeError, KeyError, ArithmeticError, AttributeError, RecursionError):
        return None
    return found

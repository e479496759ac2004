"""The value of a trial: its curve of the objective's metric, attempts joined, by the objective's own rule.

It moves in the transaction that adds the points, so it always is what a new computation from them would give.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from itertools import chain

from jupyter_autotrain.core.objective import Objective, RunningValue
from jupyter_autotrain.store.curves import newest_values
from jupyter_autotrain.store.mixin import plain

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
            pieces.append([value for value in values if math.isfinite(value)])
            missing -= len(pieces[-1])
            if missing <= 0:
                break
    return [*chain.from_iterable(reversed(pieces))]

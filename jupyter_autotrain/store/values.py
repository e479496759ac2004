"""The value of a trial: what its present attempt has reported of the objective, by the objective's own rule.

It moves in the transaction that adds the points, so it always is what a new computation from them would give.
"""

from __future__ import annotations

import math
import sqlite3
from array import array
from collections.abc import Sequence

from jupyter_autotrain.core.objective import Objective, RunningValue
from jupyter_autotrain.store.mixin import plain

Point = tuple[str, int, float, float | None]
_NEWEST_CHUNKS = (
    "SELECT columns FROM series JOIN chunks ON chunks.series = series.id "
    "WHERE series.experiment = ? AND number = ? AND attempt = ? AND name = ? ORDER BY first_id DESC"
)


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
    news = [value for name, _, _, value in points if name == objective.metric and value is not None]
    query = "SELECT value, value_count FROM trials WHERE experiment = ? AND number = ? AND attempt = ?"
    row = connection.execute(query, where).fetchone() if news else None
    if row is None:
        return
    value, count = row
    running = RunningValue(objective, value, count, _recent(connection, where, objective))
    running.extend(news)
    connection.execute(
        "UPDATE trials SET value = ?, value_count = ? WHERE experiment = ? AND number = ? AND attempt = ?",
        (running.value, running.count, *where),
    )


def _recent(connection: sqlite3.Connection, where: tuple[int, int, int], objective: Objective) -> list[float]:
    """The newest finite values in the store, as many as the objective's window holds."""
    recent: list[float] = []
    if objective.window is None:
        return recent
    for (blob,) in connection.execute(_NEWEST_CHUNKS, (*where, plain(objective.metric))):
        values = array("d", blob[2 * (len(blob) // 3) :])
        recent = [*filter(math.isfinite, values), *recent]
        if len(recent) >= objective.window:
            break
    return recent[-objective.window :]

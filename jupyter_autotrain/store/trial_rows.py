"""The rows of trials and of their state changes: added, changed and read in a transaction of the caller's."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from jupyter_autotrain.agent.json import JsonValue, from_json, to_json
from jupyter_autotrain.agent.states import LEGAL_TRANSITIONS, TrialState
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.spec import NodePlacement, Placement, TrialSource
from jupyter_autotrain.errors import StoreError
from jupyter_autotrain.store.mixin import check_types, undamaged

COLUMNS = (
    "number, state, params, reason, attempt, value, created_s, started_s, ended_s, ref, placement, backend, source"
)
_NOWHERE: Final = {"ref": None, "placement": "[]", "backend": ""}


def insert_trial(
    connection: sqlite3.Connection,
    key: int,
    trial: tuple[int, Mapping[str, JsonValue], float],
    source: TrialSource | None,
) -> None:
    """Add a WAITING trial: its number, parameters and time."""
    number, params, now_s = trial
    text = None if source is None else json.dumps(to_json(source))
    connection.execute(
        "INSERT INTO trials (experiment, number, state, params, created_s, source) VALUES (?, ?, ?, ?, ?, ?)",
        (key, number, TrialState.WAITING, json.dumps(to_json(params)), now_s, text),
    )
    insert_state_change(connection, key, (number, 1, TrialState.WAITING, now_s, ""))


def check_legal(trial: TrialRecord, state: TrialState) -> None:
    """Raise a StoreError where a trial cannot go to a state from its own."""
    allowed = LEGAL_TRANSITIONS[trial.state]
    if state not in allowed:
        raise StoreError(
            f"Trial {trial.number} cannot change from {trial.state} to {state}.",
            f"From {trial.state} it may go to: {', '.join(sorted(allowed)) or 'nowhere'}.",
            "Read the trial again: its state may have changed in between.",
        )


def columns_of_state(state: TrialState, now_s: float, *, begins: bool) -> dict[str, Any]:
    """Return the columns that a change to a state sets; `begins` where it begins a new attempt."""
    if begins:
        return {"started_s": None, "ended_s": None, "value_count": 0, **_NOWHERE}  # the value stays as the curve does
    if state is TrialState.WAITING:
        return _NOWHERE
    if state is TrialState.RUNNING:
        return {"started_s": now_s}
    return {"ended_s": now_s} if state.is_final else {}


def columns_of_place(ref: JobRef | None, placement: Placement | None) -> dict[str, Any]:
    """Return the columns that a job and a placement set; None sets nothing."""
    columns = {
        "ref": None if ref is None else json.dumps(to_json(ref)),
        "placement": None if placement is None else json.dumps(to_json(placement.nodes)),
        "backend": None if placement is None else placement.backend,
    }
    return {column: mark for column, mark in columns.items() if mark is not None}


def update_trial(connection: sqlite3.Connection, key: int, number: int, values: Mapping[str, Any]) -> None:
    """Set columns of a trial."""
    if values:
        columns = ", ".join(f"{column} = ?" for column in values)
        query = f"UPDATE trials SET {columns} WHERE experiment = ? AND number = ?"  # noqa: S608 - own column names
        connection.execute(query, (*values.values(), key, number))


def insert_state_change(
    connection: sqlite3.Connection,
    key: int,
    change: tuple[int, int, TrialState, float, str],
    placement: Placement | None = None,
) -> None:
    """Add a state change: number, attempt, state, time and reason."""
    query = (
        "INSERT INTO moves (experiment, number, attempt, state, time_s, reason, placement) VALUES (?, ?, ?, ?, ?, ?, ?)"
    )
    text = None if placement is None else json.dumps(to_json(placement))
    connection.execute(query, (key, *change, text))


def trial_of(connection: sqlite3.Connection, experiment_id: str, key: int, number: int) -> TrialRecord:
    """Return a trial.

    Raises:
        StoreError: There is no such trial.
    """
    query = f"SELECT {COLUMNS} FROM trials WHERE experiment = ? AND number = ?"  # noqa: S608 - own text
    row = connection.execute(query, (key, number)).fetchone()
    if row is None:
        last = connection.execute("SELECT max(number) FROM trials WHERE experiment = ?", (key,)).fetchone()[0]
        raise StoreError(
            f"There is no trial {number}.",
            f"The experiment has trials 1 to {last}." if last else "The experiment has no trial yet.",
            "Choose one of the numbers in the trials table.",
        )
    return trial_of_row(experiment_id, row)


def trial_of_row(experiment_id: str, row: tuple[Any, ...]) -> TrialRecord:
    """Return the record of a row with `COLUMNS`."""
    number, state, params, reason, attempt, value, created_s, started_s, ended_s, ref, nodes, backend, source = row
    with undamaged(f"trial {number} of experiment {experiment_id}"):
        check_types(
            (reason, str),
            (backend, str),
            (attempt, int),
            *((number_, float | int | None) for number_ in (value, created_s, started_s, ended_s)),
        )
        return TrialRecord(
            experiment_id=experiment_id,
            number=number,
            state=TrialState(state),
            params=json.loads(params),
            reason=reason,
            attempt=attempt,
            value=value,
            created_s=created_s,
            started_s=started_s,
            ended_s=ended_s,
            ref=None if ref is None else from_json(JobRef, json.loads(ref)),
            placement=Placement(tuple(from_json(NodePlacement, placed) for placed in json.loads(nodes)), backend),
            source=None if source is None else from_json(TrialSource, json.loads(source)),
        )

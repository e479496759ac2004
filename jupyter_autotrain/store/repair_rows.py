"""Rows that SQLite gives back whole and that still mean nothing, as after a flipped byte: set right, or taken out."""

from __future__ import annotations

import json
import sqlite3

from jupyter_autotrain.core.json import from_json
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.core.states import TrialState

_STATES = ", ".join(f"'{state.value}'" for state in TrialState)
_EMPTY = {"params": "'{}'", "placement": "'[]'", "ref": "NULL"}


def repair_rows(target: sqlite3.Connection) -> dict[str, str]:
    """Give every row what can be read; a trial's state comes from its newest move, else it is LOST.

    Returns:
        What was done, in words, by table.
    """
    unreadable = [key for key, spec in target.execute("SELECT key, spec FROM experiments") if not _is_spec(spec)]
    target.executemany("DELETE FROM experiments WHERE key = ?", [(key,) for key in unreadable])
    moves = target.execute(f"DELETE FROM moves WHERE state NOT IN ({_STATES})").rowcount  # noqa: S608 - own states
    target.execute(f"DELETE FROM end_decisions WHERE state NOT IN ({_STATES})")  # noqa: S608 - own states
    states = target.execute(
        "UPDATE trials SET state = coalesce((SELECT state FROM moves AS m WHERE m.experiment = trials.experiment "  # noqa: S608 - own states
        f"AND m.number = trials.number ORDER BY id DESC LIMIT 1), 'LOST') WHERE state NOT IN ({_STATES})"
    ).rowcount
    for table in ("trials", "moves", "end_decisions", "block_reasons"):
        target.execute(f"UPDATE {table} SET reason = '' WHERE typeof(reason) != 'text'")  # noqa: S608 - own names
    target.execute("UPDATE moves SET placement = NULL WHERE placement IS NOT NULL AND NOT json_valid(placement)")
    values = sum(_empty(target, column, empty) for column, empty in _EMPTY.items())
    found = {
        "experiments": f"{len(unreadable)} with a specification that cannot be read" if unreadable else "",
        "moves": f"{moves} with an unknown state" if moves else "",
        "trials": f"{states} with an unknown state, {values} unreadable values" if states or values else "",
    }
    return {table: text for table, text in found.items() if text}


def _empty(target: sqlite3.Connection, column: str, empty: str) -> int:
    kind = list if column == "placement" else dict
    rows = target.execute(f"SELECT experiment, number, {column} FROM trials WHERE {column} IS NOT NULL")  # noqa: S608 - own names
    bad = [(key, number) for key, number, text in rows.fetchall() if not _is_json(text, kind)]
    query = f"UPDATE trials SET {column} = {empty} WHERE experiment = ? AND number = ?"  # noqa: S608 - own names
    target.executemany(query, bad)
    return len(bad)


def _is_json(text: object, kind: type) -> bool:
    try:
        return isinstance(json.loads(str(text)), kind)
    except (ValueError, RecursionError):
        return False


def _is_spec(text: object) -> bool:
    try:
        return isinstance(from_json(ExperimentSpec, json.loads(str(text))), ExperimentSpec)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False

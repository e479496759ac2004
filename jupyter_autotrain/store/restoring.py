"""Bringing back the rows of experiments and trials that the store lacks, or has older, from the copies in the home.

See `row_files`. A trial's files are untrusted, so what is no row of ours costs that experiment or trial only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jupyter_autotrain.core.states import ACTIVE_STATES, TrialState
from jupyter_autotrain.store.mixin import StoreMixin
from jupyter_autotrain.store.repair_rows import repair_rows
from jupyter_autotrain.store.row_files import Row, read

_ORDER: Final = (TrialState.WAITING, TrialState.PREPARING, TrialState.RUNNING)
_CHANGES: Final = """
SELECT attempt, state, (SELECT count(*) FROM moves WHERE experiment = :key AND number = :number)
FROM trials WHERE experiment = :key AND number = :number
"""
_SET_CLOSED: Final = (
    "UPDATE experiments SET closed = ?, closed_s = ?, reason = ?, stop_requested = ?, retried_s = ? WHERE key = ?"
)


@dataclass(slots=True)
class Restored:
    """What was brought back: ids of experiments, and trials as (experiment id, number)."""

    experiments: list[str] = field(default_factory=list)
    trials: set[tuple[str, int]] = field(default_factory=set)


class RestoringTables(StoreMixin):
    """Rows of which a copy lies in the home."""

    def restore_rows(self) -> Restored:
        """Bring back what the copies say and the store does not; no manager and no submitter may run meanwhile."""
        restored = Restored()
        found = [(row, folder) for folder in _folders(self._home.experiment("")) if (row := read(folder / "rows.json"))]
        with self._database.write(durable=True) as connection:
            for row, folder in sorted(found, key=lambda one: str(one[0].get("created_s"))):
                with _whole_or_nothing(connection):
                    _restore(connection, row, folder, restored)
            repair_rows(connection)
        return restored


def _folders(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(folder.iterdir())
    return []


@contextmanager
def _whole_or_nothing(connection: sqlite3.Connection) -> Iterator[None]:
    """Take back what was restored of one folder when its copy is none of ours."""
    connection.execute("SAVEPOINT one")
    try:
        yield
    except (sqlite3.Error, ValueError, TypeError, KeyError, OverflowError):
        connection.execute("ROLLBACK TO one")
    connection.execute("RELEASE one")


def _restore(connection: sqlite3.Connection, row: Row, folder: Path, restored: Restored) -> None:
    """Restore one experiment with its trials."""
    if row["id"] != folder.name:
        raise ValueError("a copy of another experiment")
    there = connection.execute("SELECT key, closed, retried_s FROM experiments WHERE id = ?", (folder.name,)).fetchone()
    if there is None:
        key = _add_experiment(connection, row)
        restored.experiments.append(folder.name)
    else:
        key = there[0]
        if (row["closed"], row["retried_s"] or 0.0) > (there[1], there[2] or 0.0):
            later = [row[name] for name in ("closed", "closed_s", "reason", "stop_requested", "retried_s")]
            connection.execute(_SET_CLOSED, (*later, key))
    if row.get("tags") is not None:
        _insert(connection, "annotations", {"experiment": key, **row}, or_ignore=True)
    for trial in _folders(folder / "trials"):
        copy = read(trial / "rows.json") if trial.name.isdecimal() else None
        if copy is not None:
            with _whole_or_nothing(connection):
                if _restore_trial(connection, key, int(trial.name), copy):
                    restored.trials.add((folder.name, int(trial.name)))


def _add_experiment(connection: sqlite3.Connection, row: Row) -> int:
    """Add an experiment under the number of its name that it had, unless another one has it by now."""
    name = row["name"]
    taken = connection.execute("SELECT version FROM experiments WHERE name = ?", (name,)).fetchall()
    version = row["version"]
    if (version,) in taken:
        version = max(number for (number,) in taken) + 1
    _insert(connection, "experiments", {**row, "version": version})
    key = int(connection.execute("SELECT key FROM experiments WHERE id = ?", (row["id"],)).fetchone()[0])
    connection.execute(
        "INSERT INTO names (name, version) VALUES (?, ?) "
        "ON CONFLICT (name) DO UPDATE SET version = max(version, excluded.version)",
        (name, version),
    )
    return key


def _restore_trial(connection: sqlite3.Connection, key: int, number: int, copy: Row) -> bool:
    """Restore a trial with the changes of its state; False where the store has it as new."""
    if copy["number"] != number:
        raise ValueError("a copy of another trial")
    there = connection.execute(_CHANGES, {"key": key, "number": number}).fetchone()
    if there is not None and _age(*there) >= _age(copy["attempt"], copy["state"], len(copy["moves"])):
        return False
    for table in ("trials", "moves"):
        connection.execute(f"DELETE FROM {table} WHERE experiment = ? AND number = ?", (key, number))  # noqa: S608 - own names
    _insert(connection, "trials", {**copy, "experiment": key})
    for move in copy["moves"]:
        _insert(connection, "moves", {**move, "experiment": key, "number": number})
    return True


def _age(attempt: int, state: str, changes: int) -> tuple[int, int, int]:
    """Numbers that grow with each change of a trial's state."""
    order = _ORDER.index(TrialState(state)) if state in ACTIVE_STATES else len(_ORDER)
    return attempt, order, changes


def _insert(connection: sqlite3.Connection, table: str, row: Row, *, or_ignore: bool = False) -> None:
    """Insert the columns that the table has; with `or_ignore` a row that is there stays."""
    columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})") if name in row]
    places = ", ".join("?" * len(columns))
    verb = "INSERT OR IGNORE" if or_ignore else "INSERT"
    query = f"{verb} INTO {table} ({', '.join(columns)}) VALUES ({places})"
    connection.execute(query, [row[column] for column in columns])

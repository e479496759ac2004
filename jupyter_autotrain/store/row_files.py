"""A copy of each experiment's and each trial's rows in its folder, and what the store lacks brought back from it.

A copy of each experiment's and each trial's rows in its folder, from which a lost store is rebuilt. Each is written
inside the transaction that changes the rows, so it is never older than what the store holds. The copies of a new
experiment and of a trial that is about to start are on the disk itself then.

Bringing back the rows of experiments and trials that the store lacks, or has older, from the copies in the home. See
`row_files`. A trial's files are untrusted, so what is no row of ours costs that experiment or trial only.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jupyter_autotrain.agent import durable, files, wire
from jupyter_autotrain.agent.states import ACTIVE_STATES, TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.store.damage import repair_rows
from jupyter_autotrain.store.mixin import StoreMixin

Row = dict[str, Any]
"""The columns of a row, by name."""
_OF_EXPERIMENT: Final = (
    "SELECT e.*, a.tags, a.note FROM experiments AS e LEFT JOIN annotations AS a ON a.experiment = e.key WHERE key = ?"
)
_TRIAL: Final = "SELECT * FROM trials WHERE experiment = ? AND number = ?"
_MOVES: Final = "SELECT * FROM moves WHERE experiment = ? AND number = ? ORDER BY id DESC LIMIT 200"  # the newest
_OF_THIS_STORE: Final = frozenset({"experiment", "id"})  # keys that a rebuilt one gives anew


def keep_experiment(connection: sqlite3.Connection, home: Home, key: int) -> None:
    """Write an experiment's row, tags and note into its folder; nothing where it has none."""
    with suppress(OSError, TypeError, ValueError):  # a full disk or a damaged row, say: the store has it
        _write_experiment(connection, home, key)


def keep_new_experiment(connection: sqlite3.Connection, home: Home, key: int) -> None:
    """Write a new experiment's row into its folder, and that and the folder to the disk itself.

    Raises:
        OSError: It cannot be written.
    """
    path = _write_experiment(connection, home, key)
    if path.parent.is_dir():
        _sync(path, above=1)


def keep_trial(connection: sqlite3.Connection, home: Home, experiment_id: str, key: int, number: int) -> None:
    """Write a trial's row and the changes of its state into its folder; nothing where its experiment has none."""
    with suppress(OSError, TypeError, ValueError):  # as above
        (row,) = _rows(connection, _TRIAL, (key, number))
        moves = list(map(_portable, reversed(_rows(connection, _MOVES, (key, number)))))
        path = home.trial_rows(experiment_id, number)
        content = json.dumps({**_portable(row), "moves": moves}).encode()
        try:
            wire.write_atomically(str(path), content, sync=False)
        except FileNotFoundError:  # the first time
            for folder in (path.parent.parent, path.parent):
                _make(folder)
            wire.write_atomically(str(path), content, sync=False)


def sync_trial(home: Home, experiment_id: str, number: int) -> None:
    """Write the copy of a trial's rows to the disk itself."""
    with suppress(OSError):  # as above
        _sync(home.trial_rows(experiment_id, number), above=2)


def read(path: Path) -> Row | None:
    """Return what was kept in a file; None where nothing was, or nothing that can be read."""
    with suppress(OSError, ValueError):
        found = files.read_json(path.parent, path.name)
        return found if isinstance(found, dict) else None
    return None


def _write_experiment(connection: sqlite3.Connection, home: Home, key: int) -> Path:
    (row,) = _rows(connection, _OF_EXPERIMENT, (key,))
    del row["key"]
    path = home.experiment_rows(row["id"])
    if path.parent.is_dir():
        wire.write_atomically(str(path), json.dumps(row).encode(), sync=False)
    return path


def _rows(connection: sqlite3.Connection, query: str, values: tuple[int, ...]) -> list[Row]:
    found = connection.execute(query, values)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _portable(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in _OF_THIS_STORE}


def _make(folder: Path) -> None:
    """Make a folder in one that is there: that of a deleted experiment does not come back."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)


def _sync(path: Path, above: int) -> None:
    """Write a file to the disk itself, then its folder and so many above: the first does nearly all the work."""
    for there in (path, *list(path.parents)[: above + 1]):
        durable.sync_path(there)


_ORDER: Final = (TrialState.WAITING, TrialState.PREPARING, TrialState.RUNNING)
_CHANGES: Final = """
SELECT attempt, state, (SELECT count(*) FROM moves WHERE experiment = :key AND number = :number)
FROM trials WHERE experiment = :key AND number = :number
"""
_SET_CLOSED: Final = (
    "UPDATE experiments SET closed = ?, closed_s = ?, reason = ?, stop_requested = ?, retried_s = ?, spec = ? "
    "WHERE key = ?"
)


@dataclass(slots=True)
class Restored:
    """The rows that were brought back: ids of experiments, and trials as (experiment id, number)."""

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
    key = _restore_experiment(connection, row, restored)
    if row.get("tags") is not None:
        _insert(connection, "annotations", {"experiment": key, **row}, or_ignore=True)
    for trial in _folders(folder / "trials"):
        copy = read(trial / "rows.json") if trial.name.isdecimal() else None
        if copy is not None:
            with _whole_or_nothing(connection):
                if _restore_trial(connection, key, int(trial.name), copy):
                    restored.trials.add((folder.name, int(trial.name)))


def _restore_experiment(connection: sqlite3.Connection, row: Row, restored: Restored) -> int:
    """Restore the row of an experiment, or its end or new begin where the copy knows of one; gives its key."""
    there = connection.execute("SELECT key, closed, retried_s FROM experiments WHERE id = ?", (row["id"],)).fetchone()
    if there is None:
        restored.experiments.append(row["id"])
        return _add_experiment(connection, row)
    key, closed, retried_s = there
    if (row["retried_s"] or 0.0, row["closed"]) > (retried_s or 0.0, closed):
        later = [row[name] for name in ("closed", "closed_s", "reason", "stop_requested", "retried_s", "spec")]
        connection.execute(_SET_CLOSED, (*later, key))
    return int(key)


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

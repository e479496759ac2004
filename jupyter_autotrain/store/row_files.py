"""A copy of each experiment's and each trial's rows in its folder, from which a lost store is rebuilt.

Each is written inside the transaction that changes the rows, so it is never older than what the store holds. The copies
of a new experiment and of a trial that is about to start are on the disk itself then.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from jupyter_autotrain.core import files, wire
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.system import durable

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
        _write_experiment(connection, home, key, sync=False)


def keep_new_experiment(connection: sqlite3.Connection, home: Home, key: int) -> None:
    """Write a new experiment's row into its folder, to the disk itself.

    Raises:
        OSError: It cannot be written.
    """
    _write_experiment(connection, home, key, sync=True)


def keep_trial(connection: sqlite3.Connection, home: Home, key: int, number: int, *, sync: bool = False) -> None:
    """Write a trial's row and the changes of its state into its folder; nothing where its experiment has none."""
    with suppress(OSError, TypeError, ValueError):  # as above
        (experiment_id,) = connection.execute("SELECT id FROM experiments WHERE key = ?", (key,)).fetchone()
        (row,) = _rows(connection, _TRIAL, (key, number))
        moves = [_portable(move) for move in reversed(_rows(connection, _MOVES, (key, number)))]
        path = home.trial_rows(experiment_id, number)
        for folder in (path.parent.parent, path.parent):
            _make(folder, sync=sync)
        _write(path, {**_portable(row), "moves": moves}, sync=sync)


def read(path: Path) -> Row | None:
    """What was kept in a file; None where nothing was, or nothing that can be read."""
    with suppress(OSError, ValueError):
        found = files.read_json(path.parent, path.name)
        return found if isinstance(found, dict) else None
    return None


def _write_experiment(connection: sqlite3.Connection, home: Home, key: int, *, sync: bool) -> None:
    (row,) = _rows(connection, _OF_EXPERIMENT, (key,))
    del row["key"]
    _write(home.experiment_rows(row["id"]), row, sync=sync)


def _rows(connection: sqlite3.Connection, query: str, values: tuple[int, ...]) -> list[Row]:
    found = connection.execute(query, values)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _portable(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in _OF_THIS_STORE}


def _make(folder: Path, *, sync: bool) -> None:
    """Make a folder in one that is there: that of a deleted experiment does not come back."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        if sync:
            durable.sync_path(folder.parent)


def _write(path: Path, content: Row, *, sync: bool) -> None:
    if path.parent.is_dir():
        wire.write_atomically(str(path), json.dumps(content).encode(), sync=sync)
        if sync:
            durable.sync_path(path.parent)

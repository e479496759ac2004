"""Bringing a store's file to the newest schema; `PRAGMA user_version` counts the migrations that it has seen."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from jupyter_autotrain.errors import StoreError
from jupyter_autotrain.store.schema import MIGRATIONS


def version(connection: sqlite3.Connection) -> int:
    """How many migrations the file has seen."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, path: Path, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Bring the file to the newest schema; all or nothing, also when two processes do it concurrently.

    Raises:
        StoreError: The file was written by a newer version of this package.
        sqlite3.Error: SQLite refused; the file is as it was.
    """
    if version(connection) == len(migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        _apply(connection, path, migrations)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _apply(connection: sqlite3.Connection, path: Path, migrations: tuple[str, ...]) -> None:
    seen = version(connection)
    if seen > len(migrations):
        raise StoreError(
            f"{path} has schema version {seen}.",
            f"This version of jupyter-autotrain knows schemas up to {len(migrations)}.",
            "Upgrade it (pip install -U jupyter-autotrain), or set JUPYTER_AUTOTRAIN_HOME to another folder.",
        )
    for script in migrations[seen:]:
        for statement in _statements(script):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(migrations)}")


def _statements(script: str) -> Iterator[str]:
    """The statements of a script; those of a trigger's body are one with it."""
    statement = ""
    for part in script.split(";"):
        statement += f"{part};"
        if sqlite3.complete_statement(statement):
            if statement.strip(" \n;"):
                yield statement
            statement = ""

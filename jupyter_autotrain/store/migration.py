"""Bringing a store's file to the newest schema; `PRAGMA user_version` counts the migrations that it has seen."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from jupyter_autotrain.errors import OutdatedError
from jupyter_autotrain.store.schema import MIGRATIONS


def version(connection: sqlite3.Connection) -> int:
    """Return how many migrations the file has seen."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check_version(connection: sqlite3.Connection, path: Path, known: int = len(MIGRATIONS)) -> None:
    """Make sure that no newer version of this package has changed the schema.

    Raises:
        OutdatedError: One has.
    """
    seen = version(connection)
    if seen > known:
        raise OutdatedError(f"A newer jupyter-autotrain uses {path} (schema {seen}; this one knows {known}).")


def migrate(connection: sqlite3.Connection, path: Path, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Bring the file to the newest schema; all or nothing, also when two processes do it concurrently.

    A copy of the file as it was is kept beside it: `store.sqlite.schema-N`, N being the schema's number.

    Raises:
        OutdatedError: The file was written by a newer version of this package.
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
    check_version(connection, path, len(migrations))
    seen = version(connection)
    if 0 < seen < len(migrations):
        _keep_copy(path, path.with_name(f"{path.name}.schema-{seen}"))
    for script in migrations[seen:]:
        for statement in _statements(script):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(migrations)}")


def _keep_copy(path: Path, copy: Path) -> None:
    """Copy the file as it is, by a connection that does not write it, and remove the copies of earlier schemas."""
    for old in path.parent.glob(f"{path.name}.schema-*"):
        old.unlink()
    copy.touch(0o600)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)


def _statements(script: str) -> Iterator[str]:
    """Yield the statements of a script; those of a trigger's body are one with it."""
    statement = ""
    for part in script.split(";"):
        statement += f"{part};"
        if sqlite3.complete_statement(statement):
            if statement.strip(" \n;"):
                yield statement
            statement = ""

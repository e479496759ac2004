"""The SQLite file: opening it safely, and reading and writing in transactions.

A file is brought to the newest schema first; `PRAGMA user_version` counts the migrations that it has seen.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from jupyter_autotrain.core.home import Home, make_private
from jupyter_autotrain.errors import LeaseLostError, OutdatedError, StoreError
from jupyter_autotrain.store.database_file import NETWORK_FILESYSTEMS, OPEN_DATABASES, filesystem_of
from jupyter_autotrain.store.failures import explained
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


_RETRY_S: Final = 0.02
_LOG_LIMIT_BYTES: Final = 16 << 20
_VERSIONS_PER_OPENING: Final = 1 << 40


class Database:
    """One connection, shared by the threads of a process under a lock.

    The connection is renewed when another file has taken the place of the one it was opened on (a repaired store, a
    home that was recreated) and after a fork. So nothing is written to a file that is no longer in use.

    Attributes:
        path: The file.
        lock: Held during each use of the connection.
        journal: "wal", or "delete" where a write-ahead log cannot work.
        generation: The lease under which this handle writes; None where it writes as a client.
    """

    def __init__(self, path: Path, busy_timeout_s: float, *, is_read_only: bool = False) -> None:
        self.path = path
        self._is_read_only = is_read_only
        self.generation: int | None = None
        self._timeout_s = busy_timeout_s
        self._openings = 0
        self.lock = threading.RLock()
        with explained(path, busy_timeout_s):
            make_private_file(path)
            self._connect()
        OPEN_DATABASES.add(self)

    def _connect(self) -> None:
        file = self._file_at_path()
        connection = sqlite3.connect(self.path, timeout=self._timeout_s, isolation_level=None, check_same_thread=False)
        try:
            self.journal = self._set_up(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._synchronous = ""  # as SQLite was built
        self._file = file
        self._openings += 1
        # A handle that is merely dropped gives the file back too.
        self._give_back = weakref.finalize(self, connection.close)

    def disconnect(self) -> None:
        """Close the connection; the next use opens another."""
        if self._give_back.alive:
            self._give_back()
            self._file = None

    def _file_at_path(self) -> tuple[int, int] | None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def _current(self) -> sqlite3.Connection:
        """Return the connection to the file that is at the path now."""
        if not self._give_back.alive and self._file is not None:
            return self._connection  # closed permanently: its use raises
        there = self._file_at_path()
        if there is None:
            raise StoreError(
                f"{self.path} is gone: it or its folder was removed.",
                "The store that was opened there before was expected.",
                "Submit again to begin a new one.",
            )
        if there != self._file:
            self.disconnect()
            self._connect()
        return self._connection

    def _set_up(self, connection: sqlite3.Connection) -> str:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA fullfsync = ON")  # on macOS fsync(2) stops at the drive's cache; nothing elsewhere
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_LIMIT_BYTES}")
        journal = self._choose_journal(connection)
        migrate(connection, self.path)
        if self._is_read_only:
            connection.execute("PRAGMA query_only = ON")
        return journal

    def _choose_journal(self, connection: sqlite3.Connection) -> str:
        mode = "delete" if filesystem_of(self.path) in NETWORK_FILESYSTEMS else "wal"
        deadline_s = time.monotonic() + self._timeout_s
        while True:
            try:
                return str(connection.execute(f"PRAGMA journal_mode = {mode}").fetchone()[0])
            except sqlite3.OperationalError as error:
                # SQLite does not wait for the lock of this one statement.
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                    raise
                time.sleep(_RETRY_S)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """One consistent picture for all queries of the block; joins the thread's open transaction."""
        with self.lock, explained(self.path, self._timeout_s):
            if self._connection.in_transaction:
                yield self._connection
                return
            with self._transaction("BEGIN") as connection:
                yield connection

    @contextmanager
    def write(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """All of the block or nothing of it.

        A killed process loses nothing it wrote. With `durable` a power cut does not either; the manager's own
        rows do without that, because it reads them again from the trials' files, by cursor.

        Raises:
            LeaseLostError: This handle writes under a lease, and another has taken it since.
        """
        with self.lock, explained(self.path, self._timeout_s):
            level = "FULL" if durable or self.journal != "wal" else "NORMAL"
            connection = self._current()
            if level != self._synchronous:
                connection.execute(f"PRAGMA synchronous = {level}")
                self._synchronous = level
            with self._transaction("BEGIN IMMEDIATE") as connection:
                self._check_lease(connection)
                yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        connection = self._begin(begin)
        try:
            check_version(connection, self.path)
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _begin(self, begin: str) -> sqlite3.Connection:
        while True:
            connection = self._current()
            connection.execute(begin)
            if self._file_at_path() == self._file:
                return connection
            # A repair took the file away while this waited for its lock.
            connection.execute("ROLLBACK")

    def _check_lease(self, connection: sqlite3.Connection) -> None:
        if self.generation is None:
            return
        row = connection.execute("SELECT generation, owner FROM lease").fetchone()
        if row is None or row[0] != self.generation:
            raise LeaseLostError(
                f"Another manager has taken over {self.path}: {row[1] if row else 'no manager holds the lease'}.",
                f"Lease {self.generation} was expected to be the newest.",
                "This one must end; nothing was changed.",
            )

    def data_version(self) -> int:
        """Return a number that differs after any commit, of this or another process."""
        with self.lock, explained(self.path, self._timeout_s):
            connection = self._current()
            others = connection.execute("PRAGMA data_version").fetchone()[0]
            return int(others) + connection.total_changes + self._openings * _VERSIONS_PER_OPENING

    def close(self) -> None:
        """Give the file back."""
        with self.lock, explained(self.path, self._timeout_s):
            self._give_back()


def open_database(home: Home, busy_timeout_s: float, *, is_read_only: bool = False) -> Database:
    """Make the home (0700) when there is none, and open the store in it (0600).

    Raises:
        StoreError: The home or the file cannot be made, read or written, or the home is not the user's alone.
    """
    with explained(home.root, busy_timeout_s):
        make_private(home)
    return Database(home.store, busy_timeout_s, is_read_only=is_read_only)


def make_private_file(path: Path) -> None:
    """Make the file with its mode, without ever opening it: only SQLite may do that.

    A process that closes any descriptor of a file gives up all locks (fcntl) it has on it, also those that SQLite holds
    for its other handles. Then the next process to leave takes itself for the last one, and removes the log under them.
    """
    with suppress(FileExistsError, PermissionError):  # not allowed on macOS: SQLite makes it, in a private folder
        os.mknod(path, stat.S_IFREG | 0o600)
    # SQLite gives its log files the mode of the main file.
    if path.exists() and path.stat().st_mode & 0o077:
        path.chmod(0o600)

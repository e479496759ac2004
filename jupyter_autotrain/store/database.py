"""The SQLite file: opening it safely, and reading and writing in transactions."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.store.failures import explained
from jupyter_autotrain.store.schema import migrate

# Shared memory, which the write-ahead log needs, does not reach other machines through these.
NETWORK_FILESYSTEMS: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "beegfs", "gpfs", "ceph", "glusterfs", "afs", "9p", "fuse.sshfs"}
)
_MOUNTS: Final = Path("/proc/self/mountinfo")
_RETRY_S: Final = 0.02
_LOG_LIMIT_BYTES: Final = 16 << 20


class Database:
    """One connection, shared by the threads of a process under a lock.

    Attributes:
        path: The file.
        journal: "wal", or "delete" where a write-ahead log cannot work.
    """

    def __init__(self, path: Path, busy_timeout_s: float) -> None:
        self.path = path
        self._timeout_s = busy_timeout_s
        self._lock = threading.RLock()
        with explained(path, busy_timeout_s):
            _make_private(path)
            self._connection = sqlite3.connect(
                path, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False
            )
            try:
                self.journal = self._set_up()
            except BaseException:
                self._connection.close()
                raise
        # A handle that is merely dropped gives the file back too.
        self._give_back = weakref.finalize(self, self._connection.close)

    def _set_up(self) -> str:
        self._connection.execute("PRAGMA foreign_keys = ON")
        self._connection.execute("PRAGMA trusted_schema = OFF")
        self._connection.execute(f"PRAGMA journal_size_limit = {_LOG_LIMIT_BYTES}")
        journal = self._choose_journal()
        migrate(self._connection, self.path)
        return journal

    def _choose_journal(self) -> str:
        wish = "delete" if filesystem_of(self.path) in NETWORK_FILESYSTEMS else "wal"
        deadline_s = time.monotonic() + self._timeout_s
        while True:
            try:
                return str(self._connection.execute(f"PRAGMA journal_mode = {wish}").fetchone()[0])
            except sqlite3.OperationalError as error:
                # SQLite does not wait for the lock of this one statement by itself.
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                    raise
                time.sleep(_RETRY_S)

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """One consistent picture for all queries of the block; joins the thread's open transaction."""
        with self._lock, explained(self.path, self._timeout_s):
            if self._connection.in_transaction:
                yield self._connection
                return
            with self._transaction("BEGIN"):
                yield self._connection

    @contextmanager
    def write(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """All of the block or nothing of it.

        A killed process loses nothing it wrote. With `durable` a power cut does not either; the manager's own
        rows do without that, because it reads them again from the trials' files, by cursor.
        """
        with self._lock, explained(self.path, self._timeout_s):
            level = "FULL" if durable or self.journal != "wal" else "NORMAL"
            self._connection.execute(f"PRAGMA synchronous = {level}")
            with self._transaction("BEGIN IMMEDIATE"):
                yield self._connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self._connection.execute(begin)
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def data_version(self) -> int:
        """A number that differs after any commit, of this or another process."""
        with self._lock, explained(self.path, self._timeout_s):
            others = self._connection.execute("PRAGMA data_version").fetchone()[0]
            return int(others) + self._connection.total_changes

    def close(self) -> None:
        """Give the file back."""
        with self._lock, explained(self.path, self._timeout_s):
            self._give_back()


def open_database(home: Home, busy_timeout_s: float) -> Database:
    """Make the home (0700) when there is none, and open the store in it (0600).

    Raises:
        StoreError: The home or the file cannot be made, read or written.
    """
    with explained(home.root, busy_timeout_s):
        if not home.root.is_dir():
            home.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif not any(home.root.iterdir()):
            with suppress(PermissionError):
                home.root.chmod(0o700)
    return Database(home.store, busy_timeout_s)


def filesystem_of(path: Path, mounts: Path = _MOUNTS) -> str:
    """The type of the file system that holds `path`; "" where the system does not tell."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    best, kind = -1, ""
    target = path.parent.resolve()
    for line in lines:
        left, _, right = line.partition(" - ")
        point = Path(left.split()[4].replace("\\040", " "))
        if target.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), right.split()[0]
    return kind


def _make_private(path: Path) -> None:
    """Make the file with its mode, without ever opening it: only SQLite may do that.

    A process that closes any descriptor of a file gives up all locks (fcntl) it has on it, also those that SQLite holds
    for its other handles. Then the next process to leave takes itself for the last one, and removes the log under them.
    """
    with suppress(FileExistsError, PermissionError):  # not allowed on macOS: SQLite makes it, in a private folder
        os.mknod(path, stat.S_IFREG | 0o600)
    # SQLite gives its log files the mode of the main file.
    if path.exists() and path.stat().st_mode & 0o077:
        path.chmod(0o600)

"""Errors of SQLite and of the disk, turned into three clauses a person can act on."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from jupyter_autotrain.errors import StoreError

_FULL: Final = ("The disk is full: {path} cannot grow.", "Free space is needed; nothing was changed.")
_READ_ONLY: Final = ("{path} cannot be written.", "The folder and the file must be writable for you.")
_CORRUPT: Final = ("{path} is damaged or is not a store.", "An SQLite file written by this package was expected.")
_LOCKED: Final = ("{path} is locked by another process.", "The lock was expected to be free within {timeout_s:g} s.")
_DISK: Final = ("The disk failed while {path} was in use: {error}.", "Nothing was changed.")

_CLAUSES: Final[Mapping[int, tuple[str, str, str]]] = MappingProxyType(
    {
        sqlite3.SQLITE_FULL: (*_FULL, "Free some space ('%autotrain clean' removes old experiments) and try again."),
        sqlite3.SQLITE_BUSY: (*_LOCKED, "End the program that holds it (a backup, an SQLite shell) and try again."),
        sqlite3.SQLITE_LOCKED: (*_LOCKED, "End the program that holds it (a backup, an SQLite shell) and try again."),
        sqlite3.SQLITE_READONLY: (
            *_READ_ONLY,
            "Change its permissions, or set JUPYTER_AUTOTRAIN_HOME to another folder.",
        ),
        sqlite3.SQLITE_CANTOPEN: (
            *_READ_ONLY,
            "Change its permissions, or set JUPYTER_AUTOTRAIN_HOME to another folder.",
        ),
        sqlite3.SQLITE_PERM: (*_READ_ONLY, "Change its permissions, or set JUPYTER_AUTOTRAIN_HOME to another folder."),
        sqlite3.SQLITE_CORRUPT: (
            *_CORRUPT,
            "Run '%autotrain doctor --repair': it saves what can be read and keeps the file as it is.",
        ),
        sqlite3.SQLITE_NOTADB: (
            *_CORRUPT,
            "Run '%autotrain doctor --repair': it saves what can be read and keeps the file as it is.",
        ),
        sqlite3.SQLITE_IOERR: (*_DISK, "Check free space and quota of that disk, then try again."),
    }
)
_PASSING: Final = frozenset(_CLAUSES) - {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_ERRNO_CODES: Final[Mapping[int, int]] = MappingProxyType(
    {
        errno.ENOSPC: sqlite3.SQLITE_FULL,
        errno.EDQUOT: sqlite3.SQLITE_FULL,
        errno.EFBIG: sqlite3.SQLITE_FULL,
        errno.EROFS: sqlite3.SQLITE_READONLY,
        errno.EACCES: sqlite3.SQLITE_READONLY,
        errno.EPERM: sqlite3.SQLITE_READONLY,
    }
)
_ELSEWHERE: Final = "Set JUPYTER_AUTOTRAIN_HOME to another folder, then try again."
_NO_FOLDER: Final = ("{path} cannot be used: a file is where a folder was expected.", "A folder for the home.")
_OPEN_FILES: Final = ("Too many files are open: {path} cannot be opened.", "A free file descriptor was expected.")
_PATHS: Final[Mapping[int, tuple[str, str, str]]] = MappingProxyType(
    {
        errno.EEXIST: (*_NO_FOLDER, _ELSEWHERE),
        errno.ENOTDIR: (*_NO_FOLDER, _ELSEWHERE),
        errno.ENOENT: ("{path} cannot be made.", "A home below a folder that exists and can be written.", _ELSEWHERE),
        errno.ENAMETOOLONG: (
            "The path of the home is too long: {path}.",
            "At most 255 bytes per name and 480 in all.",
            "Set JUPYTER_AUTOTRAIN_HOME to a shorter path, then try again.",
        ),
        errno.EMFILE: (*_OPEN_FILES, "Close some, or raise the limit ('ulimit -n'), then try again."),
        errno.ENFILE: (*_OPEN_FILES, "Close some programs of this machine, then try again."),
    }
)
_MOST_PATH: Final = 200
_MOST_BYTES: Final = 495  # SQLite takes 512, for this path and the names that it makes of it


@contextmanager
def explained(path: Path, timeout_s: float = 0.0) -> Iterator[None]:
    """Raise a `StoreError` about `path` in place of any failure of SQLite or of the disk inside the block.

    Its `__cause__` is set where the same call may succeed later (full disk, foreign lock ...), else it is None.
    """
    try:
        yield
    except sqlite3.Error as error:
        # The low byte is the kind of failure; the rest says in which system call it came up.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        raise _store_error(code, path, error, timeout_s) from (error if code in _PASSING else None)
    except UnicodeDecodeError as error:
        raise _store_error(sqlite3.SQLITE_CORRUPT, path, error, timeout_s) from None
    except OverflowError:
        raise StoreError("A number is too large to be looked up.", "At most 18 digits.", "Correct it.") from None
    except OSError as error:
        code = _ERRNO_CODES.get(error.errno or 0, sqlite3.SQLITE_IOERR)
        raise _store_error(code, Path(error.filename or path), error, timeout_s) from error


def _store_error(code: int, path: Path, error: Exception, timeout_s: float) -> StoreError:
    number = error.errno or 0 if isinstance(error, OSError) else 0
    if code == sqlite3.SQLITE_CANTOPEN and len(os.fsencode(path)) > _MOST_BYTES:
        number = errno.ENAMETOOLONG
    if number in _PATHS:
        shown = str(path) if len(str(path)) <= _MOST_PATH else f"{str(path)[:_MOST_PATH]}..."
        return StoreError(*(clause.format(path=shown) for clause in _PATHS[number]))
    clauses = _CLAUSES.get(code)
    if clauses is None:
        return StoreError(f"The store {path} refused: {error}.", "Nothing was changed.", "Run '%autotrain doctor'.")
    return StoreError(*(clause.format(path=path, error=error, timeout_s=timeout_s) for clause in clauses))

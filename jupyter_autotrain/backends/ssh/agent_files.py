"""What the agent does with files of trial directories, on the host."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import stat
from pathlib import Path

from jupyter_autotrain.core import files, wire
from jupyter_autotrain.errors import BackendError

MOST_BYTES = 4 << 20  # of one stream or file in one answer
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


def inside(folder: Path, path: str) -> Path:
    """A path in a folder; `.` is the folder itself.

    Raises:
        BackendError: It leads out of it.
    """
    target = Path(os.path.normpath(folder / path))
    if folder not in (target, *target.parents):
        raise BackendError(f"There is no place for {path!r}.", f"A path inside {folder}.")
    return target


def read_piece(directory: Path, stream: str, offset: int, most_bytes: int) -> tuple[str, int, str, bool]:
    """New bytes of a stream (base64), how many, why it cannot be read, and whether asking again is of no use."""
    try:
        data = files.read(directory, stream, most_bytes, offset)
    except OSError as error:
        if files.is_absent(error):
            return "", 0, "", False
        return "", 0, f"its {stream} cannot be read: {error.strerror}", isinstance(error, files.NotRegularError)
    return base64.b64encode(data).decode(), len(data), "", False


def put(directory: Path, path: str, data: bytes) -> None:
    """Write a file, atomically.

    Raises:
        BackendError: There is no such trial, or the path leads out of it.
        OSError: It cannot be written.
    """
    target = inside(directory, path)
    if not directory.is_dir():
        raise BackendError(f"There is no place for {path!r}.", f"The folder {directory}.")
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    wire.write_atomically(str(target), data)


def append(directory: Path, path: str, offset: int, data: bytes) -> int:
    """Append bytes that lie from `offset` on to a file; those that it has already, or that leave a gap, are left out.

    Returns:
        How long the file is then.

    Raises:
        BackendError: The path leads out of the trial.
        OSError: It cannot be written.
    """
    fd = os.open(inside(directory, path), _APPEND, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)  # an earlier connection's agent may be at it
        size = os.fstat(fd).st_size
        if offset <= size:
            size += os.write(fd, data[size - offset :])
    finally:
        os.close(fd)
    return size


def listing(directory: Path, path: str) -> dict[str, int] | int:
    """The size of a file, or the sizes of all regular files below a folder, by their paths in it; of folders -1.

    A folder of `wire.FOLDERS` that is not there is an empty one.

    Raises:
        BackendError: The path leads out of the trial.
        OSError: There is nothing.
    """
    target = inside(directory, path)
    if path in wire.FOLDERS and directory.is_dir() and not target.exists():
        return {}
    found = target.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return found.st_size
    sizes = {}
    for name, kind in files.walk(str(target)):
        if kind == stat.S_IFDIR:
            sizes[name] = -1
        elif kind == stat.S_IFREG:
            with contextlib.suppress(FileNotFoundError):  # it went meanwhile
                sizes[name] = (target / name).lstat().st_size
    return sizes


def piece(directory: Path, path: str, offset: int) -> str:
    """The next bytes of a file (base64); empty at its end.

    Raises:
        OSError: It is no regular file, or cannot be read.
    """
    return base64.b64encode(files.read(directory, path, MOST_BYTES, offset)).decode()

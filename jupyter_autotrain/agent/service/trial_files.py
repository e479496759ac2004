"""The files of trials: putting, appending, reading, listing, and the requests for them. The same at every place.

A large file comes on a channel of its own: `stream` is the program at its other end.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.errors import BackendError
from jupyter_autotrain.agent.service.request_loop import Handlers, Request

MOST_BYTES = 4 << 20  # of one stream or file in one answer
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_BLOCK_BYTES = 1 << 20


def handlers(directory_of: Callable[[Request], Path]) -> Handlers:
    """Return what answers the requests about the files of a trial.

    Args:
        directory_of: Gives the trial directory that a request is about.
    """
    return {
        "put": lambda request: put(directory_of(request), request["path"], base64.b64decode(request["data"])),
        "append": lambda request: append(
            directory_of(request), request["path"], request["offset"], base64.b64decode(request["data"])
        ),
        "list": lambda request: listing(directory_of(request), request["path"]),
        "get": lambda request: piece(
            directory_of(request), request["path"], request["offset"], request.get("most_bytes", MOST_BYTES)
        ),
    }


def inside(folder: Path, path: str) -> Path:
    """Return a path in a folder; `.` is the folder itself.

    Raises:
        BackendError: It leads out of it.
    """
    target = Path(os.path.normpath(folder / path))
    if folder not in (target, *target.parents):
        raise BackendError(f"There is no place for {path!r}.", f"A path inside {folder}.")
    return target


def read_piece(directory: Path, stream: str, offset: int, most_bytes: int) -> tuple[str, int, str, bool]:
    """Return new bytes of a stream in base64, their number, the fault of a failed read, and whether the fault lasts."""
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
    files.make_directories(target.parent)
    wire.write_atomically(str(target), data)


def append(directory: Path, path: str, offset: int, data: bytes) -> int:
    """Append bytes that lie from `offset` on to a file.

    Bytes that the file has already, or that leave a gap, are left out.

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
    """Return the size of a file, or the sizes of all regular files below a folder, by their paths in it; of folders -1.

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


def piece(directory: Path, path: str, offset: int, most_bytes: int) -> str:
    """Return the next bytes of a file (base64); empty at its end.

    Raises:
        OSError: It is no regular file, or cannot be read.
    """
    return base64.b64encode(files.read(directory, path, most_bytes, offset)).decode()


def stream(directory: str, path: str, offset: int) -> None:
    """Print a file's size, as a line; its bytes from an offset on; and its SHA-256.

    Args:
        directory: The trial directory.
        path: The file in it.
        offset: How many of its first bytes are there already.

    Raises:
        OSError: It is no regular file, or cannot be read.
    """
    import hashlib  # noqa: PLC0415 - each request in a pod would pay for it

    output = sys.stdout.buffer
    total = hashlib.sha256()
    with files.open_regular(directory, path) as file:
        size = os.fstat(file.fileno()).st_size
        output.write(b"%d\n" % size)
        read = 0
        while read < size:
            block = file.read(min(_BLOCK_BYTES, size - read))
            if not block:
                sys.exit(f"{path} has become shorter while it was read")
            total.update(block)
            output.write(block[max(offset - read, 0) :])
            read += len(block)
    output.write(total.hexdigest().encode())
    output.flush()

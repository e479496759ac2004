"""The opening of files that a trial may have put there: a trial's code can place anything in its directory.

All reads of a trial directory go through here. Nothing is followed out of the directory (links), nothing waits
(a FIFO without a writer), nothing is endless (`/dev/zero`), and text is bounded in length and depth.

Imported by every supervisor, so it uses only the cheapest parts of the standard library.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator

TYPE_CHECKING = False  # every trial imports this module, and `typing` is slow to import
if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

_LEAST_BYTES = 1 << 16
MOST_JSON_BYTES = 4 << 20
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KINDS = {
    stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip


class NotRegularError(OSError):
    """The error that something else than a regular file lies there; `strerror` describes it."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(errno.EINVAL, f"it is {what}, not a regular file", name)


def is_absent(error: OSError) -> bool:
    """Tell whether the error proves that there is no such file; every other error proves nothing."""
    return error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG} and not isinstance(error, NotRegularError)


def open_regular(directory: str | os.PathLike[str], name: str) -> BinaryIO:
    """Open a regular file below a directory for reading; no part of `name` may be a link.

    Args:
        directory: The trial directory, or a folder of it.
        name: A path relative to it, such as `outputs/model.pkl`.

    Raises:
        NotRegularError: A link, folder, pipe, socket or device lies there, or `name` leads out of the directory.
        OSError: It cannot be opened; `is_absent` is true when there is none.
    """
    *folders, last = name.split("/")
    if any(part in {"", ".", ".."} for part in (*folders, last)):
        raise NotRegularError(name, "no path inside the folder")
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in folders:
            folder = _enter(folder, part, name)
        return _open_at(folder, last, name)
    finally:
        os.close(folder)


def _enter(parent: int, part: str, name: str) -> int:
    """Open a folder in a folder, and let go of the outer one."""
    kind = stat.S_IFMT(os.stat(part, dir_fd=parent, follow_symlinks=False).st_mode)
    if kind != stat.S_IFDIR:
        raise NotRegularError(name, f"behind {part}, which is {_KINDS.get(kind, 'a file')}")
    folder = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=parent)
    os.close(parent)
    return folder


def _open_at(folder: int, last: str, name: str) -> BinaryIO:
    try:
        fd = os.open(last, _FLAGS, dir_fd=folder)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:
            what = _KINDS[stat.S_IFLNK] if error.errno == errno.ELOOP else _KINDS[stat.S_IFSOCK]
            raise NotRegularError(name, what) from error
        raise
    kind = stat.S_IFMT(os.fstat(fd).st_mode)
    if kind == stat.S_IFREG:
        return open(fd, "rb")
    os.close(fd)
    raise NotRegularError(name, _KINDS.get(kind, "something unknown"))


def read(directory: str | os.PathLike[str], name: str, most_bytes: int, offset: int = 0) -> bytes:
    """Read at most `most_bytes` of a regular file from `offset` on; errors as `open_regular`."""
    with open_regular(directory, name) as file:
        file.seek(offset)
        there_bytes = os.fstat(file.fileno()).st_size - offset  # as many bytes as are asked for would be made room for
        return file.read(min(most_bytes, max(there_bytes, _LEAST_BYTES)))


def read_json(directory: str | os.PathLike[str], name: str) -> object:
    """Read a JSON file of at most 4 MiB.

    Raises:
        ValueError: It is too long, or no JSON.
        OSError: As `open_regular`.
    """
    data = read(directory, name, MOST_JSON_BYTES + 1)
    if len(data) > MOST_JSON_BYTES:
        raise ValueError(f"it is longer than {MOST_JSON_BYTES} bytes")
    return parse_json(data)


def parse_json(data: bytes) -> object:
    """Parse JSON that may be hostile.

    Raises:
        ValueError: It is no JSON, or is nested too deeply.
    """
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def copy_tree(directory: str | os.PathLike[str], name: str, target: str) -> list[str]:
    """Copy the regular files of a folder below a directory, with their folders.

    Args:
        directory: The trial directory.
        name: The folder in it, such as `outputs`, or `.` for all of it.
        target: Where to; made when missing.

    Returns:
        What was left out, one text each: its path in the folder, and what it is.

    Raises:
        OSError: The folder cannot be read, or the target cannot be written.
    """
    left_out = []
    os.makedirs(target, mode=0o700, exist_ok=True)
    for path, kind in walk(os.path.join(directory, name)):
        goal = os.path.join(target, path)
        if kind == stat.S_IFDIR:
            os.makedirs(goal, mode=0o700, exist_ok=True)
        elif kind == stat.S_IFREG:
            copy_file(directory, os.path.normpath(f"{name}/{path}"), goal)
        else:
            left_out.append(f"{path}: {_KINDS.get(kind, 'unknown')}")
    return left_out


def walk(folder: str) -> Iterator[tuple[str, int]]:
    """Yield all that lies below a folder, outer folders first: relative path, and file type (`stat.S_IFMT`).

    Links are given, never followed. Entries that go meanwhile are left out.
    """
    todo = [""]
    while todo:
        inside = todo.pop()
        with os.scandir(os.path.join(folder, inside)) as entries:
            kinds = sorted((os.path.join(inside, entry.name), _kind(entry)) for entry in entries)
        found = [(path, kind) for path, kind in kinds if kind]
        todo += [path for path, kind in found if kind == stat.S_IFDIR]
        yield from found


def _kind(entry: os.DirEntry[str]) -> int:
    """Return the file type; 0 where the entry went meanwhile."""
    try:
        return stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return 0


def copy_file(directory: str | os.PathLike[str], name: str, target: str) -> None:
    """Copy one regular file below a directory; `target` may not be a link. Errors as `open_regular`."""
    import shutil  # noqa: PLC0415 - no trial copies this way, and each would pay for it

    with open_regular(directory, name) as source, open(target, "wb", opener=private_opener) as goal:
        shutil.copyfileobj(source, goal, 1 << 20)


def make_directories(path: Path) -> None:
    """Make a folder and all above it that are missing, for their owner alone."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        make_directories(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def private_opener(path: str, flags: int) -> int:
    """Open a file that only its owner may read, as an `opener` for `open`; a link is not followed."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

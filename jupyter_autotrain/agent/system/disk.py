"""The meaning of a failed read or write, in words that name the disk or the path."""

from __future__ import annotations

import errno
import os
import resource

from jupyter_autotrain.agent.sizes import format_bytes

_FULL = {errno.ENOSPC, errno.EDQUOT}
_LITTLE_BYTES = 1 << 18
_FEW_DESCRIPTORS = 8  # what one call may need at the same time
_FOR_NOW = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM})


def is_for_now(number: int | None) -> bool:
    """Tell whether an errno may be gone a moment later: no descriptor, process or memory is free just now."""
    return number in _FOR_NOW


def passes(error: BaseException | None) -> bool:
    """Tell whether an error may be gone a moment later: by its errno, by its causes, or as there is no descriptor."""
    while error is not None:
        if isinstance(error, OSError) and is_for_now(error.errno):
            return True
        error = error.__cause__
    return _is_out_of_descriptors()


def _is_out_of_descriptors() -> bool:
    taken: list[int] = []
    try:
        for _ in range(_FEW_DESCRIPTORS):
            taken.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))  # noqa: PERF401 - those before one that fails count
    except OSError as error:
        return is_for_now(error.errno)
    finally:
        for fd in taken:
            os.close(fd)
    return False


def is_full(error: BaseException) -> bool:
    """Tell whether a disk, or the share of it that its user may fill, is used up."""
    return isinstance(error, OSError) and error.errno in _FULL


def is_nearly_full(path: str) -> bool:
    """Tell whether hardly anything more can be written where a path lies."""
    try:
        found = os.statvfs(path)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < _LITTLE_BYTES or found.f_favail == 0 < found.f_files


def explain(number: int | None, path: str) -> tuple[str, str] | None:
    """Explain an errno for a path: the thing found (without a full stop), and the next thing to do.

    The result is None when the errno has nothing to do with a disk, a path or open files.
    """
    if number in _FULL:
        return full(path), "Free some of it, then `%autotrain retry`."
    if number == errno.EROFS:
        return f"the disk of {path} cannot be written (it is read-only)", "Choose a home on another disk."
    if number == errno.ENAMETOOLONG:
        count = len(os.fsencode(path))
        return f"the path {_short(path)} is too long ({count} bytes)", "Set JUPYTER_AUTOTRAIN_HOME to a shorter path."
    if number in {errno.ENOTDIR, errno.EEXIST}:
        return f"a file is where the folder {path} was expected", "Move it away, then `%autotrain retry`."
    if number in {errno.EMFILE, errno.ENFILE}:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return f"too many files are open (at most {most} per process)", "Raise `ulimit -n`, then `%autotrain retry`."
    return None


def full(path: str) -> str:
    """Say, without a full stop, that the disk where a path lies is full."""
    return f"the disk of {path} is full ({_free(path)})"


def _free(path: str) -> str:
    """Say how much is free where a path lies, or would lie."""
    there = path
    while there != "/" and not os.path.isdir(there):
        there = os.path.dirname(os.path.abspath(there))
    try:
        found = os.statvfs(there)
    except OSError:
        return "its free space is not known"
    free = found.f_bavail * found.f_frsize
    whole = found.f_blocks * found.f_frsize
    return f"{format_bytes(free)} of {format_bytes(whole)} free, {found.f_favail} files more"


def _short(path: str, most: int = 120) -> str:
    return path if len(path) <= most else f"{path[: most // 2]}...{path[-most // 2 :]}"

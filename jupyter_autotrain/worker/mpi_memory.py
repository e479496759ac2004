"""Shared memory of MPICH: a rank that is killed, or that ends without `MPI_Finalize`, leaves its file behind."""

from __future__ import annotations

import contextlib
import os

from jupyter_autotrain.core import system
from jupyter_autotrain.core.process_identity import is_gone

FOLDER = "/dev/shm"  # noqa: S108 - where POSIX shared memory is
_NAMES = ("mpich_shm_", "mpich_vci_")


def remove_unused(since_s: float, folder: str = FOLDER) -> None:
    """Remove this user's files that were made since then and that no process uses: other jobs of MPICH run here, too.

    Never raises: what cannot be looked at stays.

    Args:
        since_s: In seconds since the epoch.
        folder: Where the files are.
    """
    with contextlib.suppress(OSError):
        made = {name for name in os.listdir(folder) if name.startswith(_NAMES) and _is_new(f"{folder}/{name}", since_s)}
        for name in made - _in_use(made):
            with contextlib.suppress(FileNotFoundError):  # another trial's end has removed it
                os.unlink(f"{folder}/{name}")


def _is_new(path: str, since_s: float) -> bool:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return False
    return found.st_uid == os.geteuid() and found.st_mtime >= since_s


def _in_use(names: set[str]) -> set[str]:
    """Those that a process has mapped or open; where there are none of them, no process is looked at."""
    used: set[str] = set()
    for pid in system.pids() if names else ():
        text = _files_of(pid)
        used.update(name for name in names if name in text)
    return used


def _files_of(pid: int) -> str:
    """What a process has mapped and open; "" for one that has ended, or may not be looked at, as none of a trial is."""
    try:
        return "\n".join(system.used_files(pid))
    except OSError as error:
        if is_gone(error) or isinstance(error, PermissionError):
            return ""
        raise

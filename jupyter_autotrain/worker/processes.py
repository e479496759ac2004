"""Processes of this machine: their trees, environments and memory, straight from `/proc`.

A look that fails for any other reason than that the process has ended (no descriptor left, say) raises `OSError`: it
proves nothing, and no process may be taken for dead because of it.
"""

from __future__ import annotations

import ctypes
import os
import signal

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.process_identity import ProcessIdentity, is_gone, is_zombie, stat_fields

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def send_signal(process: ProcessIdentity, number: int) -> bool:
    """Signal exactly this process; False when it is gone. Another process with its pid is never signalled.

    Raises:
        OSError: It cannot be looked at.
    """
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        if not process.is_alive():
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def descendants(root: int) -> set[int]:
    """All living processes below `root`, whatever session or group they made for themselves."""
    children: dict[int, list[int]] = {}
    for pid in _pids():
        fields = _look(pid)
        if fields is not None:
            children.setdefault(int(fields[1]), []).append(pid)
    found: set[int] = set()
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found.update(below)
        todo.extend(below)
    return found


def below_managers(root: int, workers: set[int]) -> set[int]:
    """The processes below a supervisor that belong to no trial of its own: managers its trial started, and all theirs.

    They come to lie directly below it, because it adopts orphans.

    Args:
        root: The supervisor.
        workers: Its workers, which are no managers, also before they have environments of their own.
    """
    found: set[int] = set()
    for pid in _pids():
        try:
            is_child = int(stat_fields(pid)[1]) == root
        except OSError:
            continue  # it ended while we looked
        if is_child and pid not in workers and is_of_manager(pid):
            found |= {pid, *descendants(pid)}
    return found


def is_of_manager(pid: int) -> bool:
    """True for a manager and for a supervisor: they serve a home, also when a trial's process started them."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return f"\0{wire.MANAGER_VARIABLE}=".encode() in b"\0" + file.read()
    except OSError:
        return False


def living(pids: set[int]) -> set[int]:
    """Those of the processes that are more than a zombie."""
    return {pid for pid in pids if _look(pid) is not None}


def _look(pid: int) -> list[str] | None:
    """The fields of a process; None when it has ended, also while we looked, and for a zombie."""
    try:
        fields = stat_fields(pid)
    except OSError as error:
        if is_gone(error):
            return None
        raise
    return None if is_zombie(fields) else fields


def marked(variable: str, value: str) -> set[int]:
    """All other living processes started with this environment variable: finds orphans of a dead supervisor."""
    needle = f"{variable}={value}".encode()
    return living({pid for pid in _pids() if needle in _words(pid, "environ")} - {os.getpid()})


def running(script: str, argument: str) -> set[int]:
    """All other living processes whose command ends with a script of this name and this argument."""
    wanted = [script.encode(), argument.encode()]
    found = set()
    for pid in _pids():
        words = _words(pid, "cmdline")[-3:-1]  # the text ends with an empty word
        if [os.path.basename(word) for word in words[:1]] + words[1:] == wanted:
            found.add(pid)
    return living(found - {os.getpid()})


def _words(pid: int, name: str) -> list[bytes]:
    """The words of one of a process's texts; none when it has ended, or is another user's."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read().split(b"\0")
    except OSError as error:
        if is_gone(error) or isinstance(error, PermissionError):
            return []
        raise


def resident_bytes(pids: set[int]) -> int:
    """Memory held by these processes; pages that several share are divided among them where the kernel counts that."""
    return sum(_share(pid) for pid in pids)


def _share(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except (OSError, ValueError):
        return 0


def _prctl(option: int, value: int) -> None:
    # Absent outside Linux with glibc or musl; `probe` then reports that the backend cannot be used.
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends (PR_SET_CHILD_SUBREAPER)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when `parent` ends, however it ends (PR_SET_PDEATHSIG)."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it ended before the request

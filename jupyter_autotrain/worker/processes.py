"""Processes of this machine, by identity and by tree, straight from `/proc`.

A look that fails for any other reason than that the process is gone (no descriptor left, say) raises `OSError`: it
proves nothing, and nobody may take a process for dead because of it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal

from jupyter_autotrain.core import wire

Identity = list[int | float | str]

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _stat(pid: int) -> list[str]:
    """The fields of `/proc/PID/stat` after the name: state, parent, ..., start time (proc(5))."""
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].split()


def boot_id() -> str:
    """The name of this boot of this machine."""
    return _read("/proc/sys/kernel/random/boot_id").strip()


def identity(pid: int) -> Identity:
    """`[pid, create_time_s, boot_id]`: names one process for ever, where a pid alone is used again."""
    return [pid, _birth_s(_stat(pid)), boot_id()]


def _birth_s(fields: list[str]) -> float:
    """When a process began, in seconds since boot."""
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _ended(error: OSError) -> bool:
    """True when the error says that the process is gone."""
    return error.errno in {errno.ENOENT, errno.ESRCH}


def is_alive(who: Identity | None) -> bool:
    """True while exactly this process runs; a zombie is dead.

    Raises:
        OSError: It cannot be told.
    """
    if not who or who[2] != boot_id():
        return False
    fields = _look(int(who[0]))
    return fields is not None and _birth_s(fields) == who[1]


def send(who: Identity, number: int) -> bool:
    """Signal exactly this process; False when it is gone. A pid used again is never hit.

    Raises:
        OSError: It cannot be told whether it is there.
    """
    try:
        handle = os.pidfd_open(int(who[0]))
    except ProcessLookupError:
        return False
    try:
        if not is_alive(who):
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


def below_managers(root: int, worker: int) -> set[int]:
    """The processes below a supervisor that belong to no trial of its own: managers its trial started, and all theirs.

    They come to lie directly below it, because it adopts orphans.

    Args:
        root: The supervisor.
        worker: Its worker, which is no manager, also before it has an environment of its own.
    """
    found: set[int] = set()
    for pid in _pids():
        try:
            is_child = int(_stat(pid)[1]) == root
        except OSError:
            continue  # it ended while we looked
        if is_child and pid != worker and is_of_manager(pid):
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
        fields = _stat(pid)
    except OSError as error:
        if _ended(error):
            return None
        raise
    return fields if fields and fields[0] not in "ZX" else None


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
        if _ended(error) or isinstance(error, PermissionError):
            return []
        raise


def resident_bytes(pids: set[int]) -> int:
    """Memory held by these processes; pages that several share are divided among them when the kernel can say so."""
    return sum(_share(pid) for pid in pids)


def _share(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except (OSError, ValueError):
        return 0


def _prctl(option: int, value: int) -> None:
    # Absent outside Linux with glibc or musl; `probe` has then said that this place cannot be used.
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends (PR_SET_CHILD_SUBREAPER)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when `parent` ends, however it ends (PR_SET_PDEATHSIG)."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it ended before we asked

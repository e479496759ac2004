"""Linux: `/proc`, prctl(2), pidfd_open(2), memfd_create(2), CPU masks, control groups.

Sources: proc(5) and the man pages named.
"""

from __future__ import annotations

import errno
import os

from jupyter_autotrain.core.system.common import ProcessInfo

CAN_PIN = True
"""`pin_to_cpus` works."""
MEMORY_POLL_S = 0.05
"""How often the memory of a trial is looked at where the kernel does not limit it."""
ADOPTS_ORPHANS = True
"""`adopt_orphans` works: no descendant of a supervisor is lost from its tree."""
INTERPRETER_FLAGS: tuple[str, ...] = ("-I", "-S")
"""How a supervisor's interpreter is started: without site packages."""
START_TOLERANCE_S = 0.0
"""How far two looks at one process may differ in when it began."""

_PR_SET_PDEATHSIG = 1
_SIGKILL = 9
_PR_SET_CHILD_SUBREAPER = 36


def limitations() -> tuple[str, ...]:
    """What does less here than elsewhere, in phrases for `doctor`."""
    return ()


def boot_id() -> str:
    """The name of this boot of this machine.

    Raises:
        OSError: It cannot be read.
    """
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def machine_name() -> str:
    """A name of this installation that no other machine has; "" where there is none."""
    try:
        with open("/etc/machine-id", encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def pids() -> list[int]:
    """All processes."""
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def look(pid: int) -> ProcessInfo:
    """Look at a process.

    Raises:
        OSError: There is none (ENOENT, ESRCH), or it cannot be looked at, which proves nothing.
    """
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    if not fields:
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
    created_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return ProcessInfo(int(fields[1]), created_s, fields[0] in "ZX", fields[0] == "T")


def environment(pid: int) -> list[bytes]:
    """The variables that a process was started with, each `NAME=value`.

    Raises:
        OSError: There is none, it is another user's, or it cannot be looked at.
    """
    return _words(pid, "environ")


def command(pid: int) -> list[bytes]:
    """The words of a process's command line; empty for a zombie.

    Raises:
        OSError: There is none, it is another user's, or it cannot be looked at.
    """
    return _words(pid, "cmdline")


def _words(pid: int, name: str) -> list[bytes]:
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read().split(b"\0")[:-1]  # the text ends with a zero


def used_files(pid: int) -> list[str]:
    """The files that a process has mapped or open: a line each, which ends with the path.

    Raises:
        OSError: There is no such process, or it may not be looked at.
    """
    folder = f"/proc/{pid}/fd"
    found = []
    for fd in os.listdir(folder):
        try:
            found.append(os.readlink(f"{folder}/{fd}"))
        except FileNotFoundError:
            continue  # closed meanwhile
    # Only now: a file may be opened, mapped and closed while this looks.
    return found + _read(f"/proc/{pid}/maps").splitlines()


def resident_bytes(pid: int) -> int:
    """Memory that a process holds: its share of pages that several hold; 0 when it cannot be looked at."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except (OSError, ValueError):
        return 0


def children(pid: int) -> list[int]:
    """The living children of a process, as far as they can be looked at; one that begins or ends now may be missing."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += [int(word) for word in _read(f"/proc/{pid}/task/{thread}/children").split()]
    except OSError:
        pass
    return found


def cpu_s(pid: int) -> float:
    """CPU time that a process and those of its children that are reaped have used; 0 when it cannot be looked at."""
    try:
        fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return 0.0


def send_signal(pid: int, created_s: float, number: int) -> bool:
    """Signal the process that began at `created_s`; False when it is gone. No other one with its pid is signalled.

    Raises:
        OSError: It cannot be looked at.
    """
    import signal  # noqa: PLC0415 - a worker never needs it from here

    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if look(pid).created_s != created_s:
            return False
        signal.pidfd_send_signal(handle, number)
    except (FileNotFoundError, ProcessLookupError):
        return False
    finally:
        os.close(handle)
    return True


def _prctl(option: int, value: int) -> None:
    import ctypes  # noqa: PLC0415 - takes longer to import than all else here

    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends (PR_SET_CHILD_SUBREAPER)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when `parent` ends, however it ends (PR_SET_PDEATHSIG)."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it ended before the request


def usable_cpus() -> list[int]:
    """The numbers of the CPUs that this process may use."""
    return sorted(os.sched_getaffinity(0))


def pin_to_cpus(cpus: list[int]) -> bool:
    """Keep this process and its children on these CPUs; False where that cannot be done."""
    os.sched_setaffinity(0, cpus)
    return True


def copy_cpu_mask(pid: int) -> None:
    """Use the CPUs that another process uses."""
    os.sched_setaffinity(0, os.sched_getaffinity(pid))


def anonymous_file() -> int:
    """A file without a name, in memory."""
    return os.memfd_create("autotrain")


def filesystems() -> list[tuple[str, str]]:
    """Mount point and type of each mounted file system; none where they cannot be listed."""
    try:
        return mount_points(_read("/proc/self/mountinfo"))
    except OSError:
        return []


def mount_points(mountinfo: str) -> list[tuple[str, str]]:
    """Mount points and types, from the text of `mountinfo`."""
    found = []
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        found.append((left.split()[4].replace("\\040", " "), right.split()[0]))
    return found


def control_group_texts(pid: int | str) -> tuple[str, str]:
    """Where control groups are mounted, and which of them a process is in (proc(5): `mountinfo`, `cgroup`).

    Raises:
        OSError: They cannot be read.
    """
    return _read("/proc/self/mountinfo"), _read(f"/proc/{pid}/cgroup")


def kernel_root_users() -> set[int]:
    """The numbers that stand for root: in a container without root of its own, also that of users from outside."""
    try:
        mapped = [int(line.split()[0]) for line in _read("/proc/self/uid_map").splitlines()]
        return {0} if 0 in mapped else {0, int(_read("/proc/sys/kernel/overflowuid"))}
    except (OSError, ValueError, IndexError):
        return {0}


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()

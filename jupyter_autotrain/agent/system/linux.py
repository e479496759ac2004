"""Linux: `/proc`, prctl(2), pidfd_open(2), memfd_create(2), CPU masks, control groups.

Sources: proc(5) and the man pages named.
"""

from __future__ import annotations

import errno
import os

from jupyter_autotrain.agent.system.common import ProcessInfo

TYPE_CHECKING = False  # every process of a trial imports this
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CAN_PIN = True
"""`pin_to_cpus` works."""
MEMORY_POLL_S = 0.05
"""Seconds between two looks at the memory of a trial where the kernel does not limit it."""
ADOPTS_ORPHANS = True
"""`adopt_orphans` works: no descendant of a supervisor is lost from its tree."""
INTERPRETER_FLAGS: tuple[str, ...] = ("-I", "-S")
"""The options of a supervisor's interpreter: it starts without site packages."""
START_TOLERANCE_S = 0.0
"""The most by which two looks at one process may differ in when it began."""

_PR_SET_PDEATHSIG = 1
_SIGKILL = 9
_PR_SET_CHILD_SUBREAPER = 36
_MADV_COLLAPSE = 25
_HUGE_PAGE_BYTES = 2 << 20  # of most machines; on others nothing happens


def limitations() -> tuple[str, ...]:
    """Return the functions that do less here than elsewhere, in phrases for `doctor`."""
    return ()


def boot_id() -> str:
    """Return the name of this boot of this machine.

    Raises:
        OSError: It cannot be read.
    """
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def machine_name() -> str:
    """Return a name of this installation that no other machine has; "" where there is none."""
    try:
        with open("/etc/machine-id", encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def pids() -> list[int]:
    """Return the pids of all processes."""
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
    """Return the variables that a process was started with, each `NAME=value`.

    Raises:
        OSError: There is none, it is another user's, or it cannot be looked at.
    """
    return _words(pid, "environ")


def command(pid: int) -> list[bytes]:
    """Return the words of a process's command line; empty for a zombie.

    Raises:
        OSError: There is none, it is another user's, or it cannot be looked at.
    """
    return _words(pid, "cmdline")


def _words(pid: int, name: str) -> list[bytes]:
    with open(f"/proc/{pid}/{name}", "rb") as file:
        text = file.read().rstrip(b"\0")  # it ends with a zero, with many where `show_as` has written it
    return text.split(b"\0") if text else []


def show_as(argv: Sequence[str], variables: Mapping[str, str]) -> None:
    """Have the kernel show another command and other variables of this process, which was forked and starts no program.

    They go where those lie that it was started with, so they may not be longer; its own variables are copied before.

    Raises:
        OSError: They cannot be written, or are too long.
    """
    own = dict(os.environ)
    os.environ.clear()  # of C libraries, too: their pointers lead elsewhere then
    os.environ.update(own)
    with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
        bounds = list(map(int, file.read().rpartition(")")[2].split()[45:49]))
    memory = os.open("/proc/self/mem", os.O_WRONLY | os.O_CLOEXEC)
    try:
        _overwrite(memory, bounds[0], bounds[1], argv)
        _overwrite(memory, bounds[2], bounds[3], [f"{name}={value}" for name, value in variables.items()])
    finally:
        os.close(memory)


def _overwrite(memory: int, begin: int, end: int, words: Sequence[str]) -> None:
    text = b"".join(os.fsencode(word) + b"\0" for word in words)
    if len(text) > end - begin:
        raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))
    os.pwrite(memory, text.ljust(end - begin, b"\0"), begin)


def used_files(pid: int) -> list[str]:
    """Return the files that a process has mapped or open: a line each, which ends with the path.

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
    """Return the memory that a process holds.

    It is the process's share of pages that several hold; 0 when it cannot be looked at.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except (OSError, ValueError):
        return 0


def children(pid: int) -> list[int]:
    """Return the living children of a process, as far as they can be looked at.

    One that begins or ends now may be missing.
    """
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += list(map(int, _read(f"/proc/{pid}/task/{thread}/children").split()))
    except OSError:
        pass
    return found


def cpu_s(pid: int) -> float:
    """Return the CPU time that a process and its reaped children have used; 0 when it cannot be looked at."""
    try:
        fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return 0.0


def send_signal(pid: int, created_s: float, number: int) -> bool:
    """Signal the process that began at `created_s`; return False when it is gone.

    No other process with its pid is signalled.

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
    """Return the numbers of the CPUs that this process may use."""
    return sorted(os.sched_getaffinity(0))


def pin_to_cpus(cpus: list[int]) -> bool:
    """Keep this process and its children on these CPUs; return False where that cannot be done."""
    os.sched_setaffinity(0, cpus)
    return True


def copy_cpu_mask(pid: int) -> None:
    """Use the CPUs that another process uses."""
    os.sched_setaffinity(0, os.sched_getaffinity(pid))


def anonymous_file() -> int:
    """Open a file without a name, in memory."""
    return os.memfd_create("autotrain")


def use_huge_pages() -> None:
    """Move what this process holds into huge pages, as far as the kernel can (madvise(2), Linux 6.1).

    A copy of the process then costs a third, since the kernel copies an entry for each page.
    """
    import ctypes  # noqa: PLC0415 - as above

    madvise = ctypes.CDLL(None).madvise
    for line in _read("/proc/self/maps").splitlines():
        words = line.split()
        if words[1].startswith("rw") and words[5:] in ([], ["[heap]"]):
            begin, end = (int(bound, 16) for bound in words[0].split("-"))
            begin += -begin % _HUGE_PAGE_BYTES
            for page in range(begin, end - _HUGE_PAGE_BYTES + 1, _HUGE_PAGE_BYTES):
                madvise(ctypes.c_void_p(page), ctypes.c_size_t(_HUGE_PAGE_BYTES), _MADV_COLLAPSE)


def filesystems() -> list[tuple[str, str]]:
    """Return the mount point and type of each mounted file system; none where they cannot be listed."""
    try:
        return mount_points(_read("/proc/self/mountinfo"))
    except OSError:
        return []


def mount_points(mountinfo: str) -> list[tuple[str, str]]:
    """Return the mount points and types in the text of `mountinfo`."""
    found = []
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        found.append((left.split()[4].replace("\\040", " "), right.split()[0]))
    return found


def control_group_texts(pid: int | str) -> tuple[str, str]:
    """Return the mounts of control groups, and the groups of a process (proc(5): `mountinfo`, `cgroup`).

    Raises:
        OSError: They cannot be read.
    """
    return _read("/proc/self/mountinfo"), _read(f"/proc/{pid}/cgroup")


def file_mask(pid: int) -> str:
    """Return the mask of new files of a process (umask), in octal; "" where it cannot be looked at."""
    try:
        return _read(f"/proc/{pid}/status").partition("Umask:")[2].split()[0]
    except (OSError, IndexError):
        return ""


def kernel_root_users() -> set[int]:
    """Return the numbers that stand for root.

    In a container without root of its own, they include the one that stands for users from outside.
    """
    try:
        mapped = [int(line.split()[0]) for line in _read("/proc/self/uid_map").splitlines()]
        return {0} if 0 in mapped else {0, int(_read("/proc/sys/kernel/overflowuid"))}
    except (OSError, ValueError, IndexError):
        return {0}


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()

"""Any Unix: psutil for processes, sessions instead of subreapers, polling instead of control groups.

Functions, arguments and errors are those of `linux`. A remote host that is no Linux needs psutil in its interpreter.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType

from jupyter_autotrain.agent.system.common import ProcessInfo

CAN_PIN = False
MEMORY_POLL_S = 0.25
ADOPTS_ORPHANS = False
INTERPRETER_FLAGS: tuple[str, ...] = ("-I",)  # with site packages: psutil is one
START_TOLERANCE_S = 2.0  # the wall clock is adjusted; a pid is not used again so soon

_UUID_BYTES = 64


def limitations() -> tuple[str, ...]:
    """Return the functions that do less here than on Linux, in phrases for `doctor`."""
    return (
        "CPUs and the number of processes are not limited",
        "memory is looked at 4 times a second, shared pages count for each process",
        "processes of a killed supervisor are ended when the manager looks, not at once",
        "a process that leaves its session and clears its environment is not found",
    )


def _psutil() -> ModuleType:
    try:
        import psutil  # noqa: PLC0415 - only where it is needed: a worker's interpreter may lack it
    except ImportError:
        raise OSError(errno.ENOSYS, "psutil is not installed, and there is no /proc: pip install psutil") from None
    return psutil


@contextmanager
def _as_os_errors() -> Iterator[None]:
    psutil = _psutil()
    try:
        yield
    except psutil.NoSuchProcess:
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH)) from None
    except psutil.AccessDenied:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None


def boot_id() -> str:
    """Return the name of this boot: macOS names its boot session, elsewhere the time of the boot has to do."""
    return _sysctl("kern.bootsessionuuid") or str(_psutil().boot_time())


def _sysctl(name: str) -> str:
    """Return a text of sysctl(3); "" where there is none."""
    import ctypes  # noqa: PLC0415 - takes longer to import than all else here

    by_name = getattr(ctypes.CDLL(None), "sysctlbyname", None)
    if by_name is None:
        return ""
    text = ctypes.create_string_buffer(_UUID_BYTES)
    size = ctypes.c_size_t(_UUID_BYTES)
    failed = by_name(name.encode(), text, ctypes.byref(size), None, ctypes.c_size_t(0))
    return "" if failed else text.value.decode()


def machine_name() -> str:
    """Return "", as there is no name but the host's."""
    return ""


def pids() -> list[int]:
    """Return the pids of all processes."""
    found: list[int] = _psutil().pids()
    return found


def look(pid: int) -> ProcessInfo:
    """Look at a process."""
    psutil = _psutil()
    with _as_os_errors():
        process = psutil.Process(pid)
        with process.oneshot():
            created_s = process.create_time() - psutil.boot_time()
            state = process.status()
            is_stopped = state == psutil.STATUS_STOPPED
            return ProcessInfo(process.ppid(), created_s, state == psutil.STATUS_ZOMBIE, is_stopped)


def environment(pid: int) -> list[bytes]:
    """Return the variables that a process was started with, each `NAME=value`."""
    with _as_os_errors():
        variables = _psutil().Process(pid).environ()
    return [os.fsencode(f"{name}={value}") for name, value in variables.items()]


def command(pid: int) -> list[bytes]:
    """Return the words of a process's command line; empty for a zombie."""
    psutil = _psutil()
    with _as_os_errors():
        try:
            return list(map(os.fsencode, psutil.Process(pid).cmdline()))
        except psutil.ZombieProcess:
            return []


def used_files(pid: int) -> list[str]:
    """Return the files that a process has open, and where that can be told, those that it has mapped."""
    with _as_os_errors():
        process = _psutil().Process(pid)
        mapped = process.memory_maps() if hasattr(process, "memory_maps") else []
        return [one.path for one in (*mapped, *process.open_files())]


def resident_bytes(pid: int) -> int:
    """Return the memory that a process holds, shared pages too; 0 when it cannot be looked at."""
    try:
        with _as_os_errors():
            return int(_psutil().Process(pid).memory_info().rss)
    except OSError:
        return 0


def children(pid: int) -> list[int]:
    """Return the living children of a process, as far as they can be looked at."""
    try:
        with _as_os_errors():
            return [child.pid for child in _psutil().Process(pid).children()]
    except OSError:
        return []


def cpu_s(pid: int) -> float:
    """Return the CPU time that a process and its reaped children have used; 0 when it cannot be looked at."""
    try:
        with _as_os_errors():
            times = _psutil().Process(pid).cpu_times()
            return float(times.user + times.system + times.children_user + times.children_system)
    except OSError:
        return 0.0


def send_signal(pid: int, created_s: float, number: int) -> bool:
    """Signal the process that began at `created_s`; return False when it is gone."""
    try:
        if abs(look(pid).created_s - created_s) > START_TOLERANCE_S:
            return False
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def adopt_orphans() -> None:
    """Do nothing: a supervisor finds orphans by session and environment."""


def show_as(argv: Sequence[str], variables: Mapping[str, str]) -> None:  # noqa: ARG001 - as on Linux
    """Refuse: processes that are forked cannot be told from each other here.

    Raises:
        OSError: Always.
    """
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def die_with_parent(parent: int) -> None:
    """Do nothing: the manager ends the processes of a killed supervisor."""


def usable_cpus() -> list[int]:
    """Return the numbers of the CPUs."""
    return list(range(os.cpu_count() or 1))


def pin_to_cpus(cpus: list[int]) -> bool:  # noqa: ARG001 - as on Linux
    """Return False: no process can be pinned here."""
    return False


def copy_cpu_mask(pid: int) -> None:
    """Do nothing: no process is kept on some CPUs."""


def anonymous_file() -> int:
    """Open a file without a name, in the folder of temporary files."""
    import tempfile  # noqa: PLC0415 - a worker never needs it

    fd, path = tempfile.mkstemp(prefix="autotrain-")
    os.unlink(path)
    return fd


def use_huge_pages() -> None:
    """Do nothing: nothing is forked from a large process."""


def filesystems() -> list[tuple[str, str]]:
    """Return the mount point and type of each mounted file system; none where they cannot be listed."""
    try:
        return [(disk.mountpoint, disk.fstype) for disk in _psutil().disk_partitions(all=True)]
    except OSError:
        return []


def control_group_texts(pid: int | str) -> tuple[str, str]:
    """Raise an error: there are no control groups here."""
    raise OSError(errno.ENOSYS, f"no control groups here, process {pid}")


def file_mask(pid: int) -> str:  # noqa: ARG001 - as on Linux
    """Return "": only Linux tells the mask of a process without changing it."""
    return ""


def kernel_root_users() -> set[int]:
    """Return root alone."""
    return {0}

"""Starting the one manager of a home, and asking whether it lives.

The manager is who holds the lock (flock) on `manager.lock` and has written its identity there. The lock goes with its
process, so a lock file left behind is harmless. The starting process takes the lock and forks; the child, which is in
a session of its own as a daemon (double fork), keeps it. So no interrupt, restart or end of a notebook kernel can
reach it.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from jupyter_autotrain.agent import VERSION, environment
from jupyter_autotrain.core.home import Home, make_private
from jupyter_autotrain.errors import ManagerError, OutdatedError
from jupyter_autotrain.manager.contact import ManagerIdentity, is_newer, last_version, notify

HELD_EXIT_CODE = 3
OUTDATED_EXIT_CODE = 4
_DEADLINE_S = 60.0
_LEAVE_S = 10.0  # for the manager of an older version; then it is killed, which loses nothing either
_MOST_STARTS = 5
_LOOK_AGAIN_S = 0.05
_LOG_LIMIT_BYTES = 5_000_000
_LOG_TAIL_LINES = 3
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class ManagerStatus:
    """The state of a home's manager; `resident_bytes` is its resident memory. All None or 0 when there is none."""

    alive: bool
    pid: int | None = None
    host: str = ""
    resident_bytes: int = 0


def status(home: Home) -> ManagerStatus:
    """Look at a home's manager without disturbing it."""
    identity = ManagerIdentity.read(home.manager_lock)
    if identity is None or not identity.alive:
        return ManagerStatus(alive=False)
    import psutil  # noqa: PLC0415 - only when asked for

    with suppress(psutil.NoSuchProcess):
        return ManagerStatus(True, identity.pid, identity.host, psutil.Process(identity.pid).memory_info().rss)
    return ManagerStatus(alive=False)


def is_missing(home: Home) -> bool:
    """Return True when a home is there and no process serves it, on this machine or on another one; cheap."""
    identity = ManagerIdentity.read(home.manager_lock)
    if identity is not None and (identity.alive or identity.host != os.uname().nodename):
        return False
    return home.root.is_dir() and _is_free(home)


def stopped_by_signal(home: Home) -> str:
    """Return a sentence where a signal such as SIGSTOP holds the home's manager, and how it goes on; else ""."""
    identity = ManagerIdentity.read(home.manager_lock)
    if identity is None or not identity.is_stopped:
        return ""
    return f"The manager (process {identity.pid}) is stopped by a signal; it goes on with `kill -CONT {identity.pid}`."


def ensure(home: Home) -> ManagerIdentity:
    """Make sure that a manager serves the home; start one when none lives, again when it is killed as it starts.

    The manager of an older version is told to leave: it does not know all that this one asks for.

    Returns:
        The identity of the manager, which listens.

    Raises:
        ManagerError: When the home cannot be written, the manager does not come up, or a signal holds it.
        OutdatedError: A newer version has served the home, and this one may not start a manager of its own.
    """
    deadline = time.monotonic() + _DEADLINE_S
    pause = 0.002
    starts = 0
    while time.monotonic() < deadline:
        if serving := _serving(home):
            return serving
        if not starts or _is_free(home):
            if starts == _MOST_STARTS:
                break
            code = _spawn(home)
            if code == HELD_EXIT_CODE and (elsewhere := _on_another_host(home)):
                return elsewhere
            if code > 0 and code != HELD_EXIT_CODE:
                break
            starts += code != HELD_EXIT_CODE
        time.sleep(pause)
        pause = min(2 * pause, 0.1)
    raise ManagerError(
        f"The manager of {home.root} did not start.",
        _tail(home.manager_log),
        f"Read {home.manager_log}, then try again.",
    )


def _serving(home: Home) -> ManagerIdentity | None:
    """Return the manager that serves the home from here; one of an older version is made to leave.

    Raises:
        ManagerError: A signal holds it.
    """
    identity = ManagerIdentity.read(home.manager_lock)
    if identity is None or not identity.alive:
        return None
    if identity.is_stopped:
        raise _held_by_signal(identity)
    if is_newer(VERSION, identity.version):
        _hand_over(home, identity)
        return None
    return identity


def _held_by_signal(identity: ManagerIdentity) -> ManagerError:
    return ManagerError(
        f"The manager (process {identity.pid}) is stopped by a signal, such as that of Ctrl-Z.",
        "It was expected to run; its trials go on, and nothing is lost.",
        f"Let it go on: kill -CONT {identity.pid}",
    )


def _hand_over(home: Home, older: ManagerIdentity) -> None:
    """Have the manager of an older version finish its writes and leave; trials go on, the next one takes over."""
    deadline = time.monotonic() + _LEAVE_S
    notify(home)  # every message says of which version its sender is
    while older.alive and time.monotonic() < deadline:
        time.sleep(_LOOK_AGAIN_S)
    if older.alive:
        with suppress(ProcessLookupError):
            os.kill(older.pid, signal.SIGKILL)


def _on_another_host(home: Home) -> ManagerIdentity | None:
    """Return the manager that serves the home from another machine.

    Raises:
        ManagerError: It is of an older version.
    """
    identity = ManagerIdentity.read(home.manager_lock)
    if identity is None or identity.host == os.uname().nodename:
        return None
    if is_newer(VERSION, identity.version):
        raise ManagerError(
            f"The manager on {identity.host} is of version {identity.version or 'unknown'}; this is {VERSION}.",
            "A manager as new as its clients: it would pass over what it does not know.",
            f"End it there (kill {identity.pid}; its trials go on), then try again.",
        )
    return identity


def _newer_than_this(home: Home) -> str:
    return f"{home.root} was served by jupyter-autotrain {last_version(home.manager_lock)}; this is {VERSION}."


def is_outdated(home: Home) -> bool:
    """Return True when a newer version has served the home.

    A manager of this one would pass over what it does not know.
    """
    return is_newer(last_version(home.manager_lock), VERSION)


def _is_free(home: Home) -> bool:
    """Return whether no process holds the home's lock.

    A manager that was started has ended before it wrote its identity.
    """
    lock = take_lock(home)
    if lock is not None:
        os.close(lock)
    return lock is not None


def take_lock(home: Home) -> int | None:
    """Take the home's lock; None when another process holds it. The lock goes with the process.

    Raises:
        OSError: When the home cannot be written.
        StoreError: When it is not the user's alone.
    """
    make_private(home)
    while True:
        fd = os.open(home.manager_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        if is_lock_in_place(home, fd):
            return fd
        os.close(fd)  # deleted in between: an unlinked lock file excludes no process, so try again


@contextmanager
def stopped(home: Home) -> Iterator[None]:
    """End the home's manager and let none start while the block runs; its trials go on.

    Raises:
        ManagerError: It does not end.
        OSError: When the home cannot be written.
    """
    deadline = time.monotonic() + _DEADLINE_S
    while (lock := take_lock(home)) is None:
        identity = ManagerIdentity.read(home.manager_lock)
        if identity is not None and identity.alive:
            with suppress(ProcessLookupError):
                os.kill(identity.pid, signal.SIGKILL)  # it may be killed at any instant and loses nothing
        if time.monotonic() > deadline:
            raise ManagerError(
                f"The manager of {home.root} does not end.", _tail(home.manager_log), "End it by hand, then try again."
            )
        time.sleep(_LOOK_AGAIN_S)
    try:
        yield
    finally:
        os.close(lock)


def is_lock_in_place(home: Home, lock: int) -> bool:
    """Return True when the lock file that a process holds is still the one that others find."""
    try:
        return os.path.samestat(home.manager_lock.stat(), os.fstat(lock))
    except FileNotFoundError:
        return False


def _spawn(home: Home) -> int:
    """Run the starting process, which forks the manager and ends.

    Returns:
        0, `HELD_EXIT_CODE` when another manager is there, the negative signal that killed it, or another code.

    Raises:
        ManagerError: The home cannot be written.
        OutdatedError: A newer version has served the home.
    """
    try:
        make_private(home)
        log = os.open(home.manager_log, _APPEND, 0o600)
    except OSError as error:
        raise ManagerError(
            f"The home {home.root} cannot be written: {error.strerror}.",
            "The manager keeps its log and its lock there.",
            "Free the disk or set JUPYTER_AUTOTRAIN_HOME to a folder that can be written.",
        ) from error
    try:
        if os.fstat(log).st_size > _LOG_LIMIT_BYTES:
            os.ftruncate(log, 0)
        argv = [sys.executable, "-P", "-m", "jupyter_autotrain.manager", str(home.root.absolute())]
        code = subprocess.run(
            argv, env=environment.of_manager(os.environ), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            cwd=home.root, start_new_session=True, check=False,
        ).returncode  # fmt: skip
    finally:
        os.close(log)
    if code == OUTDATED_EXIT_CODE:
        raise OutdatedError(_newer_than_this(home))
    return code


def _tail(path: Path) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:])
    except OSError:
        return ""

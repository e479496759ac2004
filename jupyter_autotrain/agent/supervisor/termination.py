"""The end of a set of processes that may still grow, and the record of which of them took what.

Then the files that only a running trial needs are removed. What it printed, reported, saved and wrote stays, and so
does `status.json`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import time
from collections.abc import Callable

from jupyter_autotrain.agent import files, wire

_POLL_S = 0.005


class Termination:
    """The effort that ending a tree of processes took.

    Attributes:
        signalled: The processes that were sent a signal.
        killed: Those that were sent SIGKILL.
        left: Those that still live.
        elapsed_s: How long it took.
    """

    def __init__(self) -> None:
        self.signalled: set[int] = set()
        self.killed: set[int] = set()
        self.left: set[int] = set()
        self.elapsed_s = 0.0

    def send(self, pids: set[int], number: int) -> None:
        """Signal processes: SIGTERM once, SIGKILL each time they are found."""
        _signal_all(pids - self.signalled if number == signal.SIGTERM else pids, number)
        self.signalled |= pids
        if number == signal.SIGKILL:
            self.killed |= pids

    def to_json(self) -> dict[str, object]:
        """Return the `receipt` of a status file; see `agent.wire`."""
        ended = sorted(self.signalled - self.killed - self.left)
        return {
            "ended": ended,
            "killed": sorted(self.killed - self.left),
            "left": sorted(self.left),
            "elapsed_s": round(self.elapsed_s, 4),
        }


def terminate(
    members: Callable[[], set[int]],
    grace_s: float,
    *,
    before_kill: Callable[[], object] = bool,
    kill_timeout_s: float = 10.0,
) -> Termination:
    """End all processes of a set that may still grow: SIGTERM, then after `grace_s` SIGKILL until none is left.

    Args:
        members: Lists who still lives; called again and again.
        grace_s: How long the processes may take to end themselves.
        before_kill: Called once before the killing: forbids new processes where that can be done.
        kill_timeout_s: How long to go on killing; a process blocked in the kernel cannot be ended by anyone.

    Raises:
        OSError: Who is left cannot be found out.
    """
    termination = Termination()
    start_s = time.monotonic()
    while (living := _living(members)) != set() and time.monotonic() - start_s < grace_s:
        termination.send(living or set(), signal.SIGTERM)
        time.sleep(_POLL_S)
    if living != set():
        before_kill()
        termination.send(living or set(), signal.SIGKILL)  # also those that end because they can start no processes
    while (living := _living(members)) != set() and time.monotonic() - start_s < grace_s + kill_timeout_s:
        termination.send(living or set(), signal.SIGKILL)
        time.sleep(_POLL_S)
    termination.left = members()
    termination.elapsed_s = time.monotonic() - start_s
    return termination


def _living(members: Callable[[], set[int]]) -> set[int] | None:
    """Return the processes that still live; None when that cannot be found out just now."""
    try:
        return members()
    except OSError:
        return None


def _signal_all(pids: set[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
            if number == signal.SIGTERM:
                os.kill(pid, signal.SIGCONT)  # a stopped process handles no SIGTERM
        except (ProcessLookupError, PermissionError):
            continue


_DRAFT = ".draft"


def remove_temporary_files(directory: str, bundle: str) -> None:
    """Remove the files that only a running trial needs.

    This never raises, and may be cut short anywhere: rests do no harm.

    Args:
        directory: The trial directory; nothing of the trial runs any more.
        bundle: The experiment's bundle: links into it in `work/` go.
    """
    _unlink_data(directory)
    _remove(f"{directory}/{wire.TRIAL_FILE}")
    for name in _names(directory):
        if name.endswith(_DRAFT) or name.partition("-")[0] in {wire.STACKS, wire.DEBUG}:
            _remove(f"{directory}/{name}")
        elif name.partition("-")[0] in {wire.STDOUT, wire.STDERR, wire.LAUNCHER_LOG}:  # that of any rank
            _remove_empty(f"{directory}/{name}")
    _clear(f"{directory}/{wire.CONTROL}")
    _unlink_shipped(f"{directory}/{wire.WORK}", f"{bundle}/files")
    for folder in wire.FOLDERS:
        _remove_folder(f"{directory}/{folder}")


def _names(folder: str) -> list[str]:
    if os.path.islink(folder):
        return []
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _remove_folder(path: str) -> None:
    with contextlib.suppress(OSError):  # it holds something that stays
        os.rmdir(path)


def _remove_empty(path: str) -> None:
    with contextlib.suppress(OSError):
        found = os.lstat(path)
        if found.st_size == 0 and found.st_nlink == 1:  # into one with several links another node may still write
            os.unlink(path)


def _clear(folder: str) -> None:
    """Remove the files of a folder."""
    for name in _names(folder):
        _remove(f"{folder}/{name}")


def _unlink_data(directory: str) -> None:
    """Remove the links to the files that `data:` names."""
    with contextlib.suppress(OSError, ValueError, AttributeError, TypeError):  # the trial has written over the file
        trial = files.read_json(directory, wire.TRIAL_FILE)
        for entry in trial.get("data", ()) if isinstance(trial, dict) else ():
            path = f"{directory}/{wire.WORK}/{entry['work_path']}"
            if entry["work_path"] and os.path.islink(path) and os.readlink(path) == entry["path"]:
                os.unlink(path)


def _unlink_shipped(work: str, shipped: str) -> None:
    """Remove the links to shipped files, copies that are as they were, and files compiled from them.

    Their folders go too where these are empty then. It goes by the shipped files, since the trial may have made folders
    of any depth, and links that lead elsewhere.
    """
    real = os.path.realpath(work)
    for folder, _, names in os.walk(shipped, topdown=False):
        inside = os.path.relpath(folder, shipped)
        there = real if inside == "." else f"{real}/{inside}"
        if os.path.realpath(there) != there:
            continue
        for name in names:
            if _is_unchanged(f"{there}/{name}", f"{folder}/{name}"):
                _remove(f"{there}/{name}")
        _clear(f"{there}/__pycache__")
        _remove_folder(f"{there}/__pycache__")
        _remove_folder(there)


def _is_unchanged(path: str, shipped: str) -> bool:
    """Tell whether a file is the link to a shipped one, or a copy of it that was not written to."""
    try:
        if os.path.islink(path):
            return os.readlink(path) == shipped
        mine = os.lstat(path)
        theirs = os.lstat(shipped)
    except OSError:
        return False
    return stat.S_ISREG(mine.st_mode) and (mine.st_size, mine.st_mtime_ns) == (theirs.st_size, theirs.st_mtime_ns)

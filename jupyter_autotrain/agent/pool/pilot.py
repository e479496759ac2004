"""A pilot: the process that runs the trials of a pool one after another; see `agent.pool`."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping

from jupyter_autotrain.agent import system
from jupyter_autotrain.agent.pool import rules
from jupyter_autotrain.agent.pool.waiting import RAN, TAKEN, WaitingTrials, read_entry
from jupyter_autotrain.agent.supervisor import termination
from jupyter_autotrain.agent.supervisor.streams import EventWaiter
from jupyter_autotrain.agent.system import processes

PILOTS = "pilots"
_FIRST_PAUSE_S = 0.02
_PAUSE_GROWTH = 1.5
_LOOK_AFTER_S = 1.0
Entry = Mapping[str, object]
Run = Callable[[str, Entry, str], object]


class Pilot:
    """A pilot.

    Args:
        waiting: The trials that it may take.
        folder: Its own folder, where it keeps what it has taken.
        run_trial: Runs a trial to its end, given its name and entry, and ""; called in a process of its own. Where that
            ended before the trial did, it is called in another one, with how it ended (`signal 9`), to tell of it.
        idle_s: How long it waits for another trial before it ends.
        end_s: When it is ended, on the clock of `time.time`: it takes no trial that would take longer.
        most_pause_s: How long a trial may wait at most until it is seen.
    """

    def __init__(
        self, waiting: WaitingTrials, folder: str, run_trial: Run, *, idle_s: float, end_s: float = float("inf"),
        most_pause_s: float = 0.5,
    ) -> None:  # fmt: skip
        self._waiting = waiting
        self._folder = folder
        self._run_trial = run_trial
        self._idle_s = idle_s
        self._begun_s = time.time()
        self._end_s = end_s
        self._most_pause_s = most_pause_s
        self._has_run = False
        self._events = EventWaiter()
        system.adopt_orphans()

    def run(self) -> bool:
        """Run trials until none comes, or the time that is left is too short; return False when told to end before.

        It is told by SIGTERM, which it passes on to the trial that runs.
        """
        idle_since_s = time.monotonic()
        pause_s = _FIRST_PAUSE_S
        while not self._events.got_sigterm:
            names = self._waiting.names()
            if self._run_one_of(names):
                idle_since_s = time.monotonic()
                pause_s = _FIRST_PAUSE_S
            elif names:
                return True  # those that wait need more time than it has
            elif time.monotonic() - idle_since_s > self._idle_s and self._waiting.close():
                return True
            else:
                self._events.wait(pause_s)
                pause_s = min(_PAUSE_GROWTH * pause_s, self._most_pause_s)
        return False

    def _run_one_of(self, names: list[str]) -> bool:
        """Run one of the trials that wait; return False where none can be. Those that others took leave `names`."""
        for name in list(names):
            taken = f"{self._folder}/{TAKEN}{name}"
            try:
                entry = read_entry(self._waiting.file(name))
                if not self._fits(entry):
                    continue
                os.rename(self._waiting.file(name), taken)
            except OSError:
                names.remove(name)
                continue
            if self._run_to_end(name, entry):
                with open(f"{self._folder}/{RAN}", "a", encoding="utf-8") as file:
                    file.write(f"{name}\n")
                with contextlib.suppress(OSError):
                    os.unlink(taken)
            return True
        return False

    def _fits(self, entry: Entry) -> bool:
        """Tell whether a trial ends before the pilot; its first one is taken in any case."""
        timeout_s = entry.get("timeout_s")
        limit_s = float(timeout_s) if isinstance(timeout_s, (int, float)) else None
        return not self._has_run or rules.fits(limit_s, self._end_s - time.time(), self._end_s - self._begun_s)

    def _run_to_end(self, name: str, entry: Entry) -> bool:
        """Run a trial; return False where the pilot is told to end: who tells it settles what becomes of the trial."""
        self._has_run = True
        status = self._in_process(lambda: self._run_trial(name, entry, ""))
        if status and not self._events.got_sigterm:
            self._in_process(lambda: self._run_trial(name, entry, _words(status)))
        return not self._events.got_sigterm

    def _in_process(self, call: Callable[[], object]) -> int:
        """Do something in a process of its own, and leave none that it has started; return its exit status."""
        own_pid = os.getpid()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # it is for the new process once that can handle it
        pid = os.fork()
        if pid == 0:
            _become(call, own_pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        status = self._wait(pid)
        termination.terminate(self._members, 0.0)
        return status

    def _wait(self, pid: int) -> int:
        """Wait for the end of a process; pass on a request to end to it, once."""
        is_told = False
        ended: dict[int, int] = {}
        while True:
            _reap(ended)
            if pid in ended:
                return ended[pid]
            if self._events.got_sigterm and not is_told:
                is_told = True
                os.kill(pid, signal.SIGTERM)
            self._events.wait(_LOOK_AFTER_S)

    def _members(self) -> set[int]:
        """Return the processes that a trial has left behind, but for managers that it has started: they serve homes."""
        if not _reap({}) and system.ADOPTS_ORPHANS:
            return set()
        return processes.descendants(os.getpid()) - processes.below_managers(os.getpid(), set())


def leave(folder: str) -> None:
    """Remove POOL/pilots/ID, the folder of a pilot, unless it was ended with a trial, and the pool with the last."""
    names = os.listdir(folder)
    if any(name.startswith(TAKEN) for name in names):
        return
    for name in names:
        os.unlink(f"{folder}/{name}")
    os.rmdir(folder)
    remove_unused(os.path.dirname(os.path.dirname(folder)))


def remove_unused(pool: str) -> None:
    """Remove the folder of a pool, POOL, where it has no pilots and no trials wait."""
    WaitingTrials(pool).close()
    for path in (f"{pool}/{PILOTS}", pool):
        with contextlib.suppress(OSError):  # it is needed
            os.rmdir(path)


def _reap(ended: dict[int, int]) -> bool:
    """Reap ended children, adopted ones too, and add their exit statuses; return False when there is no child."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        ended[pid] = status


def _words(status: int) -> str:
    """Say how a process has ended."""
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit code {os.WEXITSTATUS(status)}"


def _become(call: Callable[[], object], parent: int) -> None:
    """Be the process of one trial, and end; it ends with its pilot."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        system.die_with_parent(parent)
        call()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else code
        sys.stderr.write("" if isinstance(end.code, int) else f"{end.code}\n")
    except BaseException:  # noqa: BLE001 - whatever it is, this process must not go on as a second pilot
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

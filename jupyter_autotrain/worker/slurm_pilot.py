"""A pilot job of Slurm: it runs the trials of its pool one after another on its node, each under its own supervisor.

```
pools/DIGEST/waiting/NAME        a trial that may be taken: {"batch", "index", "timeout_s", "most"}
             pilots/ID/script    what `sbatch` gets
                       tried     there when `sbatch` was called
                       job       the number that Slurm gave it
                       lock      there when it has begun, locked while it lives
                       output-0  what its script printed
                       taken-NAME  the trial that it runs
                       ended     how Slurm says that it ended, written by the login node
```

A trial is taken by renaming its file, which succeeds for one pilot alone. A pilot that ends by itself leaves no trial
and removes its folder; one that is ended leaves the file of its trial, and the login node settles what becomes of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time

from jupyter_autotrain.core import files, system, wire
from jupyter_autotrain.worker import fields, processes, termination, trial_lock
from jupyter_autotrain.worker.event_waiter import EventWaiter
from jupyter_autotrain.worker.slurm_task import SlurmTask

WAITING = "waiting"
PILOTS = "pilots"
JOB = "job"
TAKEN = "taken-"
_FIRST_PAUSE_S = 0.02
_MOST_PAUSE_S = 0.5
_MARGIN_S = 30.0  # for the beginning and the end of a trial, beside its `timeout`
_SHARE_WITHOUT_TIMEOUT = 0.5  # of a pilot's time that is left when it takes a trial without a `timeout`


def fits(timeout_s: float | None, left_s: float, whole_s: float) -> bool:
    """Whether a trial ends before its pilot; without a `timeout`, whether half of the pilot's time is left."""
    if timeout_s is None:
        return left_s >= _SHARE_WITHOUT_TIMEOUT * whole_s
    return left_s >= timeout_s + _MARGIN_S


class Pilot:
    """What a pilot knows of itself; its folder is the current directory.

    Args:
        environ: The variables that Slurm gave it.
        idle_s: How long it waits for another trial.
        limit_s: Its time limit, where Slurm does not tell when it ends.
    """

    def __init__(self, environ: dict[str, str], idle_s: float, limit_s: float) -> None:
        self.environ = environ
        self.idle_s = idle_s
        self.folder = os.getcwd()
        self.waiting = f"{os.path.dirname(os.path.dirname(self.folder))}/{WAITING}"
        self.begun_s = time.time()
        end = environ.get("SLURM_JOB_END_TIME", "")
        self.end_s = float(end) if end.isdigit() else self.begun_s + limit_s
        self.has_run = False
        self.event_waiter = EventWaiter()

    def run(self) -> None:
        """Take trials until none comes, the time that is left is too short, or Slurm ends it."""
        idle_since_s = time.monotonic()
        pause_s = _FIRST_PAUSE_S
        while not self.event_waiter.got_sigterm:
            names = self._names()
            name = self._take(names)
            if name:
                self._run(name)
                idle_since_s = time.monotonic()
                pause_s = _FIRST_PAUSE_S
            elif names or time.monotonic() - idle_since_s > self.idle_s:
                break  # those that wait need more time than it has
            else:
                self.event_waiter.wait(pause_s)
                pause_s = min(1.5 * pause_s, _MOST_PAUSE_S)

    def _names(self) -> list[str]:
        """Those that wait, the oldest first."""
        with contextlib.suppress(OSError):
            return sorted(name for name in os.listdir(self.waiting) if not name.startswith("."))
        return []

    def _take(self, names: list[str]) -> str:
        """The name of a trial that is this pilot's now; removes from `names` those that others took."""
        for name in list(names):
            try:
                if self._fits(files.read_json(self.waiting, name)):
                    os.rename(f"{self.waiting}/{name}", f"{TAKEN}{name}")
                    return name
            except OSError:
                names.remove(name)
        return ""

    def _fits(self, waiting: object) -> bool:
        """Whether a trial ends before the pilot; its first one is taken in any case."""
        timeout_s = fields.mapping(waiting).get("timeout_s")
        limit_s = float(timeout_s) if isinstance(timeout_s, (int, float)) else None
        return not self.has_run or fits(limit_s, self.end_s - time.time(), self.end_s - self.begun_s)

    def _run(self, name: str) -> None:
        """Supervise a trial in a process of its own, to its end."""
        self.has_run = True
        taken = fields.mapping(files.read_json(".", f"{TAKEN}{name}"))
        task = SlurmTask(str(taken["batch"]), self.environ, fields.integer(taken.get("index"), 0))
        own_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            _supervise(task, own_pid)
        status = self._wait(pid)
        termination.terminate(self._members, 0.0)
        if self.event_waiter.got_sigterm:
            return  # Slurm knows why
        _end(task.directory, status)
        with contextlib.suppress(OSError):
            os.unlink(f"{self.folder}/{TAKEN}{name}")

    def _wait(self, pid: int) -> int:
        """Wait for the supervisor's end; a request of Slurm's is passed on to it, once."""
        is_told = False
        while True:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                return status
            if self.event_waiter.got_sigterm and not is_told:
                is_told = True
                os.kill(pid, signal.SIGTERM)
            self.event_waiter.wait(1.0)

    def _members(self) -> set[int]:
        """What a supervisor has left behind when it was killed."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        return processes.descendants(os.getpid())

    def leave(self) -> None:
        """Remove the pilot's folder, and the pool where it was the last one; not when Slurm ends a trial of it."""
        names = os.listdir(self.folder)
        if any(name.startswith(TAKEN) for name in names):
            return
        for name in names:
            os.unlink(f"{self.folder}/{name}")
        pilots = os.path.dirname(self.folder)
        for folder in (self.folder, pilots, self.waiting, os.path.dirname(pilots)):
            with contextlib.suppress(OSError):  # another one needs it
                os.rmdir(folder)


def _supervise(task: SlurmTask, pilot_pid: int) -> None:
    """Become the supervisor of a trial, and end."""
    system.die_with_parent(pilot_pid)
    code = 1
    try:
        task.supervise()
        code = 0
    except Exception:  # noqa: BLE001 - whatever it is, this process must not go on as a second pilot
        sys.excepthook(*sys.exc_info())
    sys.stderr.flush()
    os._exit(code)


def _end(directory: str, status: int) -> None:
    """Write the end of a trial whose supervisor could not."""
    found: dict[str, object] = {}
    with contextlib.suppress(OSError, ValueError):
        found = dict(fields.mapping(files.read_json(directory, wire.STATUS_FILE)))
    if found.get("ended_s") or trial_lock.is_held(directory):
        return
    how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit code {os.WEXITSTATUS(status)}"
    reason = f"Lost: its supervisor ended ({how}) before the trial did. `%autotrain retry` submits it again."
    nobody = {"supervisor": [0, 0.0, ""], **found}
    last = {**nobody, "state": "LOST", "reason": reason, "ended_s": time.time(), "groups": []}
    wire.write_atomically(f"{directory}/{wire.STATUS_FILE}", json.dumps(last).encode())


def main(folder: str, idle_s: float, limit_s: float) -> None:
    """Be the pilot of a folder to its end."""
    os.umask(0o077)
    os.chdir(folder)
    if trial_lock.acquire() is None:  # kept open: it ends with this process
        sys.exit(0)
    environ = dict(os.environ)
    wire.write_atomically(JOB, environ["SLURM_JOB_ID"].encode(), sync=False)
    system.adopt_orphans()
    pilot = Pilot(environ, idle_s, limit_s)
    pilot.run()
    pilot.leave()

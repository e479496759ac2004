"""The supervisor: one small process per trial that owns its streams, limits, process tree and exit cause.

It outlives the manager, the kernel and the link to it, and needs none of them. It is the only writer of
`status.json`. When it is killed, the kernel kills the worker with it (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time

from jupyter_autotrain.core import wire
from jupyter_autotrain.worker import causes, environment, processes
from jupyter_autotrain.worker.limits import Limits
from jupyter_autotrain.worker.redact import Redactor
from jupyter_autotrain.worker.streams import Streams

GRACE_S = 5.0  # when nobody said how long
_LEFTOVERS_GRACE_S = 1.0  # for processes that outlive the cell
_WATCH_MEMORY_S, _WATCH_S = 0.05, 1.0
_TRY_AGAIN_S, _FULL_DISK_S = 0.5, 3600.0
_REFUSED = 127


class Supervisor:
    """Runs one trial from beginning to end.

    Args:
        trial: `TrialSpec` as JSON.
        environ: The environment to pass on, secrets included.
    """

    def __init__(self, trial: dict[str, object], environ: dict[str, str]) -> None:
        self.trial, self.environ = trial, environ
        secrets = [environ[name] for name in causes.strings(trial.get("secrets")) if environ.get(name)]
        self.redactor = Redactor(secrets)
        self.streams = Streams(secrets)
        self.limits: Limits | None = None
        self.worker = 0
        self.exit: int | None = None  # as waitpid gives it
        self.peak_bytes = 0
        self.cause: causes.Cause | None = None
        self.receipt: processes.Receipt | None = None
        self.status: dict[str, object] = {
            "wire": wire.VERSION, "state": "PREPARING", "reason": "", "exit_code": None, "signal": None,
            "supervisor": processes.identity(os.getpid()), "worker": None, "started_s": time.time(),
            "ended_s": None, "peak_memory_bytes": None, "limits": "", "groups": [], "traceback": "", "cell_line": "",
            "kind": "",
        }  # fmt: skip

    def write(self, *, patience_s: float = 0.0, **changes: object) -> None:
        """Change the status file. With patience, durably: a full disk is waited out, since the end must be told.

        Raises:
            OSError: When it cannot be written.
        """
        self.status.update(changes)
        data, deadline = json.dumps(self.status).encode(), time.monotonic() + patience_s
        while True:
            try:
                return wire.write_atomically(wire.STATUS_FILE, data, sync=patience_s > 0)
            except FileNotFoundError:
                raise  # a deleted trial directory does not come back
            except OSError:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_TRY_AGAIN_S)

    def run(self) -> None:
        """Start the worker, watch it, clean up, say what became of it."""
        self.limits = Limits(
            causes.mapping(self.trial.get("resources")),
            causes.mapping(self.trial.get("options")),
            causes.integer(self.trial.get("number"), 1),
        )
        self.write(limits=self.limits.text(), groups=self.limits.groups.paths())
        if not self._cancelled():
            self._start()
            with contextlib.suppress(OSError):  # a full disk now may be empty enough at the end
                self.write(state="RUNNING", worker=processes.identity(self.worker))
            self._watch()
            self._clean_up()
        self._conclude()

    def _start(self) -> None:
        parent = os.getpid()
        self.worker = os.fork()
        if self.worker == 0:
            try:
                self._become_worker(parent)
            finally:
                os._exit(_REFUSED)
        self.streams.parent_side()

    def _become_worker(self, parent: int) -> None:
        assert self.limits is not None
        processes.die_with_parent(parent)
        os.setsid()
        self.limits.apply()
        self.streams.child_side()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        python = str(self.trial["python"])
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "start_trial.py")
        try:
            env = environment.complete(self.trial, self.environ)
            os.execve(python, [python, script, os.getcwd()], env)  # noqa: S606 - it is to become the user's interpreter
        except OSError as error:
            causes.refuse(f"The interpreter {python} cannot be started: {error.strerror}.")

    def _watch(self) -> None:
        """Wait for the worker's end, or end it."""
        limit = self.trial.get("timeout_s")
        deadline = time.monotonic() + limit if isinstance(limit, int | float) else None
        assert self.limits is not None
        pause_s = _WATCH_MEMORY_S if self.limits.polls_memory else _WATCH_S
        while self._reap() and self.exit is None:
            if self._must_end(deadline):
                self._end(causes.grace(self.cause, GRACE_S))
            else:
                left_s = pause_s if deadline is None else min(pause_s, max(0.0, deadline - time.monotonic()))
                self.streams.wait(left_s)

    def _must_end(self, deadline: float | None) -> bool:
        """True on a request, at a limit, and when the trial directory is gone; `cause` then says which."""
        assert self.limits is not None
        if self._cancelled():
            return True
        if deadline is not None and time.monotonic() >= deadline:
            self.cause = causes.timed_out(self.trial)
        elif not os.path.exists(wire.STATUS_FILE):
            self.cause = causes.abandoned()
        elif self.limits.polls_memory and self.limits.exceeded(self._members()):
            self.cause = causes.out_of_memory(self.trial, self.limits.peak_bytes)
        return self.cause is not None

    def _cancelled(self) -> bool:
        request = causes.cancel_request(self.streams.asked_to_end)
        self.cause = request or self.cause
        return request is not None

    def _reap(self) -> bool:
        """Take leave of ended children, adopted ones too; False when there is none at all any more."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self.peak_bytes = max(self.peak_bytes, usage.ru_maxrss * 1024)
            if pid == self.worker:
                self.exit = status

    def _members(self) -> set[int]:
        assert self.limits is not None
        self.streams.pump()
        if not self._reap() and not self.limits.groups.members():
            return set()
        return processes.descendants(os.getpid()) | processes.living(self.limits.groups.members())

    def _end(self, grace_s: float) -> None:
        assert self.limits is not None
        self.receipt = processes.end(self._members, grace_s, seal=self.limits.groups.seal)
        self._reap()

    def _clean_up(self) -> None:
        """Leave no process behind, also none that the cell has cut loose."""
        assert self.limits is not None
        if self.receipt is None and self._members():
            self._end(_LEFTOVERS_GRACE_S)
        self.streams.finish()

    def _conclude(self) -> None:
        assert self.limits is not None
        groups = self.limits.groups
        cause = self.cause or causes.of_exit(self.trial, self.exit or 0, groups.oom_kills(), groups.peak_bytes())
        peak = max(self.peak_bytes, self.limits.peak_bytes, cause.peak_bytes)
        groups.remove()
        final: dict[str, object] = {
            "state": cause.state, "reason": self.redactor.text(cause.reason),
            "traceback": self.redactor.text(cause.traceback), "cell_line": self.redactor.text(cause.cell_line),
            "ended_s": time.time(), "peak_memory_bytes": peak or None, "groups": [], "kind": cause.kind,
        }  # fmt: skip
        if self.receipt is not None:
            final["receipt"] = self.receipt.to_json()
        if self.exit is not None:
            code = os.waitstatus_to_exitcode(self.exit)
            final |= {"exit_code": code if code >= 0 else None, "signal": -code if code < 0 else None}
        self.write(patience_s=_FULL_DISK_S, **final)

    def give_up(self, error: Exception) -> None:
        """Leave nothing running and say so, when the supervisor itself is at its wits' end."""
        if self.limits is not None:
            self._end(0.0)
            self.limits.groups.remove()
        self.write(
            patience_s=_FULL_DISK_S,
            state="FAILED",
            reason=self.redactor.text(f"The supervisor failed: {error!r}."),
            ended_s=time.time(),
        )


def claim() -> bool:
    """Take the trial for this process and its children; False when it was taken before, by a living one or a dead."""
    fd = os.open(wire.CLAIM_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return not os.path.exists(wire.STATUS_FILE)


def main(directory: str) -> None:
    """Become the supervisor of a trial, in the background; returns (exits) once `status.json` tells of it."""
    os.umask(0o077)
    os.chdir(directory)
    if not claim():
        os._exit(0)
    ready, told = os.pipe()
    if os.fork():
        os.close(told)
        os._exit(0 if os.read(ready, 1) else 1)  # nothing comes when the child is dead
    os.close(ready)
    os.setsid()
    _supervise(told)


def _supervise(told: int) -> None:
    with open(wire.TRIAL_FILE, encoding="utf-8") as file:
        trial = json.load(file)
    _listen_to_null()
    processes.adopt_orphans()
    supervisor = Supervisor(trial, dict(os.environ))
    supervisor.write()
    os.write(told, b"1")
    os.close(told)
    try:
        supervisor.run()
    except Exception as error:  # noqa: BLE001 - whatever it is, the trial must have an end and a reason
        supervisor.give_up(error)


def _listen_to_null() -> None:
    """Let go of the starter's streams, so that nobody waits for them to close."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)

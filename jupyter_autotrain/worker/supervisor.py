"""The supervisor: one small process per trial that owns its streams, limits, process tree and exit cause.

It outlives the manager, the kernel and the link to it, and needs none of them. It is the only writer of
`status.json`. When it is killed, the kernel kills the worker with it (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time

from jupyter_autotrain.core import disk, wire
from jupyter_autotrain.core.process_identity import ProcessIdentity
from jupyter_autotrain.worker import causes, claims, ending, environment, outcome, processes
from jupyter_autotrain.worker.limits import Limits
from jupyter_autotrain.worker.redact import Redactor
from jupyter_autotrain.worker.status import PATIENCE_S, StatusFile
from jupyter_autotrain.worker.streams import Streams
from jupyter_autotrain.worker.tidying import tidy

GRACE_S = 5.0  # when nobody said how long
_LEFTOVERS_GRACE_S = 1.0  # for processes that outlive the cell
_WATCH_MEMORY_S = 0.05
_WATCH_S = 1.0
_REFUSED = 127


class Supervisor:
    """Runs one trial from beginning to end.

    Args:
        trial: `TrialSpec` as JSON.
        environ: The environment to pass on, secrets included.
        claim: The claim, open and locked; see `claims`.
    """

    def __init__(self, trial: dict[str, object], environ: dict[str, str], claim: int) -> None:
        self.trial = trial
        self.environ = environ
        self.claim = claim
        secrets = [environ[name] for name in causes.strings(trial.get("secrets")) if environ.get(name)]
        self.redactor = Redactor(secrets)
        self.streams = Streams(secrets)
        self.limits: Limits | None = None
        self.worker = 0
        self.outcome = outcome.make()
        self.me = ProcessIdentity.of(os.getpid())
        self.exit: int | None = None  # as waitpid gives it
        self.peak_bytes = 0
        self.cause: causes.Cause | None = None
        self.receipt: ending.Receipt | None = None
        self.status = StatusFile({
            "wire": wire.VERSION, "state": "PREPARING", "reason": "", "exit_code": None, "signal": None,
            "supervisor": self.me.to_json(), "worker": None, "started_s": time.time(),
            "ended_s": None, "peak_memory_bytes": None, "limits": "", "groups": [], "traceback": "", "cell_line": "",
            "kind": "",
        })  # fmt: skip

    def run(self) -> None:
        """Start the worker, watch it, clean up, say what became of it."""
        self.limits = Limits(
            causes.mapping(self.trial.get("resources")),
            causes.mapping(self.trial.get("options")),
            causes.integer(self.trial.get("number"), 1),
        )
        folders = self.limits.groups.paths()
        claims.sign(self.claim, self.me, folders)
        with contextlib.suppress(OSError):  # a full disk now may be empty enough at the end
            self.status.write(limits=self.limits.text(), groups=folders)
        if not self._cancelled():
            self._start()
            with contextlib.suppress(OSError):  # as above
                self.status.write(state="RUNNING", worker=ProcessIdentity.of(self.worker).to_json())
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
            argv = [python, script, os.getcwd(), str(self.outcome)]
            os.execve(python, argv, env)  # noqa: S606 - it is to become the user's interpreter
        except OSError as error:
            outcome.tell(self.outcome, causes.refusal(python, error))

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
        elif self.status.is_abandoned():
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
        found = processes.descendants(os.getpid()) | processes.living(self.limits.groups.members())
        return found - processes.below_managers(os.getpid(), self.worker)

    def _end(self, grace_s: float) -> None:
        assert self.limits is not None
        self.receipt = ending.end(self._members, grace_s, seal=self.limits.groups.seal)
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
        for folder in (wire.OUTPUTS, wire.WORK):
            self.redactor.rename_below(folder)
        end = causes.End(self.exit or 0, *outcome.read(self.outcome), groups.oom_kills(), groups.peak_bytes() or 0)
        cause = self.cause or causes.of_exit(self.trial, end)
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
        self._close(**final)

    def _close(self, **final: object) -> None:
        """Say the last word, and let go of everything else."""
        tidy(".", str(self.trial.get("bundle")))
        self.status.write(patience_s=PATIENCE_S, **final)
        with contextlib.suppress(OSError):
            os.unlink(wire.CLAIM_FILE)

    def give_up(self, error: Exception) -> None:
        """Leave nothing running and say so, when the supervisor itself has failed."""
        if self.limits is not None:
            self._end(0.0)
            self.limits.groups.remove()
        full = f"The trial could not be run: {disk.full(os.getcwd())}."
        reason = full if disk.is_full(error) else self.redactor.text(f"The supervisor failed: {error!r}.")
        self._close(state="FAILED", reason=reason, ended_s=time.time(), groups=[])


def main(directory: str) -> None:
    """Become the supervisor of a trial, in the background; returns (exits) once `status.json` tells of it."""
    os.umask(0o077)
    os.chdir(directory)
    claim = claims.take()
    if claim is None:
        os._exit(0)
    ready, told = os.pipe()
    if os.fork():
        os.close(told)
        os._exit(0 if os.read(ready, 1) else 1)  # nothing comes when the child is dead
    os.close(ready)
    os.setsid()
    _supervise(told, claim)


def _supervise(told: int, claim: int) -> None:
    with open(wire.TRIAL_FILE, encoding="utf-8") as file:
        trial = json.load(file)
    processes.adopt_orphans()
    supervisor = Supervisor(trial, dict(os.environ), claim)
    claims.sign(claim, supervisor.me, [])
    supervisor.status.write()
    _listen_to_null()  # only now: until here the starter hears of every fault
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

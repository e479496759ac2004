"""The supervisor: one small process per trial that owns its workers, streams, limits, process tree and exit cause.

It outlives the manager, the kernel and the link to it, and needs none of them. It is the only writer of
`status.json`. When it is killed, the kernel kills the workers with it (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import contextlib
import os
import time

from jupyter_autotrain.core import disk, wire
from jupyter_autotrain.core.process_identity import ProcessIdentity
from jupyter_autotrain.worker import (
    environment,
    exit_causes,
    fields,
    ports,
    processes,
    termination,
    termination_causes,
    trial_lock,
)
from jupyter_autotrain.worker.cleanup import remove_temporary_files
from jupyter_autotrain.worker.event_waiter import EventWaiter
from jupyter_autotrain.worker.redact import Redactor
from jupyter_autotrain.worker.resource_limits import ResourceLimits
from jupyter_autotrain.worker.status import FINAL_TIMEOUT_S, StatusFile
from jupyter_autotrain.worker.streams import OutputStreams
from jupyter_autotrain.worker.worker_process import Worker

GRACE_S = 5.0  # where no request says how long
_LEFTOVERS_GRACE_S = 1.0  # for processes that outlive the cell
_WATCH_MEMORY_S = 0.05
_WATCH_S = 1.0


class Supervisor:
    """Runs one trial from beginning to end, on this node.

    Args:
        trial: `TrialSpec` as JSON.
        environ: The environment to pass on, secrets included.
        lock: The lock file of the trial, open and locked; see `trial_lock`.
    """

    def __init__(self, trial: dict[str, object], environ: dict[str, str], lock: int) -> None:
        self.trial = trial
        self.environ = environ
        self.lock = lock
        secrets = [environ[name] for name in fields.strings(trial.get("secrets")) if environ.get(name)]
        self.redactor = Redactor(secrets)
        self.event_waiter = EventWaiter()
        count = max(1, fields.integer(trial.get("workers"), 1))
        self.workers = [Worker(rank, rank, OutputStreams(rank, secrets, self.event_waiter)) for rank in range(count)]
        self.limits: ResourceLimits | None = None
        self.me = ProcessIdentity.of(os.getpid())
        self.peak_bytes = 0
        self.cause: termination_causes.Cause | None = None
        self.termination: termination.Termination | None = None
        self.status = StatusFile({
            "wire": wire.VERSION, "state": "PREPARING", "reason": "", "exit_code": None, "signal": None,
            "supervisor": self.me.to_json(), "worker": None, "started_s": time.time(),
            "ended_s": None, "peak_memory_bytes": None, "limits": "", "groups": [], "traceback": "", "cell_line": "",
            "kind": "",
        })  # fmt: skip

    @property
    def is_distributed(self) -> bool:
        """True when the trial has more than one worker."""
        return len(self.workers) > 1

    def run(self) -> None:
        """Start the workers, watch them, clean up, write the final status."""
        self.limits = ResourceLimits(
            fields.mapping(self.trial.get("resources")),
            fields.mapping(self.trial.get("options")),
            fields.integer(self.trial.get("number"), 1),
        )
        folders = self.limits.cgroups.paths()
        trial_lock.write_owner(self.lock, self.me, folders)
        with contextlib.suppress(OSError):  # a full disk now may be empty enough at the end
            self.status.write({"limits": self.limits.text(), "groups": folders})
        if not self._is_cancelled():
            self._start(self.limits)
            with contextlib.suppress(OSError):  # as above
                self.status.write({"state": "RUNNING", **self._processes()})
            self._watch()
            self._clean_up()
        self._conclude()

    def _start(self, limits: ResourceLimits) -> None:
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "start_worker.py")
        argv = [str(self.trial["python"]), script, os.getcwd()]
        env = environment.complete(self.trial, self.environ)
        port = ports.find_free() if self.is_distributed else 0
        for worker in self.workers:
            own = environment.of_rank(worker.rank, len(self.workers), port) if self.is_distributed else {}
            worker.start(argv, env | own, limits)

    def _processes(self) -> dict[str, object]:
        """What the status file says of the workers; a list of them only where there are several."""
        listed = {"workers": [worker.to_json() for worker in self.workers]} if self.is_distributed else {}
        return {"worker": self.workers[0].process, **listed}

    def _watch(self) -> None:
        """Wait for the workers' end, or end them."""
        limit = self.trial.get("timeout_s")
        deadline = time.monotonic() + limit if isinstance(limit, (int, float)) else None
        assert self.limits is not None
        pause_s = _WATCH_MEMORY_S if self.limits.polls_memory else _WATCH_S
        while self._reap() and any(worker.is_running for worker in self.workers):
            if self._must_end(deadline):
                self._end(termination_causes.grace(self.cause, GRACE_S))
                continue
            left_s = pause_s if deadline is None else min(pause_s, max(0.0, deadline - time.monotonic()))
            if self.event_waiter.wait(left_s):
                self._pump()

    def _must_end(self, deadline: float | None) -> bool:
        """True on a request, at a limit, when the trial directory is gone, and when one of several workers failed.

        `cause` then says which, but for the last: that is found out when all workers have ended.
        """
        assert self.limits is not None
        if self._is_cancelled():
            return True
        if deadline is not None and time.monotonic() >= deadline:
            self.cause = termination_causes.timed_out(self.trial)
        elif self.status.is_abandoned():
            self.cause = termination_causes.abandoned()
        elif self.limits.polls_memory and self.limits.exceeded(self._members()):
            self.cause = termination_causes.out_of_memory(self.trial, self.limits.peak_bytes)
        return self.cause is not None or self._has_failed_worker()

    def _has_failed_worker(self) -> bool:
        ended = [worker for worker in self.workers if worker.exit_status is not None]
        ends = [end for worker in ended if (end := worker.end()) is not None]
        return any(exit_causes.has_failed(self.trial, end) for end in ends)

    def _is_cancelled(self) -> bool:
        request = termination_causes.cancel_request(self.event_waiter.got_sigterm)
        self.cause = request or self.cause
        return request is not None

    def _reap(self) -> bool:
        """Reap ended children, adopted ones too; False when there is none at all any more."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self.peak_bytes = max(self.peak_bytes, usage.ru_maxrss * 1024)
            for worker in self.workers:
                if worker.pid == pid and worker.is_running:
                    worker.reaped(status)

    def _pump(self) -> None:
        for worker in self.workers:
            worker.streams.pump()

    def _members(self) -> set[int]:
        """The trial's processes. Its output is passed on meanwhile: one that waits for room in a pipe cannot end."""
        assert self.limits is not None
        self._pump()
        if not self._reap() and not self.limits.cgroups.members():
            return set()
        found = processes.descendants(os.getpid()) | processes.living(self.limits.cgroups.members())
        return found - processes.below_managers(os.getpid(), {worker.pid for worker in self.workers})

    def _end(self, grace_s: float) -> None:
        assert self.limits is not None
        for worker in self.workers:
            worker.was_terminated = worker.was_terminated or worker.is_running
        self.termination = termination.terminate(
            self._members, grace_s, before_kill=self.limits.cgroups.forbid_new_processes
        )
        self._reap()

    def _clean_up(self) -> None:
        """Leave no process behind, also none that the cell has detached."""
        assert self.limits is not None
        if self.termination is None and self._members():
            self._end(_LEFTOVERS_GRACE_S)
        for worker in self.workers:
            worker.streams.finish()

    def _conclude(self) -> None:
        assert self.limits is not None
        cgroups = self.limits.cgroups
        for folder in (wire.OUTPUTS, wire.WORK):
            self.redactor.rename_below(folder)
        cause = self.cause or self._exit_cause()
        worker = next((worker for worker in self.workers if worker.rank == cause.rank), self.workers[0])
        peak = max(self.peak_bytes, self.limits.peak_bytes, cause.peak_bytes)
        cgroups.remove()
        final: dict[str, object] = {
            "state": cause.state, "reason": self.redactor.text(cause.reason),
            "traceback": self.redactor.text(cause.traceback), "cell_line": self.redactor.text(cause.cell_line),
            "ended_s": time.time(), "peak_memory_bytes": peak or None, "groups": [], "kind": cause.kind,
            **self._processes(), **worker.exit_json(),
        }  # fmt: skip
        if self.termination is not None:
            final["receipt"] = self.termination.to_json()
        self._close(final)

    def _exit_cause(self) -> termination_causes.Cause:
        assert self.limits is not None
        cgroups = self.limits.cgroups
        ends = [end for worker in self.workers if (end := worker.end()) is not None]
        return exit_causes.of_workers(
            self.trial, ends, self.is_distributed, cgroups.oom_kills(), cgroups.peak_bytes() or 0
        )

    def _close(self, final: dict[str, object]) -> None:
        """Write the final status, and remove everything that only a running trial needs."""
        remove_temporary_files(".", str(self.trial.get("bundle")))
        self.status.write(final, timeout_s=FINAL_TIMEOUT_S)
        with contextlib.suppress(OSError):
            os.unlink(wire.LOCK_FILE)

    def give_up(self, error: Exception) -> None:
        """Leave nothing running and write why, when the supervisor itself has failed."""
        if self.limits is not None:
            self._end(0.0)
            self.limits.cgroups.remove()
        full = f"The trial could not be run: {disk.full(os.getcwd())}."
        reason = full if disk.is_full(error) else self.redactor.text(f"The supervisor failed: {error!r}.")
        self._close({"state": "FAILED", "reason": reason, "ended_s": time.time(), "groups": []})

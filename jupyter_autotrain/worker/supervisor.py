"""The supervisor: one small process per trial that owns its workers, streams, limits, process tree and exit cause.

It outlives the manager, the kernel and the link to it, and needs none of them. It is the only writer of
`status.json`. When it is killed, the kernel kills the workers with it where it can (`core.system.die_with_parent`).
"""

from __future__ import annotations

import contextlib
import os
import time

from jupyter_autotrain.core import disk, system, wire
from jupyter_autotrain.core.process_identity import ProcessIdentity
from jupyter_autotrain.worker import (
    environment,
    fields,
    processes,
    termination,
    termination_causes,
    trial_lock,
)
from jupyter_autotrain.worker.cgroups import oom_kills_around
from jupyter_autotrain.worker.cleanup import remove_temporary_files
from jupyter_autotrain.worker.environments import choice as environments
from jupyter_autotrain.worker.event_waiter import EventWaiter
from jupyter_autotrain.worker.lease import Lease
from jupyter_autotrain.worker.ranks import Ranks
from jupyter_autotrain.worker.redact import Redactor
from jupyter_autotrain.worker.resource_limits import ResourceLimits
from jupyter_autotrain.worker.status import FINAL_TIMEOUT_S, StatusFile
from jupyter_autotrain.worker.usage import UsageFile

GRACE_S = 5.0  # where no request says how long
_LEFTOVERS_GRACE_S = 1.0  # for processes that outlive the cell
_WATCH_S = 1.0
_WATCH_REPORTS_S = 0.2  # where several ranks may report together
_OTHER_NODES_S = 600.0  # where nobody carries what they report, so that a full disk there keeps no node for long
_WATCH_MAKING_S = 0.05  # while the trial's environment is made: a fraction of what the shortest making takes


class Supervisor:
    """Runs one trial from beginning to end, on this node.

    Args:
        trial: `TrialSpec` as JSON.
        environ: The environment to pass on, secrets included.
        lock: The lock file of the trial, open and locked; see `trial_lock`.
        limits: What it may use.
    """

    def __init__(self, trial: dict[str, object], environ: dict[str, str], lock: int, limits: ResourceLimits) -> None:
        self.trial = trial
        self.environ = environ
        self.lock = lock
        secrets = [environ[name] for name in fields.strings(trial.get("secrets")) if environ.get(name)]
        self.redactor = Redactor(secrets)
        self.event_waiter = EventWaiter()
        self.ranks = Ranks(trial, secrets, self.event_waiter)
        self.limits = limits
        self.me = ProcessIdentity.of(os.getpid())
        self.peak_bytes = 0
        self._killed_before = oom_kills_around()
        self.deadline: float | None = None
        self.has_begun = False
        self.cause: termination_causes.Cause | None = None
        self.lease = Lease(trial)
        self.termination: termination.Termination | None = None
        self.status = StatusFile({
            "wire": wire.VERSION, "state": "PREPARING", "reason": "", "exit_code": None, "signal": None,
            "supervisor": self.me.to_json(), "worker": None, "started_s": time.time(),
            "ended_s": None, "peak_memory_bytes": None, "limits": "", "groups": [], "traceback": "", "cell_line": "",
            "kind": "",
        })  # fmt: skip

    def run(self) -> None:
        """Start the workers, watch them, clean up, write the final status."""
        self.limits.settle()
        folders = self.limits.cgroups.paths()
        trial_lock.write_owner(self.lock, self.me, folders)
        with contextlib.suppress(OSError):  # a full disk now may be empty enough at the end
            self.status.write({"limits": self.limits.text(), "groups": folders})
        if not self._is_cancelled():
            self._start()
            if environments.is_made(self.trial):
                self._write_status({"reason": environments.MAKING, **self.ranks.to_json()})
            else:
                self._mark_begun()
            self._watch()
            self._clean_up()
        self._conclude()

    def _start(self) -> None:
        env = environment.complete(self.trial, self.environ)
        self.usage = UsageFile(self.trial, env)
        self.ranks.start(env, self.limits.apply)

    def _mark_begun(self) -> None:
        """The cell begins, and so does the time it may take."""
        limit = self.trial.get("timeout_s")
        self.deadline = time.monotonic() + limit if isinstance(limit, (int, float)) else None
        self.has_begun = True
        self._write_status({"state": "RUNNING", "reason": "", **self.ranks.to_json()})

    def _watch(self) -> None:
        """Wait for the workers' end, or end them."""
        pause_s = _WATCH_REPORTS_S if self.ranks.is_distributed else _WATCH_S
        pause_s = min(pause_s, system.MEMORY_POLL_S) if self.limits.polls_memory else pause_s
        self._reap()
        while self.ranks.is_running:
            if not self.has_begun and self.ranks.have_begun:
                self._mark_begun()
            if self._must_end(self.deadline):
                self._end(termination_causes.grace(self.cause, GRACE_S))
                continue
            left_s = pause_s if self.has_begun else min(pause_s, _WATCH_MAKING_S)
            left_s = left_s if self.deadline is None else min(left_s, max(0.0, self.deadline - time.monotonic()))
            if self.event_waiter.wait(left_s) and self.ranks.pump():
                self._write_status(self.ranks.to_json())
            if not self._reap():
                self.ranks.mark_gone()
            with contextlib.suppress(Exception):  # a curve is worth no trial
                self.usage.update(self.ranks.child_pids)
            if changes := self.ranks.advance():
                self._write_status(changes)

    def _write_status(self, changes: dict[str, object]) -> None:
        with contextlib.suppress(OSError):  # a full disk now may be empty enough at the end
            self.status.write(changes)

    def _must_end(self, deadline: float | None) -> bool:
        """True on a request, at a limit, when the trial directory is gone, and when one of several workers failed.

        `cause` then says which, but for the last: that is found out when all workers have ended.
        """
        if self.ranks.has_failed and not self.event_waiter.got_sigterm:
            return True  # before a request to end because another node has failed later
        if self._is_cancelled():
            return True
        if deadline is not None and time.monotonic() >= deadline:
            self.cause = termination_causes.timed_out(self.trial)
        elif self.status.is_abandoned():
            self.cause = termination_causes.abandoned()
        elif self.lease.lease_s is not None and self.lease.is_over():
            self.cause = termination_causes.lease_over(self.lease.lease_s)
        elif self.limits.polls_memory and self.limits.exceeded(self._tree()):
            self.cause = termination_causes.out_of_memory(self.trial, self.limits.peak_bytes)
        return self.cause is not None or self.ranks.has_failed

    def _is_cancelled(self) -> bool:
        request = termination_causes.cancel_request(self.event_waiter.sigterm_s)
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
            self.peak_bytes = max(self.peak_bytes, system.peak_resident_bytes(usage.ru_maxrss))
            self.ranks.reaped(pid, status)

    def _members(self) -> set[int]:
        """The trial's processes. Its output is passed on meanwhile: one that waits for room in a pipe cannot end."""
        self.ranks.pump()
        if system.ADOPTS_ORPHANS:
            return self._tree()
        return self._tree() | processes.marked(wire.TRIAL_VARIABLE, str(self.trial["directory"]))

    def _tree(self) -> set[int]:
        """The trial's processes, less those that left the tree of an ended process where orphans are not adopted."""
        inside = self.limits.cgroups.members()
        if not self._reap() and not inside and system.ADOPTS_ORPHANS:
            return set()
        found = processes.descendants(os.getpid()) | processes.living(inside)
        if not system.ADOPTS_ORPHANS:
            found |= processes.in_sessions(self.ranks.child_pids)
        return found - processes.below_managers(os.getpid(), self.ranks.child_pids)

    def _end(self, grace_s: float) -> None:
        self.ranks.mark_terminated()
        self.termination = termination.terminate(
            self._members, grace_s, before_kill=self.limits.cgroups.forbid_new_processes
        )
        if not self._reap():
            self.ranks.mark_gone()

    def _clean_up(self) -> None:
        """Leave no process behind, also none that the cell has detached."""
        if self.termination is None and self._members():
            self._end(_LEFTOVERS_GRACE_S)
        environments.remove_containers(self.trial, self.environ)
        self._await_other_nodes()
        self.ranks.finish()

    def _await_other_nodes(self) -> None:
        """What their ranks report together is a part of this node's stream: it is brought here, now or much later."""
        limit_s = float("inf") if self.trial.get("contact") else _OTHER_NODES_S
        give_up_s = time.monotonic() + limit_s
        self.ranks.reduce()
        while self.ranks.awaits_other_nodes and time.monotonic() < give_up_s and not self._must_end(None):
            time.sleep(_WATCH_REPORTS_S)
            self.ranks.reduce()

    def _conclude(self) -> None:
        cgroups = self.limits.cgroups
        for folder in (wire.OUTPUTS, wire.WORK):
            self.redactor.rename_below(folder)
        cause = self.cause or self.ranks.cause(self._oom_kills(), cgroups.peak_bytes() or 0)
        peak = max(self.peak_bytes, self.limits.peak_bytes, cause.peak_bytes)
        cgroups.remove()
        final: dict[str, object] = {
            "state": cause.state, "reason": self.redactor.text(cause.reason),
            "traceback": self.redactor.text(cause.traceback), "cell_line": self.redactor.text(cause.cell_line),
            "ended_s": time.time(), "peak_memory_bytes": peak or None, "groups": [], "kind": cause.kind,
            **self.ranks.to_json(), **self.ranks.exit_json(cause.rank),
        }  # fmt: skip
        if cause.ended_s:
            final["failed_s"] = time.time() - (time.monotonic() - cause.ended_s)
        if self.termination is not None:
            final["receipt"] = self.termination.to_json()
        self._close(final)

    def _oom_kills(self) -> int:
        """How often the kernel killed a process of the trial for its memory: by its own limit, or by that around it."""
        around = oom_kills_around() - self._killed_before if self.ranks.was_killed else 0
        return self.limits.cgroups.oom_kills() or around

    def _close(self, final: dict[str, object]) -> None:
        """Write the final status, and remove everything that only a running trial needs."""
        remove_temporary_files(".", str(self.trial.get("bundle")))
        self.status.write(final, timeout_s=FINAL_TIMEOUT_S)
        with contextlib.suppress(OSError):
            os.unlink(wire.LOCK_FILE)

    def give_up(self, error: Exception) -> None:
        """Leave nothing running and write why, when the supervisor itself has failed."""
        self._end(0.0)
        self.limits.cgroups.remove()
        full = f"The trial could not be run: {disk.full(os.getcwd())}."
        reason = full if disk.is_full(error) else self.redactor.text(f"The supervisor failed: {error!r}.")
        self._close({"state": "FAILED", "reason": reason, "ended_s": time.time(), "groups": []})

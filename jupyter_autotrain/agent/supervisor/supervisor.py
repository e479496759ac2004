"""The supervisor: one small process per trial that owns its workers, streams, limits, process tree and exit cause.

It outlives the manager, the kernel and the link to it, and needs none of them. It is the only writer of
`status.json`. When it is killed, the kernel kills the workers with it where it can (`agent.system.die_with_parent`).
"""

from __future__ import annotations

import contextlib
import os
import time

from jupyter_autotrain.agent import fields, nodes, system, wire
from jupyter_autotrain.agent.environments import choice as environments
from jupyter_autotrain.agent.supervisor import termination
from jupyter_autotrain.agent.supervisor.ranks import Ranks
from jupyter_autotrain.agent.supervisor.resource_limits import Lease, ResourceLimits
from jupyter_autotrain.agent.supervisor.stack_taking import StackTaker
from jupyter_autotrain.agent.supervisor.status import FINAL_TIMEOUT_S, StatusFile
from jupyter_autotrain.agent.supervisor.streams import EventWaiter
from jupyter_autotrain.agent.supervisor.termination import remove_temporary_files
from jupyter_autotrain.agent.supervisor.usage import UsageFile
from jupyter_autotrain.agent.supervisor.worker_process import Become, execute
from jupyter_autotrain.agent.system import disk, processes
from jupyter_autotrain.agent.system.cgroups import oom_kills_around
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.agent.trial import environment, termination_causes, trial_file, trial_lock
from jupyter_autotrain.agent.trial.redact import Redactor
from jupyter_autotrain.agent.trial.trial_file import TrialFile

GRACE_S = 5.0  # where no request says how long
_LEFTOVERS_GRACE_S = 1.0  # for processes that outlive the cell
_WATCH_S = 1.0
_WATCH_REPORTS_S = 0.2  # where several ranks may report together
_WATCH_MEETING_S = 0.02
_MEETS_S = 20.0  # how long other nodes may take to come before the status says which do not
_WATCH_MAKING_S = 0.05  # while the trial's environment is made: a fraction of what the shortest making takes


TYPE_CHECKING = False  # `typing` would cost every trial its import
if TYPE_CHECKING:
    from jupyter_autotrain.agent.nodes.part import NodePart


class Supervisor:
    """The run of one trial from beginning to end, on this node.

    Args:
        trial: `TrialSpec` as JSON.
        environ: The environment to pass on, secrets included; the token of the trial's nodes is taken out.
        lock: The lock file of the trial, open and locked; see `trial_lock`.
        limits: What it may use.
    """

    def __init__(self, trial: TrialFile, environ: dict[str, str], lock: int, limits: ResourceLimits) -> None:
        self.trial = trial
        self.environ = environ
        self.lock = lock
        secrets = [environ[name] for name in fields.strings(trial.get("secrets")) if environ.get(name)]
        self.redactor = Redactor(secrets)
        self.event_waiter = EventWaiter()
        self.part = nodes.part_of(trial, environ.pop(wire.TOKEN_VARIABLE, ""), self.event_waiter)
        self.ranks = Ranks(trial, secrets, self.event_waiter, self.part)
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
            "wire": wire.VERSION, "state": "PREPARING", "reason": "" if self.part is None else nodes.WAITS,
            "exit_code": None, "signal": None,
            "supervisor": self.me.to_json(), "worker": None, "started_s": time.time(),
            "ended_s": None, "peak_memory_bytes": None, "limits": "", "groups": [], "traceback": "", "cell_line": "",
            "kind": "",
        })  # fmt: skip

    def run(self, become: Become | None = None) -> None:
        """Start the workers, watch them, clean up, write the final status.

        Args:
            become: Makes a new process a worker; None: by starting its interpreter.
        """
        trial_lock.write_owner(self.lock, self.me, self.limits.cgroups.paths())
        has_started = not self._is_cancelled() and self._meet()
        if has_started:
            self._start(become or execute)
        self.limits.settle()  # only now: the kernel may take as long as the worker to come up
        self.status.add({"limits": self.limits.text(), "groups": self.limits.cgroups.paths()})
        if has_started:
            if environments.is_made(self.trial):
                self._write_status({"reason": environments.MAKING, **self.ranks.to_json()})
            else:
                self._mark_begun()
            self._watch()
            self._clean_up()
        self._conclude()

    def _meet(self) -> bool:
        """Meet the other nodes of a trial on several; return False where the trial ends before they have come."""
        if self.part is None:
            return True
        self.limits.settle()
        tell_s = time.monotonic() + _MEETS_S
        self.part.advance()
        while not self.part.endpoints:
            if self.part.fault:
                self.cause = termination_causes.Cause("FAILED", self.part.fault, kind="start")
            if self._must_end(None):
                return False
            if time.monotonic() > tell_s:
                tell_s = float("inf")
                self._write_status({"reason": f"{nodes.WAITS}: {self.part.missing}"})
            self.event_waiter.wait(_WATCH_MEETING_S)
            self.part.advance()
        self.trial["layout"]["endpoints"] = self.part.endpoints
        trial_file.write(self.trial)
        self.ranks.settle(self.part.endpoints)
        return True

    def _start(self, become: Become) -> None:
        env = environment.complete(self.trial, self.environ)
        self.usage = UsageFile(self.trial, env)
        self.stacks = StackTaker(self.trial, self.ranks, env)
        self.ranks.start(env, self.limits.apply, become)

    def _mark_begun(self) -> None:
        """Note that the cell begins, and so does the time it may take."""
        limit = self.trial.get("timeout_s")
        self.deadline = time.monotonic() + limit if isinstance(limit, (int, float)) else None
        self.has_begun = True
        self._write_status({"state": "RUNNING", "reason": "", **self.ranks.to_json()})

    def _watch(self) -> None:
        """Wait for the workers' end, or end them."""
        pause_s = _WATCH_REPORTS_S if self.ranks.is_distributed else _WATCH_S
        pause_s = min(pause_s, system.MEMORY_POLL_S) if self.limits.polls_memory else pause_s
        self._reap()
        looked_s = time.monotonic()
        while self.ranks.is_running:
            now_s = time.monotonic()
            if self.deadline is not None and self.stacks.is_any_stopped():
                self.deadline += now_s - looked_s  # a person looks into it
            looked_s = now_s
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
            self.stacks.advance()
            self._advance()

    def _advance(self) -> None:
        """Do all that is due from time to time."""
        self.ranks.advance()
        if self.part is not None:
            self.part.advance()

    def _write_status(self, changes: dict[str, object]) -> None:
        with contextlib.suppress(OSError):  # a full disk now may be empty enough at the end
            self.status.write(changes)

    def _must_end(self, deadline: float | None) -> bool:
        """Tell whether the trial must end.

        It must on a request, at a limit, when the trial directory is gone, and when one of several workers failed.
        `cause` then says which, but for the last: that is found out when all workers have ended.
        """
        is_cancelled = self._is_cancelled()
        if self._has_failed_first():
            self.cause = None
            return True
        if is_cancelled:
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

    def _has_failed_first(self) -> bool:
        """Tell whether a worker has failed, also where another node has told since that it has ended the trial."""
        if self.termination is not None or self.event_waiter.got_sigterm or not self.ranks.has_failed:
            return False
        return self.cause is None or self.cause.reason.startswith(termination_causes.ENDED_BECAUSE)

    def _is_cancelled(self) -> bool:
        request = termination_causes.cancel_request(self.event_waiter.sigterm_s)
        if request is None and self.part is not None and self.part.end_reason:
            request = termination_causes.ended_elsewhere(self.part.end_reason)
        self.cause = request or self.cause
        return request is not None

    def _reap(self) -> bool:
        """Reap ended children, adopted ones too; return False when there is none at all any more."""
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
        """Return the trial's processes.

        Its output is passed on meanwhile: a process that waits for room in a pipe cannot end.
        """
        self.ranks.pump()
        if system.ADOPTS_ORPHANS:
            return self._tree()
        return self._tree() | processes.marked(wire.TRIAL_VARIABLE, str(self.trial["directory"]))

    def _tree(self) -> set[int]:
        """Return the trial's processes, as far as they are found by their tree, groups and sessions.

        Where orphans are not adopted, those that left the tree of an ended process are missing.
        """
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
        if self.part is not None:
            self._await_other_nodes(self.part)
        self.ranks.finish()

    def _await_other_nodes(self, part: NodePart) -> None:
        """Wait on node 0 for the end of the others, whose links it holds and whose joint reports it writes."""
        part.end_ranks()
        while part.awaits_others and not self._must_end(None):
            self.event_waiter.wait(_WATCH_REPORTS_S)
            self._advance()

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
        if self.part is not None:
            self.part.finish(cause.state, str(final["reason"]))
        self._close(final)

    def _oom_kills(self) -> int:
        """Count the trial's processes that the kernel killed for memory: by its own limit, or by that around it."""
        around = oom_kills_around() - self._killed_before if self.ranks.was_killed else 0
        return self.limits.cgroups.oom_kills() or around

    def _close(self, final: dict[str, object]) -> None:
        """Write the final status, and remove everything that only a running trial needs."""
        remove_temporary_files(".", str(self.trial.get("bundle")))
        self.status.write(final, timeout_s=FINAL_TIMEOUT_S)
        with contextlib.suppress(OSError):
            os.unlink(wire.LOCK_FILE)

    def give_up(self, error: Exception) -> None:
        """Leave nothing running and write the reason, when the supervisor itself has failed."""
        self._end(0.0)
        self.limits.cgroups.remove()
        full = f"The trial could not be run: {disk.full(os.getcwd())}."
        reason = full if disk.is_full(error) else self.redactor.text(f"The supervisor failed: {error!r}.")
        if self.part is not None:
            self.part.finish("FAILED", reason)
        self._close({"state": "FAILED", "reason": reason, "ended_s": time.time(), "groups": []})

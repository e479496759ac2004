"""The workers (ranks) of a trial on one node; the supervisor itself starts them, or a launcher's program."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence

from jupyter_autotrain.agent import launchers, system
from jupyter_autotrain.agent.environments import choice as environments
from jupyter_autotrain.agent.program import program
from jupyter_autotrain.agent.supervisor import exit_causes
from jupyter_autotrain.agent.supervisor.exit_causes import WorkerEnd
from jupyter_autotrain.agent.supervisor.streams import EventWaiter, OutputStreams
from jupyter_autotrain.agent.supervisor.worker_process import Become, Worker
from jupyter_autotrain.agent.system import ports
from jupyter_autotrain.agent.trial import rank_layout
from jupyter_autotrain.agent.trial.termination_causes import Cause

TYPE_CHECKING = False  # `typing` would cost every trial its import
if TYPE_CHECKING:
    from jupyter_autotrain.agent.nodes.part import NodePart
    from jupyter_autotrain.agent.supervisor.launch import Launch
    from jupyter_autotrain.agent.supervisor.reduction import RankReduction
    from jupyter_autotrain.agent.supervisor.worker_process import LaunchedWorker


class Ranks:
    """All workers of a trial on this node.

    Args:
        trial: `TrialSpec` as JSON.
        secrets: Values that must not reach the logs.
        event_waiter: What the supervisor waits on.
        part: The part of this node in a trial on several; None on one.
    """

    def __init__(
        self,
        trial: Mapping[str, object],
        secrets: Sequence[str],
        event_waiter: EventWaiter,
        part: NodePart | None = None,
    ) -> None:
        self._trial = trial
        self._part = part
        self._layout = rank_layout.of_trial(trial)
        self._launcher = launchers.launcher_of(trial, self._layout)
        self._launch: Launch | None = None
        self._own: list[Worker] = []
        self._launched: list[LaunchedWorker] = []
        self._reduction = self._make_reduction() if self._layout.world_size > 1 else None
        ranks = [(self._layout.rank(local), local) for local in range(self._layout.workers_per_node)]
        if self._launcher.starts_ranks:
            from jupyter_autotrain.agent.supervisor.worker_process import LaunchedWorker  # noqa: PLC0415 - only launchers pay

            self._launch = self._make_launch()
            self._launched = [LaunchedWorker(rank, local, event_waiter) for rank, local in ranks]
        else:
            self._own = [Worker(rank, local, OutputStreams(rank, secrets, event_waiter)) for rank, local in ranks]

    def _make_launch(self) -> Launch:
        if self._trial.get("launcher") == "mpi" and self._part is not None:
            from jupyter_autotrain.agent.supervisor import launch  # noqa: PLC0415 - only MPI over several nodes pays

            return launch.make(self._trial, self._layout, self._part)
        from jupyter_autotrain.agent.supervisor.launch import Launch  # noqa: PLC0415 - only trials with a launcher pay

        return Launch(self._launcher)

    def _make_reduction(self) -> RankReduction | None:
        from jupyter_autotrain.agent.supervisor.reduction import RankReduction  # noqa: PLC0415 - only several ranks pay

        layout = self._layout
        is_elastic = self._launcher.is_elastic
        if is_elastic and layout.node_rank:
            return None  # it may be lost, and the trial goes on: nobody waits for it
        tell = self._part.report if self._part is not None and layout.node_rank else None
        made = RankReduction(layout, time.time, is_elastic=is_elastic, tell=tell)
        if self._part is not None:
            self._part.on_partials = made.take
        return made

    def settle(self, endpoints: Sequence[Sequence[object]]) -> None:
        """Take the endpoints of all nodes, which have met."""
        self._layout.settle(endpoints)

    def advance(self) -> None:
        """Do all that is due from time to time."""
        self.reduce()
        if self._launch is not None:
            self._launch.advance()

    @property
    def workers(self) -> Sequence[Worker | LaunchedWorker]:
        """All workers, by rank."""
        return self._launched if self._launch is not None else self._own

    @property
    def is_distributed(self) -> bool:
        """True when the trial has more than one worker on all its nodes, or a launcher's program."""
        return self._layout.world_size > 1 or self._launcher.starts_ranks or self._trial.get("launcher", "env") != "env"

    def start(self, env: Mapping[str, str], apply_limits: Callable[[], None], become: Become) -> None:
        """Start all workers, each under the trial's limits."""
        env = {**self._network(), **env}
        if self._launch is not None:
            self._launch.start(env, apply_limits)
            return
        argv = environments.command(self._trial, [str(self._trial["python"]), *program("worker"), os.getcwd()])
        for worker in self._own:
            own = self._launcher.variables(worker.local_rank) if self.is_distributed else {}
            worker.start(argv, {**env, **own}, apply_limits, become)

    def _network(self) -> dict[str, str]:
        """Return the variable that tells Gloo its interface.

        Gloo takes the address of the hostname, which on many machines is a loopback address.
        """
        interface = ports.interface_of(self._layout.address) if self._layout.nodes > 1 else ""
        return {"GLOO_SOCKET_IFNAME": interface} if interface else {}

    @property
    def is_running(self) -> bool:
        """True until all have ended."""
        if self._launch is not None:
            return self._launch.is_running(self._launched)
        return any(worker.is_running for worker in self._own)

    @property
    def have_begun(self) -> bool:
        """True when the interpreter of one has come up; with a launcher, which does not tell that, always."""
        return self._launch is not None or any(worker.has_begun for worker in self._own)

    @property
    def child_pids(self) -> set[int]:
        """The pids of the workers, and of the launcher's program, that are children of the supervisor."""
        own = {worker.pid for worker in self._own}
        return own | {self._launch.pid} if self._launch is not None else own

    def reaped(self, pid: int, status: int) -> None:
        """Keep the exit status of a child of the supervisor."""
        if self._launch is not None and self._launch.pid == pid:
            self._launch.reaped(status)
        for worker in self._own:
            if worker.pid == pid and worker.is_running:
                worker.reaped(status)

    def reduce(self, *, is_last: bool = False) -> None:
        """Reduce the values that the ranks report together."""
        if self._reduction is not None:
            with contextlib.suppress(OSError):  # a full disk: what is lost is lost, as with any report
                self._reduction.update(is_last=is_last)

    def pump(self) -> bool:
        """Pass on the output of the workers; return True when the state of one is new."""
        changed = False
        for worker in self.workers:
            changed = worker.pump() or changed
        return changed

    def finish(self) -> None:
        """Take all that is left, once all are ended."""
        for worker in self.workers:
            worker.finish()
        self.reduce(is_last=True)
        if self._launch is not None:
            self._launch.finish()

    def mark_terminated(self) -> None:
        """Remember that the supervisor ends the workers that still run."""
        for worker in self.workers:
            worker.was_terminated = worker.was_terminated or worker.is_running

    def mark_gone(self) -> None:
        """Remember that no process is left: `mpiexec` may kill the process that would tell of a rank's end."""
        if self._launch is not None and system.ADOPTS_ORPHANS:
            self._launch.mark_gone()

    @property
    def has_failed(self) -> bool:
        """True when one has failed and the others shall end; an elastic launcher decides that itself."""
        if self._launcher.is_elastic:
            return False
        return any(exit_causes.has_failed(self._trial, end) for end in self._ends())

    @property
    def was_killed(self) -> bool:
        """True when one was ended by SIGKILL, and not from here."""
        return any(end.code == -signal.SIGKILL for end in self._ends())

    def _ends(self) -> list[WorkerEnd]:
        ended = [worker for worker in self.workers if worker.exit_status is not None]
        return [end for worker in ended if (end := worker.end()) is not None]

    def cause(self, oom_kills: int, peak_bytes: int) -> Cause:
        """Return the cause of the trial's end, after all have ended; see `exit_causes.of_workers`."""
        ends = self._ends()
        failed = any(exit_causes.has_failed(self._trial, end) for end in ends)
        cause = None if self._launch is None or failed else self._launch.cause(ends)
        return cause or exit_causes.of_workers(self._trial, ends, self.is_distributed, oom_kills, peak_bytes)

    def exit_json(self, rank: int) -> dict[str, object]:
        """Return the exit code and signal of a rank, or of the first one where that is not on this node."""
        named = [worker for worker in self.workers if worker.rank == rank]
        return (named or list(self.workers))[0].exit_json()

    def to_json(self) -> dict[str, object]:
        """Return the fields of the status file about them; a list of them only where there are several."""
        listed = {"workers": [worker.to_json() for worker in self.workers]} if self.is_distributed else {}
        return {"worker": self.workers[0].process, **listed}

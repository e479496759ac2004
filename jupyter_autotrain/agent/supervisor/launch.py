"""The program that starts the ranks of a node (`torchrun`, `mpiexec`), as the supervisor sees it.

Over several nodes `mpiexec` runs on node 0, and each other node runs what it asks for; see `launchers.mpi_nodes`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from jupyter_autotrain.agent import system, wire
from jupyter_autotrain.agent.environments import choice as environments
from jupyter_autotrain.agent.launchers import mpi_nodes
from jupyter_autotrain.agent.launchers.launchers import Launcher, LaunchError
from jupyter_autotrain.agent.launchers.mpi import MpiLauncher
from jupyter_autotrain.agent.nodes.part import NodePart
from jupyter_autotrain.agent.program import program
from jupyter_autotrain.agent.supervisor import exit_causes, streams
from jupyter_autotrain.agent.supervisor.exit_causes import WorkerEnd
from jupyter_autotrain.agent.supervisor.worker_process import LaunchedWorker
from jupyter_autotrain.agent.trial.rank_layout import RankLayout
from jupyter_autotrain.agent.trial.termination_causes import Cause

_LINGER_S = 10.0  # after all ranks have ended
# After a rank of an elastic trial has failed; earlier its launcher gives up itself. It has to notice that a node is
# lost, waits for nodes to join (torchrun: at most 600 s), and starts ranks again.
_RESTART_S = 660.0
_CANNOT_START = 127
_LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class Launch:
    """One launcher's program. Its own output goes into the file `launcher`.

    Args:
        launcher: Whose it is.
    """

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self.pid = 0
        self.exit_status: int | None = None
        self._fault = ""
        self._is_gone = False
        self._all_ended_s = 0.0
        self._begun_s = 0.0

    def start(self, env: Mapping[str, str], apply_limits: Callable[[], None]) -> None:
        """Start the program under the trial's limits."""
        self._begun_s = time.time()
        rank_command = [sys.executable, *system.INTERPRETER_FLAGS, *program("rank"), os.getcwd()]
        self._guarded(lambda: self._prepare(rank_command, env, apply_limits))

    def _prepare(self, rank_command: Sequence[str], env: Mapping[str, str], apply_limits: Callable[[], None]) -> None:
        self._launcher.prepare(rank_command)
        self._begin(rank_command, env, apply_limits)

    def _guarded(self, begin: Callable[[], None]) -> None:
        """Begin the program; where it cannot be used here, that is how it ends."""
        try:
            begin()
        except LaunchError as error:
            self._fault = str(error)
            self.exit_status = _CANNOT_START << 8

    def _begin(self, rank_command: Sequence[str], env: Mapping[str, str], apply_limits: Callable[[], None]) -> None:
        self._spawn(self._launcher.command(rank_command), env, apply_limits)

    def _spawn(self, argv: Sequence[str], env: Mapping[str, str], apply_limits: Callable[[], None]) -> None:
        supervisor = os.getpid()
        own = {"HOME": os.getcwd(), **env, **self._launcher.additions()}
        self.pid = os.fork()
        if self.pid == 0:
            try:
                system.die_with_parent(supervisor)
                os.setsid()
                apply_limits()
                _redirect()
                streams.reset_signals()
                os.execve(argv[0], list(argv), own)  # noqa: S606 - the launcher's program
            finally:
                os._exit(_CANNOT_START)

    def advance(self) -> None:
        """Do all that is due from time to time."""

    def finish(self) -> None:
        """Remove the files that the launcher has made, and those that its ranks have left on this machine."""
        self._launcher.remove_leftovers(self._begun_s)

    def reaped(self, exit_status: int) -> None:
        """Keep the exit status of the program."""
        self.exit_status = exit_status

    def mark_gone(self) -> None:
        """Remember that nothing of the program lives, if it has begun."""
        self._is_gone = self.pid != 0

    def is_running(self, workers: Sequence[LaunchedWorker]) -> bool:
        """Tell whether the program runs.

        It does not when it has ended, or goes on for long although all of its ranks have ended and it starts no others.
        """
        if self.exit_status is not None or self._is_gone:
            return False
        if any(worker.exit_status is None for worker in workers):
            self._all_ended_s = 0.0
            return True
        self._all_ended_s = self._all_ended_s or time.monotonic()
        may_restart = self._launcher.is_elastic and any(worker.exit_status != 0 for worker in workers)
        return time.monotonic() - self._all_ended_s < (_RESTART_S if may_restart else _LINGER_S)

    def cause(self, ends: Sequence[WorkerEnd]) -> Cause | None:
        """Return the cause of the trial's end where no rank can tell it.

        The program has then failed, or ended before the ranks did.
        """
        if self._fault:
            return Cause("FAILED", self._fault, kind="start")
        code = os.waitstatus_to_exitcode(self.exit_status or 0)
        if ends and (code == 0 or len(ends) == self._launcher.layout.workers_per_node):
            return None  # what the ranks say counts
        name = str(self._launcher.trial.get("launcher"))
        words = self._words(name)
        shown = f"it said: {words}" if words else "it said nothing"
        how = f"ended with exit code {code}" if code >= 0 else f"was killed by signal {-code}"
        return Cause("FAILED", f"The launcher {name} {how}; {shown}.{_hint(name, words)}", kind="start")

    def _words(self, name: str) -> str:
        """Return the program's words on the cause; the making of an environment prints into the same log, before it."""
        if environments.is_made(self._launcher.trial):
            return exit_causes.last_line(wire.LAUNCHER_LOG)
        return (exit_causes.first_paragraph if name == "mpi" else exit_causes.first_exception)(wire.LAUNCHER_LOG)


def _hint(name: str, words: str) -> str:
    if name == "torchrun" and "No module named" in words:
        return " PyTorch was expected where trials run. Install it there, or use `launcher: env`."
    if name == "mpi" and not words:  # mpiexec may kill a rank that aborts before it has said so
        return " A rank has called MPI_Abort, most likely: the logs of the ranks show which."
    return ""


def _redirect() -> None:
    """Give the program no input, and send its output into its log."""
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    log = os.open(wire.LAUNCHER_LOG, _LOG_FLAGS, 0o600)
    os.dup2(null, 0)
    for fd in (1, 2):
        os.dup2(log, fd)
    with contextlib.suppress(OSError):
        os.close(null)


class MpiFirstLaunch(Launch):
    """The launch on node 0: `mpiexec` itself; its commands for other nodes go to their supervisors."""

    def __init__(self, launcher: MpiLauncher, part: NodePart) -> None:
        super().__init__(launcher)
        self._mpi = launcher
        self._part = part
        self._told: dict[int, str] = {}

    def advance(self) -> None:
        """Pass on the commands that are new."""
        wanted = mpi_nodes.requests(self._launcher.layout)
        if wanted != self._told:
            prefix = self._mpi.prefix()
            new = {node: mpi_nodes.without_prefix(wanted[node], prefix) for node in wanted if node not in self._told}
            self._part.launch(new)
            self._told = wanted


class MpiOtherLaunch(Launch):
    """The launch on another node: the daemon that `mpiexec` wants to be run there, once it is known."""

    def __init__(self, launcher: MpiLauncher, part: NodePart) -> None:
        super().__init__(launcher)
        self._mpi = launcher
        self._part = part

    def _begin(self, rank_command: Sequence[str], env: Mapping[str, str], apply_limits: Callable[[], None]) -> None:
        del rank_command  # the folder has it
        self._env = env
        self._apply_limits = apply_limits

    def advance(self) -> None:
        """Run the command that node 0 has asked for."""
        command = self._part.launch_command
        if command and not self.pid and self.exit_status is None:
            self._guarded(partial(self._start_daemon, command))

    def _start_daemon(self, command: str) -> None:
        here = mpi_nodes.with_prefix(command, self._mpi.prefix())
        daemon = environments.launcher_command(self._launcher.trial, ["/bin/sh", "-c", here])
        self._spawn(daemon, self._env, self._apply_limits)

    def is_running(self, workers: Sequence[LaunchedWorker]) -> bool:
        """Tell whether ranks still run, and for a while whether the daemon does.

        The daemon may go into the background, or fail.
        """
        if self.exit_status is None or self._is_gone:
            return super().is_running(workers)
        if os.waitstatus_to_exitcode(self.exit_status) != 0:
            return False
        return any(worker.exit_status is None for worker in workers)


def make(trial: Mapping[str, object], layout: RankLayout, part: NodePart) -> Launch:
    """Return the launch for this node."""
    launcher = MpiLauncher(trial, layout)
    return MpiOtherLaunch(launcher, part) if part.node else MpiFirstLaunch(launcher, part)

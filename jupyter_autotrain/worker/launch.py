"""The program that starts the ranks of a node (`torchrun`, `mpiexec`), as the supervisor sees it."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from jupyter_autotrain.core import system, wire
from jupyter_autotrain.worker import event_waiter, exit_causes
from jupyter_autotrain.worker.environments import choice as environments
from jupyter_autotrain.worker.exit_causes import WorkerEnd
from jupyter_autotrain.worker.launched_worker import LaunchedWorker
from jupyter_autotrain.worker.launchers import Launcher, LaunchError
from jupyter_autotrain.worker.termination_causes import Cause

_LINGER_S = 10.0  # after all ranks have ended
# After a rank of an elastic trial has failed; earlier its launcher gives up itself. It has to notice that a node is
# lost, waits for nodes to join (torchrun: at most 600 s), and starts ranks again.
_RESTART_S = 660.0
_CANNOT_START = 127
_LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class Launch:
    """One launcher's program. What it prints itself goes into the file `launcher`.

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
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "start_rank.py")
        rank_command = [sys.executable, *system.INTERPRETER_FLAGS, script, os.getcwd()]
        try:
            self._launcher.prepare(rank_command)
            self._begin(rank_command, env, apply_limits)
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
                event_waiter.reset_signals()
                os.execve(argv[0], list(argv), own)  # noqa: S606 - the launcher's program
            finally:
                os._exit(_CANNOT_START)

    def advance(self, workers: Sequence[LaunchedWorker]) -> dict[str, object]:  # noqa: ARG002 - for other launchers
        """Do what is due; gives what the status file has to say of it."""
        return {}

    def finish(self) -> None:
        """Remove what it has made, and what its ranks have left on this machine."""
        self._launcher.remove_leftovers(self._begun_s)

    def reaped(self, exit_status: int) -> None:
        """Keep how it ended."""
        self.exit_status = exit_status

    def mark_gone(self) -> None:
        """Remember that nothing of it lives, if it has begun."""
        self._is_gone = self.pid != 0

    def is_running(self, workers: Sequence[LaunchedWorker]) -> bool:
        """False when it has ended, or goes on for long although all of its ranks have ended and it starts no others."""
        if self.exit_status is not None or self._is_gone:
            return False
        if any(worker.exit_status is None for worker in workers):
            self._all_ended_s = 0.0
            return True
        self._all_ended_s = self._all_ended_s or time.monotonic()
        may_restart = self._launcher.is_elastic and any(worker.exit_status != 0 for worker in workers)
        return time.monotonic() - self._all_ended_s < (_RESTART_S if may_restart else _LINGER_S)

    def cause(self, ends: Sequence[WorkerEnd]) -> Cause | None:
        """Why the trial ended, where no rank can tell: the program failed, or ended before the ranks did."""
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
        """Return what the program said of the cause; what makes an environment prints into the same log, before it."""
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
    """In the program: no input, and its output into its log."""
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    log = os.open(wire.LAUNCHER_LOG, _LOG_FLAGS, 0o600)
    os.dup2(null, 0)
    for fd in (1, 2):
        os.dup2(log, fd)
    with contextlib.suppress(OSError):
        os.close(null)

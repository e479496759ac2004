"""`mpiexec` over several hosts, as the supervisor of one of them sees it; see `mpi_nodes`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from jupyter_autotrain.worker import mpi_nodes
from jupyter_autotrain.worker.environments import choice as environments
from jupyter_autotrain.worker.launch import Launch
from jupyter_autotrain.worker.launched_worker import LaunchedWorker
from jupyter_autotrain.worker.launchers import Launcher
from jupyter_autotrain.worker.rank_layout import RankLayout


class MpiFirstLaunch(Launch):
    """On the first host: `mpiexec` itself; what it wants to run elsewhere goes into the status."""

    def __init__(self, launcher: Launcher) -> None:
        super().__init__(launcher)
        self._told: dict[str, str] = {}

    def advance(self, workers: Sequence[LaunchedWorker]) -> dict[str, object]:
        """What is to be run on which host, when that is new."""
        del workers
        wanted = mpi_nodes.requests(self._launcher.layout)
        if wanted == self._told:
            return {}
        self._told = wanted
        return {"launch": wanted}


class MpiOtherLaunch(MpiFirstLaunch):
    """On another host: the daemon that `mpiexec` wants to be run there, once it is known."""

    def _begin(self, rank_command: Sequence[str], env: Mapping[str, str], apply_limits: Callable[[], None]) -> None:
        del rank_command  # the folder has it
        self._env = env
        self._apply_limits = apply_limits

    def advance(self, workers: Sequence[LaunchedWorker]) -> dict[str, object]:
        """Run what the first host has asked for."""
        del workers
        if self.pid or self.exit_status is not None:
            return {}
        command = mpi_nodes.request(self._launcher.layout)
        if not command:
            return {}
        daemon = environments.launcher_command(self._launcher.trial, ["/bin/sh", "-c", command])
        self._spawn(daemon, self._env, self._apply_limits)
        return {"launched": True}

    def finish(self) -> None:
        """Tell the first host, too."""
        super().finish()
        mpi_nodes.tell_ended(self._launcher.layout)

    def is_running(self, workers: Sequence[LaunchedWorker]) -> bool:
        """Until all ranks have ended, and for a while until the daemon has; it may go into the background, or fail."""
        if self.exit_status is None or self._is_gone:
            return super().is_running(workers)
        if os.waitstatus_to_exitcode(self.exit_status) != 0:
            return False
        return any(worker.exit_status is None for worker in workers)


def make(launcher: Launcher, layout: RankLayout) -> Launch:
    """The one for this host."""
    kind = MpiFirstLaunch if layout.node_rank == 0 else MpiOtherLaunch
    return kind(launcher)

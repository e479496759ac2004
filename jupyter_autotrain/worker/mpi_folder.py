"""The folder of an MPI trial on a machine: temporary files of `mpiexec`, and what starts a rank.

On all hosts of a trial it has the same path, as `mpiexec` starts a rank by the same command everywhere. The path is
short, as sockets lie below it. Without it, what killed daemons leave below `/tmp` is named by process ids alone, and a
later daemon with such an id fails.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence

from jupyter_autotrain.worker import mpi_nodes
from jupyter_autotrain.worker.launchers import LaunchError
from jupyter_autotrain.worker.rank_layout import RankLayout


class MpiFolder:
    """The folder.

    Args:
        trial: `TrialSpec` as JSON.
        layout: The ranks.
    """

    def __init__(self, trial: Mapping[str, object], layout: RankLayout) -> None:
        named = [str(trial.get(name)) for name in ("experiment_id", "number", "attempt")]
        named.append(str(layout.endpoints) if layout.nodes > 1 else os.getcwd())
        key = hashlib.sha256("\n".join(named).encode()).hexdigest()[:24]
        # Hosts without a directory in common may have different users, of whom only one may write to `/run`.
        is_same = layout.nodes == 1 or bool(layout.shared_directory)
        base = "/run" if is_same and os.access("/run", os.W_OK) else "/tmp"  # noqa: S108 - made for its owner alone, or refused
        self.path = f"{base}/jupyter-autotrain-{key}"
        self.agent = f"{self.path}/agent"  # in the place of ssh; Open MPI's daemons look for it on each host
        self._has_hosts = layout.nodes > 1

    @property
    def rank_command(self) -> list[str]:
        """What starts a rank on each host."""
        return ["/bin/sh", f"{self.path}/rank"]

    def make(self, rank_command: Sequence[str]) -> None:
        """Make it, with what starts a rank on this host.

        Raises:
            LaunchError: It is there already, or cannot be made.
        """
        if not self._has_hosts:
            self.remove()  # an earlier run of this trial directory was killed
        try:
            os.mkdir(self.path, 0o700)
            if self._has_hosts:
                mpi_nodes.write_program(f"{self.path}/rank", f"exec {shlex.join(rank_command)}\n")
                mpi_nodes.make_agent(self.agent)
        except OSError as error:
            raise LaunchError(f"{self.path} cannot be made: {error.strerror}. Remove it on this host.") from error

    def remove(self) -> None:
        """Remove it."""
        shutil.rmtree(self.path, ignore_errors=True)

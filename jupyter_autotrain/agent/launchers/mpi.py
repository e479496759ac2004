"""The launcher `mpi`: `mpiexec` starts the ranks; Open MPI, MPICH or Intel MPI, from PyPI or of the system."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from jupyter_autotrain.agent.environments import choice as environments
from jupyter_autotrain.agent.environments.prepared import NotPreparedError
from jupyter_autotrain.agent.launchers import mpi_nodes
from jupyter_autotrain.agent.launchers.launchers import Launcher, LaunchError
from jupyter_autotrain.agent.launchers.mpi_nodes import MpiFolder
from jupyter_autotrain.agent.trial import environment, rank_layout
from jupyter_autotrain.agent.trial.rank_layout import RankLayout

_ASK_S = 30.0
_KINDS = (
    ("(open mpi) 4", "openmpi4"), ("open mpi", "openmpi"), ("prrte", "openmpi"), ("prterun", "openmpi"),
    ("intel", "intel"), ("hydra", "mpich"),
)  # fmt: skip
# What the implementations and Slurm tell a rank: its rank, and its rank on its node.
_RANKS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"), ("PMI_RANK", "MPI_LOCALRANKID"),
    ("PMIX_RANK", "PMIX_LOCAL_RANK"), ("SLURM_PROCID", "SLURM_LOCALID"),
)  # fmt: skip


class NoMpiexecError(LaunchError):
    """The error that there is no mpiexec."""


class MpiLauncher(Launcher):
    """One `mpiexec` for all nodes, on the first of them."""

    starts_ranks = True

    def __init__(self, trial: Mapping[str, object], layout: RankLayout) -> None:
        super().__init__(trial, layout)
        self._folder = MpiFolder(trial, layout)

    def command(self, rank_command: Sequence[str]) -> list[str]:
        """Return the command of `mpiexec`.

        Raises:
            LaunchError: There is none that can be used.
        """
        if environments.is_made(self.trial):  # it may bring an mpiexec
            return environments.mpi_command(self.trial, rank_command)
        env = environment.complete(self.trial, {})
        program = find_mpiexec(_interpreter(self.trial, env), env)
        kind = kind_of(program, env)
        options = _options(kind, self._folder.path)
        if self.layout.nodes > 1:
            options += mpi_nodes.host_options(kind, program, self.layout, self._folder.agent)
            rank_command = self._folder.rank_command
        command = [program, *options, "-n", str(self.layout.world_size), *rank_command]
        return environments.launcher_command(self.trial, command)

    def prefix(self) -> str:
        """Return the folder of the MPI that this node has; "" where an environment may bring it that is made first.

        Raises:
            LaunchError: There is none.
        """
        if environments.is_made(self.trial):
            return ""
        env = environment.complete(self.trial, {})
        return mpi_nodes.prefix_of(find_mpiexec(_interpreter(self.trial, env), env))

    def additions(self) -> dict[str, str]:
        """Return variables that let root run it, bind no rank to cores, and allow more ranks than cores."""
        return {
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "I_MPI_PIN": "0",
        }  # fmt: skip

    def prepare(self, rank_command: Sequence[str]) -> None:
        """Make the folder of the trial."""
        self._folder.make(rank_command)

    def remove_leftovers(self, since_s: float) -> None:
        """Remove the trial's folder, and shared memory that no process uses."""
        self._folder.remove()
        mpi_nodes.remove_unused(since_s)

    def adapt(self, environ: Mapping[str, str]) -> tuple[int, dict[str, str]]:
        """Return the local rank and the variables of a rank, numbered as the implementation numbers it."""
        for rank, local_rank in _RANKS:
            if rank in environ:
                number = int(environ.get(local_rank, int(environ[rank]) % self.layout.workers_per_node))
                return number, self.variables(number) | {"RANK": environ[rank]}
        raise LaunchError("mpiexec gave the worker no rank")


def command_in(trial: Mapping[str, object], python: str, rank_command: Sequence[str]) -> list[str]:
    """Return the command of `mpiexec` in an environment that was made for a trial.

    Args:
        trial: `TrialSpec` as JSON.
        python: The interpreter of the environment.
        rank_command: What starts a rank.

    Raises:
        NotPreparedError: There is none that can be used.
    """
    there = {**trial, "python": python, "python_environment": None}
    try:
        return MpiLauncher(there, rank_layout.of_trial(there)).command(rank_command)
    except NoMpiexecError as error:
        is_match = environments.kind_and_value(trial)[0] == "match"
        advice = "Run `pip install mpich` in the notebook" if is_match else "Add `mpich` to them"
        raise NotPreparedError(
            f"Neither the environment's requirements nor PATH bring an mpiexec. {advice}."
        ) from error
    except LaunchError as error:
        raise NotPreparedError(str(error)) from error


def _interpreter(trial: Mapping[str, object], env: Mapping[str, str]) -> str:
    """Return the interpreter of the workers."""
    kind, value = environments.kind_and_value(trial)
    if kind != "conda":
        return environments.interpreter(trial)
    from jupyter_autotrain.agent.environments import conda  # noqa: PLC0415 - only such trials pay

    try:
        return conda.interpreter(value, env)
    except NotPreparedError as error:
        raise LaunchError(str(error)) from error


def find_mpiexec(python: str, env: Mapping[str, str]) -> str:
    """Return the `mpiexec` to use: that of the variable `MPIEXEC`, the one beside the interpreter, or that of `PATH`.

    Raises:
        NoMpiexecError: There is none.
    """
    beside = os.path.join(os.path.dirname(python), "mpiexec")
    if given := env.get("MPIEXEC", ""):
        return given
    if os.access(beside, os.X_OK):
        return beside
    found = shutil.which("mpiexec", path=env.get("PATH"))
    if found is None:
        raise NoMpiexecError(
            f"There is no mpiexec beside {python} and none on PATH. MPI was expected where trials run. "
            f"Install it there: {python} -m pip install mpi4py mpich"
        )
    return found


def kind_of(program: str, env: Mapping[str, str]) -> str:
    """Return the kind of an `mpiexec`: openmpi4, openmpi, mpich or intel.

    Raises:
        LaunchError: It does not run, or is none of these.
    """
    try:
        asked = subprocess.run(
            [program, "--version"], env=dict(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=_ASK_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise LaunchError(f"{program} cannot be run: {error}. An mpiexec that works was expected.") from error
    told = asked.stdout.decode(errors="replace")
    for word, kind in _KINDS:
        if word in told.lower():
            return kind
    raise LaunchError(
        f"{program} is of no known kind; it says: {' '.join(told.split())[:200]}. Open MPI, MPICH or Intel MPI was "
        "expected. Set `env: {MPIEXEC: /path/to/mpiexec}`."
    )


def _options(kind: str, folder: str) -> list[str]:
    if not kind.startswith("openmpi"):
        return []
    folders = ["--prtemca", "prte_tmpdir_base"] if kind == "openmpi" else ["--mca", "orte_tmpdir_base"]
    return ["--bind-to", "none", "--oversubscribe", *folders, folder]

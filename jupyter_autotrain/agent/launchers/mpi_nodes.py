"""The folder of an MPI trial on a machine, and the way of `mpiexec` from the first host to the others without SSH.

The folder has temporary files of `mpiexec`, and the program that starts a rank. On all hosts of a trial it has the same
path, as `mpiexec` starts a rank by the same command everywhere. The path is short, as sockets lie below it. Without the
folder, the files that killed daemons leave below `/tmp` are named by process ids alone, and a later daemon with such an
id fails.

`mpiexec` is given a program in the place of ssh. It only writes down what is to be run on which host. The supervisor of
the first host tells it to that host's, which runs it.

A rank of MPICH that is killed, or ends without `MPI_Finalize`, leaves its file of shared memory behind; it is removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence

from jupyter_autotrain.agent import files, system, wire
from jupyter_autotrain.agent.launchers.launchers import LaunchError
from jupyter_autotrain.agent.system.process_identity import is_gone
from jupyter_autotrain.agent.trial.rank_layout import RankLayout

_REQUEST = f"{wire.LAUNCH_FILE}-"
_PREFIX = "@MPI@"
_AGENT = """#!/bin/sh
# In the place of ssh: [OPTIONS] HOST COMMAND...
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1
shift
printf '%s' "$*" > {control}/draft-"$host" && mv {control}/draft-"$host" {request}"$host"
# MPICH takes its end for that of the daemon there, as with ssh; it is told when all other hosts have ended.
may_end() {{ [ ! -d {control} ] || [ -e {ended} ]; }}
while ! may_end && [ "$(ps -o ppid= -p $$ | tr -d ' ')" != 1 ]; do sleep 0.1; done
"""
FOLDER = "/dev/shm"  # noqa: S108 - where POSIX shared memory is
_NAMES = ("mpich_shm_", "mpich_vci_")


class MpiFolder:
    """The folder of an MPI trial on this machine.

    Args:
        trial: `TrialSpec` as JSON.
        layout: The ranks.
    """

    def __init__(self, trial: Mapping[str, object], layout: RankLayout) -> None:
        self._trial = trial
        self._layout = layout
        self._has_hosts = layout.nodes > 1

    @property
    def path(self) -> str:
        """Its path, which is known when the nodes of the trial have met."""
        layout = self._layout
        named = [str(self._trial.get(name)) for name in ("experiment_id", "number", "attempt")]
        named.append(str(layout.endpoints) if self._has_hosts else os.getcwd())
        key = hashlib.sha256("\n".join(named).encode()).hexdigest()[:24]
        # Hosts may have different users, of whom only one may write to `/run`.
        is_same = layout.has_one_user or not self._has_hosts
        base = "/run" if is_same and os.access("/run", os.W_OK) else "/tmp"  # noqa: S108 - made for its owner alone, or refused
        return f"{base}/jupyter-autotrain-{key}"

    @property
    def agent(self) -> str:
        """The path of the program in the place of ssh; Open MPI's daemons look for it on each host."""
        return f"{self.path}/agent"

    @property
    def rank_command(self) -> list[str]:
        """The command that starts a rank on each host."""
        return ["/bin/sh", f"{self.path}/rank"]

    def make(self, rank_command: Sequence[str]) -> None:
        """Make the folder, with the program that starts a rank on this host.

        Raises:
            LaunchError: It is there already, or cannot be made.
        """
        if not self._has_hosts:
            self.remove()  # an earlier run of this trial directory was killed
        try:
            os.mkdir(self.path, 0o700)
            if self._has_hosts:
                _write_program(f"{self.path}/rank", f"exec {shlex.join(rank_command)}\n")
                _make_agent(self.agent)
        except OSError as error:
            raise LaunchError(f"{self.path} cannot be made: {error.strerror}. Remove it on this host.") from error

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)


def _make_agent(path: str) -> None:
    """Write the program that `mpiexec` on this host calls in the place of ssh.

    Raises:
        OSError: It cannot be written.
    """
    parts = {"control": wire.CONTROL, "request": _REQUEST, "ended": wire.LAUNCH_ENDED_FILE}
    paths = {name: shlex.quote(f"{os.getcwd()}/{part}") for name, part in parts.items()}
    _write_program(path, _AGENT.format(**paths))


def _write_program(path: str, text: str) -> None:
    """Write a file of this user alone, which may be run.

    Raises:
        OSError: It cannot be written, or is a link.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o700)
    with os.fdopen(fd, "w") as file:
        file.write(text)


def requests(layout: RankLayout) -> dict[int, str]:
    """Return the commands that `mpiexec` asks to be run, by the number of the host."""
    found = {}
    for number, (address, _) in enumerate(layout.endpoints):
        with contextlib.suppress(OSError), files.open_regular(".", f"{_REQUEST}{address}") as file:
            if command := file.read(1 << 16).decode(errors="replace"):
                found[number] = command
    return found


def prefix_of(program: str) -> str:
    """Return the folder that an `mpiexec` is installed in."""
    return os.path.dirname(os.path.dirname(program))


def without_prefix(command: str, prefix: str) -> str:
    """Return a command of `mpiexec` that names its folder by a mark, since other hosts may have it elsewhere."""
    return command.replace(prefix, _PREFIX) if prefix else command


def with_prefix(command: str, prefix: str) -> str:
    """Return such a command with the folder that this host has."""
    return command.replace(_PREFIX, prefix)


def host_options(kind: str, program: str, layout: RankLayout, agent: str) -> list[str]:
    """Return the arguments of an `mpiexec` that name the hosts, and the program in the place of ssh.

    Ranks begin in `/`: their own folders have other paths on each host, and the program `rank` enters them.
    """
    hosts = ",".join(f"{address}:{layout.workers_per_node}" for address, _ in layout.endpoints)
    prefix = prefix_of(program)
    if kind == "openmpi":  # in a job of Slurm it would start its daemons with srun, beside their supervisors
        own = ["--prtemca", "plm", "ssh", "--prtemca", "ras", "^slurm", "--prtemca", "plm_ssh_agent", agent]
        return [*own, "--prefix", prefix, "--wdir", "/", "--host", hosts]
    if kind == "openmpi4":
        own = ["--mca", "plm", "rsh", "--mca", "ras", "^slurm", "--mca", "plm_rsh_agent", agent]
        return [*own, "--prefix", prefix, "-wdir", "/", "--host", hosts]
    own = ["-localhost", layout.address] if kind == "mpich" else []
    return ["-launcher", "ssh", "-launcher-exec", agent, "-genvnone", "-wdir", "/", *own, "-hosts", hosts]


def remove_unused(since_s: float, folder: str = FOLDER) -> None:
    """Remove this user's files that were made since then and that no process uses: other jobs of MPICH run here, too.

    This never raises: a file that cannot be looked at stays.

    Args:
        since_s: In seconds since the epoch.
        folder: Where the files are.
    """
    with contextlib.suppress(OSError):
        made = {name for name in os.listdir(folder) if name.startswith(_NAMES) and _is_new(f"{folder}/{name}", since_s)}
        for name in made - _in_use(made):
            with contextlib.suppress(FileNotFoundError):  # another trial's end has removed it
                os.unlink(f"{folder}/{name}")


def _is_new(path: str, since_s: float) -> bool:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return False
    return found.st_uid == os.geteuid() and found.st_mtime >= since_s


def _in_use(names: set[str]) -> set[str]:
    """Return the files that a process has mapped or open; where there are none of them, no process is looked at."""
    used: set[str] = set()
    for pid in system.pids() if names else ():
        text = _files_of(pid)
        used.update(name for name in names if name in text)
    return used


def _files_of(pid: int) -> str:
    """Return the names of the files that a process has mapped or open.

    The text is "" for a process that has ended, or that may not be looked at, as no process of a trial is.
    """
    try:
        return "\n".join(system.used_files(pid))
    except OSError as error:
        if is_gone(error) or isinstance(error, PermissionError):
            return ""
        raise

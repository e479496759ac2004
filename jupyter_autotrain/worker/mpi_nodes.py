"""MPI over several hosts: how `mpiexec` on the first one reaches the others without SSH between them.

`mpiexec` is given a program in the place of ssh. It only writes down what is to be run on which host, and that host's
supervisor runs it. Where all hosts have the trial directory, it is read there; elsewhere the supervisor of the first
host shows it in its status, and the manager's backend passes it on.
All hosts run the same command for a rank: a script at the same path, made by each supervisor.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence

from jupyter_autotrain.core import files, wire
from jupyter_autotrain.worker.launchers import LaunchError
from jupyter_autotrain.worker.rank_layout import RankLayout

_REQUEST = f"{wire.LAUNCH_FILE}-"
_AGENT = """#!/bin/sh
# In the place of ssh: [OPTIONS] HOST COMMAND...
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1
shift
printf '%s' "$*" > {control}/draft-"$host" && mv {control}/draft-"$host" {request}"$host"
# MPICH takes its end for that of the daemon there, as with ssh; it is told when the other host, or all, have ended.
may_end() {{ [ ! -d {control} ] || [ -e {ended} ] || [ -e {ended}-"$host" ]; }}
while ! may_end && [ "$(ps -o ppid= -p $$ | tr -d ' ')" != 1 ]; do sleep 0.1; done
"""


class SharedFolder:
    """A folder at the same path on all hosts of a trial.

    Args:
        trial: `TrialSpec` as JSON.
        layout: The ranks.
    """

    def __init__(self, trial: Mapping[str, object], layout: RankLayout) -> None:
        named = [str(trial.get(name)) for name in ("experiment_id", "number", "attempt")]
        named.append(str(layout.endpoints))
        key = hashlib.sha256("\n".join(named).encode()).hexdigest()[:24]
        base = "/run" if os.access("/run", os.W_OK) else "/tmp"  # noqa: S108 - made for its owner alone, or refused
        self.path = f"{base}/jupyter-autotrain-{os.getuid()}-{key}"
        self.agent = f"{os.getcwd()}/{wire.CONTROL}/agent"  # in the place of ssh

    @property
    def rank_command(self) -> list[str]:
        """What starts a rank on each host."""
        return ["/bin/sh", f"{self.path}/rank"]

    def make(self, rank_command: Sequence[str]) -> None:
        """Make it, with what starts a rank on this host.

        Raises:
            LaunchError: It is there already, or cannot be made.
        """
        parts = {"control": wire.CONTROL, "request": _REQUEST, "ended": wire.LAUNCH_ENDED_FILE}
        paths = {name: shlex.quote(f"{os.getcwd()}/{path}") for name, path in parts.items()}
        try:
            os.mkdir(self.path, 0o700)
            _write(f"{self.path}/rank", f"exec {shlex.join(rank_command)}\n")
            _write(self.agent, _AGENT.format(**paths))
        except OSError as error:
            raise LaunchError(f"{self.path} cannot be made: {error.strerror}. Remove it on this host.") from error

    def remove(self) -> None:
        """Remove it."""
        shutil.rmtree(self.path, ignore_errors=True)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o700)
    with os.fdopen(fd, "w") as file:
        file.write(text)


def requests(layout: RankLayout) -> dict[str, str]:
    """What `mpiexec` asks to be run, by the number of the host."""
    found = {}
    for number, (address, _) in enumerate(layout.endpoints):
        command = _read(".", f"{_REQUEST}{address}")
        if command:
            found[str(number)] = command
    return found


def request(layout: RankLayout) -> str:
    """What `mpiexec` wants to be run on this host; "" as long as it has not said so."""
    shared = layout.shared_directory
    if not shared:
        return _read(".", wire.LAUNCH_FILE)
    with contextlib.suppress(OSError):
        os.scandir(f"{shared}/{wire.CONTROL}").close()  # has NFS look again
    return _read(shared, f"{_REQUEST}{layout.address}")


def tell_ended(layout: RankLayout) -> None:
    """Tell the first host that this one has ended its part; where they share no directory, the backend does."""
    if layout.shared_directory:
        with contextlib.suppress(FileNotFoundError):  # the first host has ended before
            _write(f"{layout.shared_directory}/{wire.LAUNCH_ENDED_FILE}-{layout.address}", "")


def _read(folder: str, path: str) -> str:
    with contextlib.suppress(OSError), files.open_regular(folder, path) as file:
        return file.read(1 << 16).decode(errors="replace")
    return ""


def host_options(kind: str, program: str, layout: RankLayout, agent: str) -> list[str]:
    """The arguments of an `mpiexec` that name the hosts, and what is in the place of ssh."""
    hosts = ",".join(f"{address}:{layout.workers_per_node}" for address, _ in layout.endpoints)
    prefix = os.path.dirname(os.path.dirname(program))
    if kind == "openmpi":  # in a job of Slurm it would start its daemons with srun, beside their supervisors
        own = ["--prtemca", "plm", "ssh", "--prtemca", "ras", "^slurm", "--prtemca", "plm_ssh_agent", agent]
        return [*own, "--prefix", prefix, "--host", hosts]
    if kind == "openmpi4":
        own = ["--mca", "plm", "rsh", "--mca", "ras", "^slurm", "--mca", "plm_rsh_agent", agent]
        return [*own, "--prefix", prefix, "--host", hosts]
    own = ["-localhost", layout.address] if kind == "mpich" else []
    return ["-launcher", "ssh", "-launcher-exec", agent, "-genvnone", *own, "-hosts", hosts]

"""MPI over several hosts: how `mpiexec` on the first one reaches the others without SSH between them.

`mpiexec` is given a program in the place of ssh. It only writes down what is to be run on which host, and that host's
supervisor runs it. Where all hosts have the trial directory, it is read there; elsewhere the supervisor of the first
host shows it in its status, and the manager's backend passes it on.
"""

from __future__ import annotations

import contextlib
import os
import shlex

from jupyter_autotrain.core import files, wire
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


def make_agent(path: str) -> None:
    """Write what `mpiexec` on this host calls in the place of ssh.

    Raises:
        OSError: It cannot be written.
    """
    parts = {"control": wire.CONTROL, "request": _REQUEST, "ended": wire.LAUNCH_ENDED_FILE}
    paths = {name: shlex.quote(f"{os.getcwd()}/{part}") for name, part in parts.items()}
    write_program(path, _AGENT.format(**paths))


def write_program(path: str, text: str) -> None:
    """Write a file of this user alone, which may be run.

    Raises:
        OSError: It cannot be written, or is a link.
    """
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
            write_program(f"{layout.shared_directory}/{wire.LAUNCH_ENDED_FILE}-{layout.address}", "")


def _read(folder: str, path: str) -> str:
    with contextlib.suppress(OSError), files.open_regular(folder, path) as file:
        return file.read(1 << 16).decode(errors="replace")
    return ""


def host_options(kind: str, program: str, layout: RankLayout, agent: str) -> list[str]:
    """The arguments of an `mpiexec` that name the hosts, and what is in the place of ssh.

    Ranks begin in `/`: their own folders have other paths on each host, and `start_rank` enters them.
    """
    hosts = ",".join(f"{address}:{layout.workers_per_node}" for address, _ in layout.endpoints)
    prefix = os.path.dirname(os.path.dirname(program))
    if kind == "openmpi":  # in a job of Slurm it would start its daemons with srun, beside their supervisors
        own = ["--prtemca", "plm", "ssh", "--prtemca", "ras", "^slurm", "--prtemca", "plm_ssh_agent", agent]
        return [*own, "--prefix", prefix, "--wdir", "/", "--host", hosts]
    if kind == "openmpi4":
        own = ["--mca", "plm", "rsh", "--mca", "ras", "^slurm", "--mca", "plm_rsh_agent", agent]
        return [*own, "--prefix", prefix, "-wdir", "/", "--host", hosts]
    own = ["-localhost", layout.address] if kind == "mpich" else []
    return ["-launcher", "ssh", "-launcher-exec", agent, "-genvnone", "-wdir", "/", *own, "-hosts", hosts]

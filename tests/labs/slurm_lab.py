"""A real Slurm cluster on this machine: munged, slurmctld and some slurmd, in namespaces of their own.

Its daemons listen on the loopback interface of their own network only. They end with the first process of their
namespace, which ends when its standard input closes: so everything is gone as soon as whoever made the cluster is,
killed or not.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.labs import namespaces, slurm_config
from tests.labs.ssh_lab import LabHost

_PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "unshare", "nsenter", "ip", "ps")
_START_S = 120.0
# With loopback addresses alone Slurm would resolve no name at all (AI_ADDRCONFIG), hence the bridge.
_BEGIN = """
hostname {name}
ip link set lo up
ip link add br0 type bridge
ip addr add 10.78.0.1/24 dev br0
ip link set br0 up
echo ready
exec cat >/dev/null
"""


def missing() -> str:
    """Why there can be no Slurm on this machine; "" when there can be one."""
    if os.geteuid() != 0:
        return "Slurm's daemons in namespaces need root"
    lacking = [name for name in _PROGRAMS if shutil.which(name, path=namespaces.search_path()) is None]
    if lacking:
        return f"a Slurm cluster needs {', '.join(lacking)}: sh .ci/slurm installs them"
    command = ("unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc", "true")
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"namespaces are not allowed here: {tried.stderr.strip()}"


class SlurmLab:
    """One cluster, whose controller, nodes and login node are one host.

    Args:
        folder: An empty folder with a short path, for configuration, logs and sockets.
        count: How many nodes.
        hosts: The hosts of an SSH lab that it runs on: one for all nodes, or one for each, the first with the
            controller; none: a namespace of its own.
        min_job_age_s: How long Slurm remembers a job that has ended.
    """

    def __init__(
        self,
        folder: Path,
        count: int = 2,
        *,
        hosts: Sequence[LabHost] = (),
        min_job_age_s: int = 300,
    ) -> None:
        self.folder = folder
        self.count = count
        self.config = folder / "slurm.conf"
        self._first: subprocess.Popen[str] | None = None
        self._hosts = hosts
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        addresses = [(host.name, host.address) for host in hosts] if len(hosts) > 1 else [(self.name, "127.0.0.1")]
        slurm_config.write(folder, [addresses[number % len(addresses)] for number in range(count)], min_job_age_s)
        if not hosts:
            kinds = ("--net", "--uts", "--mount", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc")
            self._first = namespaces.begin(("unshare", *kinds, "sh", "-c", _BEGIN.format(name=self.name)))
        try:
            self._start_all()
        except BaseException:
            self.close()
            raise

    def _start_all(self) -> None:
        for first in dict.fromkeys(self._first_pid(node) for node in self.nodes):
            mount = ("mount", "--bind", str(self.folder / "hosts"), "/etc/hosts")
            subprocess.run((*_inside(first), *mount), check=True, env=self._environ(), stdin=subprocess.DEVNULL)
        files = [f"--{kind}={self.folder}/munge.{kind.removesuffix('-file')}" for kind in ("pid-file", "seed-file")]
        self._start(
            self.first_pid, "munged", "munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket",
            f"--key-file={self.folder}/munge.key", f"--log-file={self.folder}/munged.log", *files,
        )  # fmt: skip
        _wait_for((self.folder / "munge.socket").exists, "munged")
        self.start_controller()
        for node in self.nodes:
            self.start_node(node)
        _wait_for(lambda: self._states() == {"idle"}, "nodes that are idle")

    @property
    def nodes(self) -> list[str]:
        """The names of its nodes."""
        return [f"n{number}" for number in range(1, self.count + 1)]

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which Slurm's commands find it."""
        return {"SLURM_CONF": str(self.config)}

    @property
    def first_pid(self) -> int:
        """The first process of its host, by its pid on this machine."""
        if self._hosts:
            return self._hosts[0].first_pid
        assert self._first is not None
        outer = self._first.pid
        return int(Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])

    def _first_pid(self, node: str) -> int:
        """Return the first process of the host of a node."""
        return self._hosts[self.nodes.index(node)].first_pid if len(self._hosts) > 1 else self.first_pid

    @property
    def name(self) -> str:
        """The name of its host."""
        return self._hosts[0].name if self._hosts else "slurm"

    def run(self, *argv: str) -> str:
        """Return what a command prints that runs on the cluster's host."""
        return subprocess.run(
            (*_inside(self.first_pid), *argv), check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL,
            env=self._environ(),
        ).stdout  # fmt: skip

    def _environ(self) -> dict[str, str]:
        return {"PATH": namespaces.search_path(), "HOME": str(self.folder), "USER": "root", **self.environment}

    def _start(self, first_pid: int, name: str, *argv: str) -> None:
        """Start a daemon; it ends with the host, or when this process does, whichever is first."""
        command = (*_inside(first_pid), "setpriv", "--pdeathsig", "KILL", *argv)
        self._daemons[name] = subprocess.Popen(
            command, env=self._environ(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True, close_fds=True,
        )  # fmt: skip

    def start_controller(self) -> None:
        """Start slurmctld, with the state that an earlier one has left, and wait until it answers."""
        self._start(self.first_pid, "slurmctld", "slurmctld", "-D", "-f", str(self.config))
        _wait_for(self._answers, "slurmctld")

    def start_node(self, node: str) -> None:
        """Start the daemon of a node."""
        self._start(self._first_pid(node), node, "slurmd", "-D", "-N", node, "-f", str(self.config))

    def kill(self, daemon: str) -> None:
        """Kill `slurmctld`, or the daemon of a node; what it started goes on."""
        found = self._daemons.pop(daemon)
        name = "slurmctld" if daemon == "slurmctld" else f"slurmd -D -N {daemon} "
        for pid in self.pids(name):
            self.run("kill", "-KILL", str(pid))
        found.kill()
        found.wait(timeout=_START_S)

    @contextlib.contextmanager
    def stopped(self, node: str) -> Iterator[None]:
        """Stop the daemon of a node meanwhile: what runs there goes on, and its end is not told to the controller."""
        pids = [str(pid) for pid in self.pids(f"slurmd -D -N {node} ")]
        self.run("kill", "-STOP", *pids)
        try:
            yield
        finally:
            self.run("kill", "-CONT", *pids)

    def pids(self, text: str) -> list[int]:
        """Return the processes on the host whose command line begins with a text, by their pids there."""
        lines = [line.split(maxsplit=1) for line in self.run("ps", "-ewwo", "pid=,args=").splitlines()]
        return [int(pid) for pid, args in lines if args.startswith(text)]

    def commands(self) -> list[str]:
        """Return the command lines of all processes on all hosts."""
        found = []
        for first in dict.fromkeys(self._first_pid(node) for node in self.nodes):
            listing = (*_inside(first), "ps", "-ewwo", "args=")
            found += subprocess.run(listing, check=True, capture_output=True, text=True).stdout.splitlines()
        return found

    def is_gone(self, pid: int) -> bool:
        """Return whether no process of the host has this pid any more; one that is not reaped yet is gone."""
        try:
            return self.run("ps", "-o", "stat=", "-p", str(pid)).startswith("Z")
        except subprocess.CalledProcessError:
            return True

    def _answers(self) -> bool:
        try:
            return "UP" in self.run("scontrol", "ping")
        except subprocess.CalledProcessError:
            return False

    def _states(self) -> set[str]:
        with contextlib.suppress(subprocess.CalledProcessError):
            return set(self.run("sinfo", "--noheader", "--Node", "-o", "%t").split())
        return set()

    def clear(self) -> None:
        """Cancel all jobs, bring all daemons back, and wait until every node is idle."""
        if "slurmctld" not in self._daemons:
            self.start_controller()
        for node in self.nodes:
            if node not in self._daemons:
                self.start_node(node)
        self.run("scancel", "--user=root")
        _wait_for(lambda: not self.run("squeue", "--noheader"), "an empty queue")
        _wait_for(self._is_idle_again, "nodes that are idle")

    def _is_idle_again(self) -> bool:
        if self._states() == {"idle"}:
            return True
        for node in self.nodes:
            with contextlib.suppress(subprocess.CalledProcessError):  # it is up
                self.run("scontrol", "update", f"nodename={node}", "state=resume")
        return False

    @contextlib.contextmanager
    def holding_jobs(self) -> Iterator[None]:
        """Let no job of the usual partition begin meanwhile."""
        self.run("scontrol", "update", "partitionname=normal", "state=down")
        try:
            yield
        finally:
            self.run("scontrol", "update", "partitionname=normal", "state=up")

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Put the calling thread, and all threads and processes that it starts, into the cluster's network."""
        with namespaces.inside_network(self.first_pid):
            yield

    def close(self) -> None:
        """End all daemons and jobs; the folder stays to its owner."""
        for daemon in self._daemons.values():
            daemon.kill()
        if self._first is not None:
            namespaces.end(self._first)
        for daemon in self._daemons.values():
            daemon.wait(timeout=_START_S)


def _inside(first_pid: int) -> tuple[str, ...]:
    return ("nsenter", "--target", str(first_pid), "--all")


def _wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + _START_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"The Slurm cluster did not come up: still waiting for {what}.")
        time.sleep(0.02)

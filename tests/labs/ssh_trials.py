"""Trials on hosts of the SSH lab, for tests of what happens to them."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import psutil

from jupyter_autotrain.agent import wire
from jupyter_autotrain.backends.ssh.backend import SshBackend
from jupyter_autotrain.core.backend import BackendContext, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import NodePlacement, Placement
from jupyter_autotrain.testing.bundles import trial_of, wait_for_end, wait_until
from tests.labs.ssh_lab import LabHost, SshLab

# Reports and prints numbers until the file `control/enough` is put into its directory.
COUNTS = """
import pathlib, time
for step in range(100000):
    report(step=step, count=step)
    print(step, flush=True)
    time.sleep(0.02)
    if pathlib.Path("../control/enough").exists():
        break
"""


class LabBackend(SshBackend):
    """A backend whose hosts are those of a lab."""

    lab: SshLab

    def seen_here(self, path: str, host: str = "h1") -> Path:
        """Return a path of a host, as this machine sees it."""
        return next(one for one in self.lab.hosts if one.name == host).path(path)


class LabBackends:
    """Makes backends for hosts of a lab; `close` closes all of them."""

    def __init__(self, lab: SshLab) -> None:
        self._lab = lab
        self._made: list[LabBackend] = []

    def __call__(self, home: Home, hosts: tuple[str, ...] = ("h1",), **options: object) -> LabBackend:
        """Return a backend for some hosts; options as in a profile."""
        given = {"hosts": list(hosts), "config_file": str(self._lab.config), "python": sys.executable, **options}
        made = LabBackend(Profile("lab", "ssh", given), BackendContext(home))  # type: ignore[arg-type]  # the options are JSON
        made.lab = self._lab
        self._made.append(made)
        return made

    def close(self) -> None:
        """Close all backends."""
        for backend in self._made:
            backend.close()


def start(backend: SshBackend, home: Home, code: str, node: str = "h1", **spec: object) -> JobRef:
    """Submit a trial to a host; the rest as for `trial_of`."""
    placement = Placement((NodePlacement(node),))
    return backend.submit(trial_of(home, code, **spec), placement, {})  # type: ignore[arg-type]  # by name


def status(backend: SshBackend, ref: JobRef) -> JobStatus:
    """Ask for one job."""
    return backend.poll([ref])[0]


def read_on(backend: SshBackend, ref: JobRef, stream: str, so_far: bytes) -> bytes:
    """Return what was read of a stream, and what is new of it."""
    return so_far + backend.read([Cursor(ref, stream, len(so_far))])[0].data


def directory_of(backend: LabBackend, ref: JobRef) -> Path:
    """Return the trial directory on the host, as this machine sees it."""
    root = str(backend.link_to(ref).greeting()["root"])
    return backend.seen_here(f"{root}/jobs/{backend.name_there(ref)}", backend.host_of(ref))


def end(backend: SshBackend, ref: JobRef) -> JobStatus:
    """Wait for a job's end."""
    return wait_for_end(backend, ref)


def end_with_supervisor(backend: LabBackend, ref: JobRef) -> JobStatus:
    """Wait for a job's end, and until its supervisor has let go of what it used."""
    ended = end(backend, ref)
    lock = directory_of(backend, ref) / wire.LOCK_FILE
    wait_until(lambda: not lock.exists(), "the supervisor's end")
    return ended


def agents(host: LabHost) -> list[psutil.Process]:
    """Find all agents on a host."""
    found = []
    for process in psutil.Process(host.first_pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # that of an earlier connection may be ending just now
            if "exec(sys.stdin.buffer" in " ".join(process.cmdline()):
                found.append(process)
    return found


def kill_agents(host: LabHost) -> int:
    """Kill all agents on a host; gives how many there were."""
    found = agents(host)
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    return len(found)


def supervisors(host: LabHost) -> list[str]:
    """Return the command lines of all supervisors on a host."""
    return [command for command in host.commands().values() if "start.py supervisor" in command]

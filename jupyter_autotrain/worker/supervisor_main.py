"""The entry point of a supervisor: it locks the trial, detaches from the process that started it, and runs."""

from __future__ import annotations

import json
import os

from jupyter_autotrain.core import system, wire
from jupyter_autotrain.worker import trial_lock
from jupyter_autotrain.worker.resource_limits import ResourceLimits


def main(directory: str) -> None:
    """Become the supervisor of a trial, in the background; returns (exits) once there is a `status.json`."""
    os.umask(0o077)
    os.chdir(directory)
    lock = trial_lock.acquire()
    if lock is None:
        os._exit(0)
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        os._exit(0 if os.read(reader, 1) else 1)  # nothing comes when the child is dead
    os.close(reader)
    os.setsid()
    with open(wire.TRIAL_FILE, encoding="utf-8") as file:
        trial = json.load(file)
    supervise(trial, dict(os.environ), lock, writer)


def supervise(trial: dict[str, object], environ: dict[str, str], lock: int, ready: int = -1) -> None:
    """Supervise the trial in the current directory to its end.

    Args:
        trial: `TrialSpec` as JSON.
        environ: The environment to pass on, secrets included.
        lock: The trial's lock file, open and locked.
        ready: A pipe to the starter, which may go as soon as a byte comes; less than 0: in the foreground.
    """
    limits = ResourceLimits(trial)
    from jupyter_autotrain.worker.supervisor import Supervisor  # noqa: PLC0415 - the kernel makes room meanwhile

    system.adopt_orphans()
    supervisor = Supervisor(trial, environ, lock, limits)
    trial_lock.write_owner(lock, supervisor.me, [])
    supervisor.status.write()
    if ready >= 0:
        _detach_streams()  # only now: until here every fault reaches the starter's stderr
        os.write(ready, b"1")
        os.close(ready)
    try:
        supervisor.run()
    except Exception as error:  # noqa: BLE001 - whatever it is, the trial must have an end and a reason
        supervisor.give_up(error)


def _detach_streams() -> None:
    """Let go of the starter's streams, so that no process waits for them to close."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)

"""The entry point of a supervisor: it locks the trial, detaches from the process that started it, and runs."""

from __future__ import annotations

import contextlib
import os

from jupyter_autotrain.agent import system
from jupyter_autotrain.agent.supervisor.resource_limits import ResourceLimits
from jupyter_autotrain.agent.trial import trial_file, trial_lock
from jupyter_autotrain.agent.trial.trial_file import TrialFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jupyter_autotrain.agent.supervisor.worker_process import Become


def main(directory: str) -> None:
    """Become the supervisor of a trial, in the background; the starter exits once there is a `status.json`."""
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
    supervise(trial_file.read("."), dict(os.environ), lock, writer)


def supervise(
    trial: TrialFile, environ: dict[str, str], lock: int, ready: int = -1, become: Become | None = None
) -> None:
    """Supervise the trial in the current directory to its end.

    Args:
        trial: `TrialSpec` as JSON.
        environ: The environment to pass on, secrets included.
        lock: The trial's lock file, open and locked.
        ready: A pipe to the starter, which may go as soon as a byte comes; less than 0: in the foreground.
        become: Makes a new process a worker; None: by starting its interpreter.
    """
    limits = ResourceLimits(trial)
    from jupyter_autotrain.agent.supervisor.supervisor import Supervisor  # noqa: PLC0415 - the kernel makes room meanwhile

    system.adopt_orphans()
    supervisor = Supervisor(trial, environ, lock, limits)
    trial_lock.write_owner(lock, supervisor.me, [])
    supervisor.status.write()
    if ready >= 0:
        _detach_streams()  # only now: until here every fault reaches the starter's stderr
        with contextlib.suppress(BrokenPipeError):  # a manager that was killed meanwhile
            os.write(ready, b"1")
        os.close(ready)
    try:
        supervisor.run(become)
    except Exception as error:  # noqa: BLE001 - whatever it is, the trial must have an end and a reason
        supervisor.give_up(error)


def _detach_streams() -> None:
    """Let go of the starter's streams, so that no process waits for them to close."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)

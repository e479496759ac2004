"""Parts that tests of trials on the local backend share."""

from __future__ import annotations

import shutil
from pathlib import Path

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.system import processes
from jupyter_autotrain.backends.local import LocalBackend
from jupyter_autotrain.core.backend import BackendContext, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.testing import wait_for_end, wait_until

COUNTS = """
import subprocess, time
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
print("begun", child.pid, flush=True)
step = 0
while not should_stop():
    report(step=step, loss=1 / (step + 1))
    step += 1
    time.sleep(0.005)
"""


def local(home: Home, **options: JsonValue) -> LocalBackend:
    return LocalBackend(Profile("local", "local", options), BackendContext(home))


def directory_of(home: Home, trial: TrialSpec) -> Path:
    return BackendContext(home).directory(trial)


def status(backend: LocalBackend, ref: JobRef) -> JobStatus:
    return backend.poll([ref])[0]


def text(backend: LocalBackend, ref: JobRef, stream: str = wire.STDOUT) -> str:
    return backend.read([Cursor(ref, stream, 0)])[0].data.decode()


def begun(backend: LocalBackend, ref: JobRef) -> None:
    """Wait until the cell has spoken, and the supervisor has written that it runs."""
    wait_until(
        lambda: "begun" in text(backend, ref) and status(backend, ref).state is TrialState.RUNNING, "the running cell"
    )


def finish(backend: LocalBackend, ref: JobRef) -> JobStatus:
    return wait_for_end(backend, ref)


def remove(home: Home) -> None:
    """Remove a home whose processes may be writing to it."""
    wait_until(lambda: shutil.rmtree(home.root, ignore_errors=True) or not home.root.exists(), "the home to be gone")


def has_ended(*pids: int) -> bool:
    """Tell whether none of these runs; who reaps an orphan, and when, is the system's affair."""
    return not processes.living(set(pids))


def nothing_left(directory: str) -> bool:
    return not processes.marked(wire.TRIAL_VARIABLE, directory)


def supervisor_gone(directory: str) -> None:
    wait_until(lambda: not processes.running("supervisor", directory), "the end of the supervisor")

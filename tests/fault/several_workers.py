"""A trial of several workers on the local backend."""

from __future__ import annotations

from pathlib import Path

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.system import processes
from jupyter_autotrain.backends.local import LocalBackend
from jupyter_autotrain.core.backend import BackendContext, JobRef, JobStatus
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources, TrialSpec
from jupyter_autotrain.testing import trial_of, wait_for_end, wait_until

WAITS = """
import os, subprocess, time
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
print("begun", child.pid, flush=True)
while True:
    time.sleep(0.01)
"""


class Running:
    """A trial that was submitted."""

    def __init__(self, home: Home, code: str, workers: int, **spec: object) -> None:
        self.backend = LocalBackend(Profile("local", "local"), BackendContext(home))
        resources = spec.pop("resources", {})
        self.trial: TrialSpec = trial_of(home, code, resources=Resources(workers_per_node=workers, **resources), **spec)
        self.workers = workers
        self.ref: JobRef = self.backend.submit(self.trial, Placement(), {})
        self.directory = Path(str(self.ref.data["directory"]))

    def status(self) -> JobStatus:
        return self.backend.poll([self.ref])[0]

    def finish(self) -> JobStatus:
        return wait_for_end(self.backend, self.ref)

    def printed(self, stream: str, rank: int) -> str:
        path = self.directory / wire.stream_of_rank(stream, rank)
        return path.read_text() if path.exists() else ""

    def begun(self) -> None:
        """Wait until each worker has printed a word, and the supervisor has written who they are."""
        wait_until(lambda: all("begun" in self.printed(wire.STDOUT, k) for k in range(self.workers)), "all ranks")
        wait_until(lambda: self.status().state is TrialState.RUNNING, "the status of all ranks")

    def pid(self, rank: int) -> int:
        return int(self.status().detail["workers"][rank]["process"][0])

    def assert_nothing_left(self) -> None:
        assert processes.marked(wire.TRIAL_VARIABLE, str(self.directory)) == set()
        children = {int(self.printed(wire.STDOUT, rank).split()[1]) for rank in range(self.workers)}
        assert processes.living(children) == set()

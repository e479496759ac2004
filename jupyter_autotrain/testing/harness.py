"""Fixtures and helpers of the backend contract's tests."""

from __future__ import annotations

import json
import shutil
from abc import ABC, abstractmethod
from pathlib import Path

import pytest

from jupyter_autotrain.agent import system, wire
from jupyter_autotrain.core.backend import Backend, BackendContext, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.errors import BackendError
from jupyter_autotrain.testing.bundles import trial_of, wait_for_end, wait_until

WAITS = """
import time
print("begun", flush=True)
report(alive=1)
while not should_stop():
    time.sleep(0.01)
"""


class BackendHarness(ABC):
    """Makes homes, backends and trials."""

    @abstractmethod
    def make(self, context: BackendContext) -> Backend:
        """Give a fresh instance of the backend under test."""

    @pytest.fixture
    def home(self, tmp_path: Path) -> Home:
        """Make a home of its own for each test."""
        return Home(tmp_path / "home")

    @pytest.fixture
    def backend(self, home: Home) -> Backend:
        """Make the backend under test."""
        return self.make(BackendContext(home))

    def start(self, backend: Backend, home: Home, code: str, **spec: object) -> JobRef:
        """Submit a trial of its own."""
        trial = trial_of(home, code, **spec)  # type: ignore[arg-type] # by name
        return backend.submit(trial, Placement(), {})

    def status(self, backend: Backend, ref: JobRef) -> JobStatus:
        """Ask for one job."""
        return backend.poll([ref])[0]

    def finish(self, backend: Backend, ref: JobRef) -> JobStatus:
        """Wait for the job's end."""
        return wait_for_end(backend, ref)

    def run(self, backend: Backend, home: Home, code: str, **spec: object) -> tuple[JobRef, JobStatus]:
        """Submit, and wait for the end."""
        ref = self.start(backend, home, code, **spec)
        return ref, self.finish(backend, ref)

    def read(self, backend: Backend, ref: JobRef, stream: str, offset: int = 0) -> bytes:
        """Read a stream once."""
        return backend.read([Cursor(ref, stream, offset)])[0].data

    def begun(self, backend: Backend, ref: JobRef, word: bytes = b"begun") -> None:
        """Wait until the cell has printed a word."""
        wait_until(lambda: word in self.read(backend, ref, wire.STDOUT), f"{word!r} from {ref.job_id}")

    def points(self, backend: Backend, ref: JobRef) -> list[tuple[int, dict[str, float | None]]]:
        """Step and values of all metric frames."""
        frames = list(map(json.loads, self.read(backend, ref, wire.METRICS).splitlines()))
        return [(frame[1], frame[3]) for frame in frames if frame[0] == "m"]

    def needs_background(self, backend: Backend) -> None:
        """Skip where a trial is over when `submit` returns."""
        if not backend.capabilities.survives_manager:
            pytest.skip("trials of this backend run inside `submit`")

    def is_gone(self, pid: int) -> bool:
        """Tell whether a process of a trial is no more: one of this machine, unless a subclass knows better."""
        try:
            return system.look(pid).is_zombie
        except (FileNotFoundError, ProcessLookupError):
            return True

    def fetched(self, backend: Backend, ref: JobRef, path: str, target: Path) -> bytes:
        """Return a file of the trial directory, by way of `target`."""
        backend.fetch(ref, path, str(target))
        return target.read_bytes()

    def left_by(self, backend: Backend, ref: JobRef, target: Path) -> dict[str, bytes]:
        """Return the files that an ended trial leaves in its directory, once its supervisor is gone, by relative path.

        Args:
            backend: The backend under test.
            ref: The job.
            target: A folder to fetch them to; made, and emptied first.
        """

        def copy() -> bool:
            shutil.rmtree(target, ignore_errors=True)
            try:
                backend.fetch(ref, ".", str(target))
            except BackendError:  # a file went while it was copied
                return False
            return not (target / wire.LOCK_FILE).exists()

        wait_until(copy, "the supervisor's end")
        copy()  # again, for the first may have begun before that end
        files = [path for path in target.rglob("*") if path.is_file()]
        return {str(path.relative_to(target)): path.read_bytes() for path in files}

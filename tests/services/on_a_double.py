"""Parts of the tests of services: a double, backends on it, and its faults."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.pods import frames
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.log_channel.collected import CollectedTrial
from jupyter_autotrain.backends.services.backend import ServiceBackend
from jupyter_autotrain.backends.services.http_client import ServiceClient
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.errors import BackendError, BackendUnavailableError, SubmitUnknownError
from jupyter_autotrain.testing import trial_of, wait_until
from jupyter_autotrain.testing.harness import BackendHarness
from tests.labs.service_double import ServiceDouble
from tests.labs.service_jobs import JobRunner
from tests.services.notebook import Notebook, notebook

WAITS = "print('begun', flush=True)\nimport time\nwhile not should_stop(): time.sleep(0.01)"
PRINTS = """
import pathlib, time
print("begun", flush=True)
for way, steps in (({first!r}, range(60)), ({last!r}, range(60, 62))):
    while not pathlib.Path(way).exists(): time.sleep(0.01)
    for step in steps:
        print("line", step, flush=True)
        report(step=step, loss=step)
while not should_stop(): time.sleep(0.01)
"""
CELL = """%%autotrain
name: digits
backend: lab
search: {lr: [1, 2]}
trials: 2
objective: max loss
---
report(step=1, loss=lr)
"""


class OnADouble(BackendHarness):
    """Backends on one double, whose storage this machine has mounted under another path.

    Attributes:
        backend_type: Of the backends.
        kind: The type of its profiles.
        double: The service.
        storage: The storage as this machine has it.
        mounted: The same one as jobs have it.
        login: The file with credentials.
    """

    backend_type: type[ServiceBackend]
    kind: str
    double: ServiceDouble

    @pytest.fixture(autouse=True)
    def _double(self, tmp_path: Path) -> Iterator[None]:
        self.storage = tmp_path / "storage"
        self.storage.mkdir()
        self.mounted = tmp_path / "mounted"
        self.mounted.symlink_to(self.storage)
        self.login = tmp_path / "login"
        self.double = self.make_double(JobRunner(tmp_path / "jobs"))
        self.made: list[Backend] = []
        yield
        for backend in self.made:
            backend.close()
        self.double.close()

    def make_double(self, runner: JobRunner) -> ServiceDouble:
        """Return the service; write the file with credentials."""
        raise NotImplementedError

    def options(self) -> JsonObject:
        """Return the options of a profile for it."""
        raise NotImplementedError

    @property
    def shared_storage(self) -> JsonObject:
        """Return the option `storage`."""
        return {"local_path": str(self.storage), "mount_path": str(self.mounted)}

    def make(self, context: BackendContext) -> Backend:
        backend = self.backend_type(Profile("lab", self.kind, self.options()), context)
        backend._service.pause_s = 0.1
        backend._service.settle_s = 0.5
        self.made.append(backend)
        return backend

    def notebook(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AbstractContextManager[Notebook]:
        """Open a notebook whose place `lab` is the service."""
        return notebook(tmp_path, monkeypatch, {"type": self.kind, **self.options()})

    def stored(self, folder: str) -> list[Path]:
        """Return the files below a folder of ours in the storage."""
        return [path for path in (self.storage / "jupyter-autotrain" / folder).rglob("*") if path.is_file()]


class ServiceFaults(OnADouble):
    """Tests of what is made of faults that each service has.

    Attributes:
        wait_30_s: The header by which it asks to be left alone for so long.
    """

    wait_30_s = MappingProxyType({"Retry-After": "30"})

    def expire_login(self) -> None:
        """Have the service take other credentials than those of the file."""
        raise NotImplementedError

    def renew_login(self) -> None:
        """Have it take those of the file again."""
        raise NotImplementedError

    def log_file(self, name: str) -> Path:
        """Return the file with the log of a job."""
        return self.double.runner.jobs[name].folder / "log"

    def _cut(self, log: Path) -> None:
        """Have a log lose all that it holds."""
        size_bytes = log.stat().st_size
        with log.open("r+b") as file:
            file.write(b"\n" * size_bytes)

    @contextmanager
    def silent(self, *, starts: bool = False) -> Iterator[threading.Event]:
        """Have the service never answer, as `ServiceDouble.silent`, and requests wait for it shortly."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ServiceClient, "answer_s", 3.0 if starts else 1.0)
            with self.double.silent(starts=starts) as has_come:
                yield has_come

    @pytest.mark.parametrize("is_closed", [True, False])
    def test_a_submit_whose_answer_was_lost_starts_once(self, backend: Backend, home: Home, is_closed: bool) -> None:
        trial = trial_of(home, "print('ran')")
        if is_closed:
            self.double.loses_answers = True
            with pytest.raises(SubmitUnknownError):
                backend.submit(trial, Placement(), {})
            self.double.loses_answers = False
        else:
            self._submit_until_it_is_silent(backend, trial)
        assert len(self.double.begun) == 1
        ref = self.make(BackendContext(home)).submit(trial, Placement(), {})
        assert self.finish(backend, ref).state is TrialState.SUCCEEDED
        assert self.read(backend, ref, wire.STDOUT) == b"ran\n"
        assert len(self.double.begun) == 1

    def _submit_until_it_is_silent(self, backend: Backend, trial: TrialSpec) -> None:
        with self.silent(starts=True) as has_come:
            while not has_come.is_set():
                with pytest.raises(SubmitUnknownError, match="did not answer"):
                    backend.submit(trial, Placement(), {})

    def test_a_service_that_never_answers_starts_nothing_and_is_named(self, backend: Backend, home: Home) -> None:
        with self.silent(), pytest.raises(BackendUnavailableError, match="did not answer"):
            self.start(backend, home, "")
        assert self.double.begun == []

    def test_a_service_that_stops_answering_is_a_doubt_and_never_an_end(self, backend: Backend, home: Home) -> None:
        ref = self.start(backend, home, WAITS)
        self.begun(backend, ref)
        with self.silent():
            assert "did not answer" in wait_until(lambda: self.status(backend, ref).doubt, "a doubt")
            assert self.status(backend, ref).state is TrialState.RUNNING
        wait_until(lambda: not self.status(backend, ref).doubt, "an answer")
        backend.put(ref, wire.STOP_FILE, b"")
        assert self.finish(backend, ref).state is TrialState.EARLY_STOPPED
        assert len(self.double.begun) == 1

    def test_a_cell_does_not_wait_for_a_service_that_never_answers(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ServiceClient, "answer_s", 100_000.0)  # in the kernel: a cell that waits would never end
        with self.notebook(tmp_path, monkeypatch) as made:
            with self.double.silent() as has_come:
                made.run(CELL)
                assert has_come.wait(240)
            found = made.value("__import__('jupyter_autotrain').attach('digits')")
            assert isinstance(found, Experiment)
            wait_until(lambda: found.store.experiment(found.id).state.is_final, "the end", within_s=300)
            assert [trial.state for trial in found.trials] == [TrialState.SUCCEEDED] * 2
        assert len(self.double.begun) == 2

    def test_what_a_log_has_lost_comes_from_the_running_trial(
        self, backend: Backend, home: Home, tmp_path: Path
    ) -> None:
        first = tmp_path / "first"
        last = tmp_path / "last"
        ref = self.start(backend, home, PRINTS.format(first=str(first), last=str(last)))
        self.begun(backend, ref)
        backend.close()
        first.touch()
        (name,) = self.double.begun
        wait_until(lambda: b"line 59\n" in self._printed(name), "the last line")
        self._cut(self.log_file(name))
        other = self.make(BackendContext(home))
        last.touch()
        self.begun(other, ref, b"line 61\n")
        wait_until(lambda: len(self.points(other, ref)) == 62, "all points")
        other.put(ref, wire.STOP_FILE, b"")
        assert self.finish(other, ref).state is TrialState.EARLY_STOPPED
        assert [step for step, _ in self.points(other, ref)] == list(range(62))
        lines = self.read(other, ref, wire.STDOUT).splitlines()
        assert lines == [b"begun", *(b"line %d" % step for step in range(62))]

    def _printed(self, name: str) -> bytes:
        lines = self.log_file(name).read_text(encoding="utf-8").splitlines()
        found = filter(None, map(frames.decode, lines))
        return b"".join(frame.data for frame in found if frame.path == wire.STDOUT)

    def test_a_trial_whose_job_is_gone_is_lost_with_a_reason(self, backend: Backend, home: Home) -> None:
        ref = self.start(backend, home, WAITS)
        self.begun(backend, ref)
        self.double.lose(str(ref.data["name"]))
        status = self.finish(backend, ref)
        assert status.state is TrialState.LOST
        assert "does not know its job any more" in status.reason

    def test_the_end_of_a_trial_that_a_killed_manager_has_not_written_is_settled_by_the_next(
        self, backend: Backend, home: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(CollectedTrial, "close", full)
            ref = self.start(backend, home, "for step in range(9):\n    report(step=step, loss=1)")
            wait_until(lambda: "No space left" in self.status(backend, ref).doubt, "the end")
            assert not self.stored("jobs")
            backend.close()
        other = self.make(BackendContext(home))
        assert self.finish(other, ref).state is TrialState.SUCCEEDED
        assert [step for step, _ in self.points(other, ref)] == list(range(9))

    def test_a_cancelled_trial_leaves_nothing_in_the_storage(self, backend: Backend, home: Home) -> None:
        ref = self.start(backend, home, WAITS)
        self.begun(backend, ref)
        backend.cancel(ref, 5.0)
        assert not self.stored("jobs")

    def test_a_login_that_expires_is_a_doubt_until_it_is_renewed(self, backend: Backend, home: Home) -> None:
        ref = self.start(backend, home, WAITS)
        self.begun(backend, ref)
        self.expire_login()
        told = wait_until(lambda: self.status(backend, ref).doubt, "a doubt")
        assert "answers 40" in told
        self.renew_login()
        wait_until(lambda: not self.status(backend, ref).doubt, "the login")
        backend.put(ref, wire.STOP_FILE, b"")
        assert self.finish(backend, ref).state is TrialState.EARLY_STOPPED

    @pytest.mark.parametrize(
        ("code", "kind", "text"),
        [
            (401, BackendError, "answers 401"),
            (403, BackendError, "answers 403"),
            (429, BackendUnavailableError, "asks to wait 30 s"),
            (503, BackendUnavailableError, "answers 503"),
        ],
    )
    def test_refusals_of_a_submit_start_nothing(
        self, backend: Backend, home: Home, code: int, kind: type[Exception], text: str
    ) -> None:
        headers = self.wait_30_s if code == 429 else {}
        with self.double.refusing(code, headers), pytest.raises(kind, match=text):
            self.start(backend, home, "")
        assert self.double.begun == []

    def test_what_a_deleted_experiment_has_in_the_storage_goes_and_the_rest_stays(
        self, backend: ServiceBackend, home: Home
    ) -> None:
        refs = [self.start(backend, home, WAITS, experiment_id=name) for name in ("first", "other")]
        for ref in refs:
            self.begun(backend, ref)
        there = set(self.stored(""))
        assert sorted(backend.experiments_there()) == (["first", "other"] if there else [])
        backend.remove_experiments(["first"])
        assert set(self.stored("")) == {path for path in there if "first" not in str(path)}
        other = self.make(BackendContext(home))
        assert isinstance(other, ServiceBackend)
        assert sorted(other.experiments_there()) == (["other"] if there else [])
        for ref in refs:
            backend.cancel(ref, 5.0)


del BackendHarness

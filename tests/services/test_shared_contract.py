"""Tests of what all services share: the contract of backends, and faults of a service, over jobs that are processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.debug import DebugBackend
from jupyter_autotrain.backends.services.dlc.backend import DlcBackend
from jupyter_autotrain.client import requirements
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, Placement, Resources
from jupyter_autotrain.errors import SubmitUnknownError
from jupyter_autotrain.testing import BackendContract, NodesContract, trial_of, wait_until
from jupyter_autotrain.testing.harness import BackendHarness
from tests.labs.service_jobs import JobRunner
from tests.services.process_service import ProcessService, ProcessServiceBackend


class ServiceHarness(BackendHarness):
    """Backends over one service of processes."""

    @pytest.fixture(autouse=True)
    def _jobs(self, tmp_path: Path) -> Iterator[None]:
        self.service = ProcessService(JobRunner(tmp_path / "jobs"))
        self.made: list[Backend] = []
        yield
        for backend in self.made:
            backend.close()
        self.service.runner.close()

    def make(self, context: BackendContext) -> Backend:
        backend = ProcessServiceBackend(context, self.service)
        self.made.append(backend)
        return backend


@pytest.mark.long
class TestContract(ServiceHarness, BackendContract, NodesContract):
    """All of the contract."""

    def test_a_path_that_is_not_there_is_named_with_its_node(self, backend: Backend) -> None:
        assert backend.missing_paths(["/no/such/place"]) == []  # only a job can look, and its trial says it


COUNTS = """
import time
for step in range(60):
    print("line", step, flush=True)
    report(step=step, loss=1.0 / (step + 1))
    time.sleep(0.02)
"""


def test_several_nodes_are_refused_where_a_trial_has_one(tmp_path: Path) -> None:
    spec = ExperimentSpec("wide", Bundle(), resources=Resources(nodes=2))
    context = BackendContext(Home(tmp_path / "home"))
    (told,) = requirements.missing(spec, DebugBackend(Profile("debug", "debug"), context))
    assert told.startswith("resources.nodes (it runs a trial on one node; there, `workers_per_node`")
    assert [*requirements.missing(spec, DlcBackend(Profile("lab", "dlc", {"job_type": "TFJob"}), context))] == []


class TestFaults(ServiceHarness):
    """Trials at a service that fails in every way that services do."""

    @pytest.mark.parametrize(
        "fault",
        ["cut", pytest.param("doubled", marks=pytest.mark.long), pytest.param("reordered", marks=pytest.mark.long)],
    )
    def test_no_metric_is_lost_or_doubled_when_a_log_is(self, backend: Backend, home: Home, fault: str) -> None:
        self.service.log_fault = fault
        ref, status = self.run(backend, home, COUNTS)
        assert status.state is TrialState.SUCCEEDED
        assert [step for step, _ in self.points(backend, ref)] == list(range(60))
        lines = self.read(backend, ref, wire.STDOUT).splitlines()
        assert lines == [b"line %d" % step for step in range(60)]

    def test_a_trial_whose_submit_lost_its_answer_runs_once(self, backend: Backend, home: Home) -> None:
        trial = trial_of(home, "print('ran')")
        self.service.loses_answers = True
        with pytest.raises(SubmitUnknownError):
            backend.submit(trial, Placement(), {})
        self.service.loses_answers = False
        ref = self.make(BackendContext(home)).submit(trial, Placement(), {})
        assert self.finish(backend, ref).state is TrialState.SUCCEEDED
        assert self.service.runner.started == [str(ref.data["name"])]
        assert self.read(backend, ref, wire.STDOUT) == b"ran\n"

    def test_a_service_that_does_not_answer_is_a_doubt_and_never_an_end(self, backend: Backend, home: Home) -> None:
        ref = self.start(
            backend, home, "print('begun', flush=True)\nimport time\nwhile not should_stop(): time.sleep(0.01)"
        )
        self.begun(backend, ref)
        self.service.is_away = True
        status = wait_until(lambda: self._doubtful(backend, ref), "a doubt")
        assert "does not answer" in status
        self.service.is_away = False
        wait_until(lambda: not self._doubtful(backend, ref), "the service")
        backend.put(ref, wire.STOP_FILE, b"")
        assert self.finish(backend, ref).state is TrialState.EARLY_STOPPED

    def _doubtful(self, backend: Backend, ref: object) -> str:
        return self.status(backend, ref).doubt  # type: ignore[arg-type] # a JobRef

    def test_a_trial_whose_job_is_gone_is_lost_with_a_reason(self, backend: Backend, home: Home) -> None:
        ref = self.start(backend, home, "print('begun', flush=True)\nimport time\ntime.sleep(1000)")
        self.begun(backend, ref)
        self.service.runner.lose(str(ref.data["name"]))
        status = self.finish(backend, ref)
        assert status.state is TrialState.LOST
        assert "does not know its job any more" in status.reason

    def test_files_too_big_for_the_log_come_from_the_job_before_it_ends(
        self, backend: Backend, home: Home, tmp_path: Path
    ) -> None:
        code = "import pathlib\npathlib.Path('../outputs/big').write_bytes(bytes(range(256)) * 20_000)"
        ref, status = self.run(backend, home, code, fetch_limit_bytes=100 << 20)
        assert status.state is TrialState.SUCCEEDED
        assert self.fetched(backend, ref, "outputs/big", tmp_path / "big") == bytes(range(256)) * 20_000


del BackendContract, BackendHarness, NodesContract

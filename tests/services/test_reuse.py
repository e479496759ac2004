"""Long jobs of services that run trials one after another."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.backend import Backend, BackendContext, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.errors import BackendError, SubmitUnknownError
from jupyter_autotrain.testing import BackendContract, trial_of, wait_until
from tests.services.on_a_double import WAITS, OnADouble
from tests.services.searches import search_with_a_killed_manager
from tests.services.test_aml import OnAml
from tests.services.test_dlc import OnDlc, with_sdk
from tests.services.test_dlts import OnDlts
from tests.services.test_openpai import OnOpenpai
from tests.services.test_ray import OnRay

SECRET = "s3cr3t-t0ken-0123456789"


class _Reuse(OnADouble):
    """Trials in one long job."""

    reuse_idle_s = 600.0  # longer than any search waits for its next trial
    short_idle_s = 1.0  # trials that wait are taken at once
    reuse = 1

    def options(self) -> JsonObject:
        return {**super().options(), "reuse": self.reuse, "reuse_idle": self.reuse_idle_s}

    def begin(self, backend: Backend, home: Home, code: str, number: int) -> JobRef:
        """Submit a trial of an experiment of its own."""
        return self.start(backend, home, code, experiment_id=f"e{number}")

    def test_one_job_runs_all_trials_and_nothing_is_left_when_no_more_come(self, home: Home) -> None:
        self.reuse_idle_s = self.short_idle_s
        backend = self.make(BackendContext(home))
        first = self.begin(backend, home, WAITS, 1)
        self.begun(backend, first)
        refs = [self.begin(backend, home, f"print({number})\nreport(loss=1)", number) for number in (2, 3, 4)]
        wait_until(lambda: "its turn" in self.status(backend, refs[0]).reason, "the reason why it waits")
        backend.put(first, wire.STOP_FILE, b"")
        assert self.finish(backend, first).state is TrialState.EARLY_STOPPED
        for number, ref in zip((2, 3, 4), refs, strict=True):
            assert self.finish(backend, ref).state is TrialState.SUCCEEDED
            assert self.read(backend, ref, wire.STDOUT) == b"%d\n" % number
            assert len(self.points(backend, ref)) == 1
        (job_id,) = self.double.begun
        wait_until(lambda: self.double.runner.jobs[job_id].state == "SUCCEEDED", "the end of the long job")
        assert self.remove_all(backend) == []

    def remove_all(self, backend: Backend) -> list[Path]:
        """Delete all experiments; return what is in the storage then."""
        names = list(backend.experiments_there())  # type: ignore[attr-defined] # of services
        backend.remove_experiments(names)  # type: ignore[attr-defined] # as above
        return self.stored("")

    def test_cancelled_trials_leave_their_long_job(self, backend: Backend, home: Home) -> None:
        running = self.begin(backend, home, WAITS, 1)
        self.begun(backend, running)
        waiting = self.begin(backend, home, "", 2)
        last = self.begin(backend, home, "print('ran')", 3)
        assert backend.cancel(waiting, 5.0).pids_left == ()
        receipt = backend.cancel(running, 5.0)
        assert receipt.pids_left == ()
        assert [self.status(backend, ref).state for ref in (waiting, running)] == [TrialState.CANCELLED] * 2
        assert self.finish(backend, last).state is TrialState.SUCCEEDED
        assert len(self.double.begun) == 1

    def test_when_a_long_job_is_gone_those_that_wait_run_in_another(self, backend: Backend, home: Home) -> None:
        running = self.begin(backend, home, WAITS, 1)
        self.begun(backend, running)
        waiting = self.begin(backend, home, "print('ran')", 2)
        backend.close()
        other = self.make(BackendContext(home))
        (job_id,) = self.double.begun
        self.double.runner.lose(job_id)
        self.forget(job_id)
        status = self.finish(other, running)
        assert status.state is TrialState.LOST
        assert "Its long job ended: the service does not know it any more" in status.reason
        assert self.finish(other, waiting).state is TrialState.SUCCEEDED
        assert self.read(other, waiting, wire.STDOUT) == b"ran\n"
        assert len(self.double.begun) == 2

    def forget(self, job_id: str) -> None:
        """Have the double know a job no more."""

    def test_trials_run_in_the_order_of_their_numbers(self, backend: Backend, home: Home, tmp_path: Path) -> None:
        first = self.begin(backend, home, WAITS, 1)
        self.begun(backend, first)
        order = tmp_path / "order"
        code = f"with open({str(order)!r}, 'a') as file:\n    print(k, file=file)"
        refs = []
        for number in (10, 9, 2):
            own = {"number": number, "params": {"k": number}}
            refs.append(self.start(backend, home, code, experiment_id="e2", **own))
        backend.put(first, wire.STOP_FILE, b"")
        for ref in refs:
            assert self.finish(backend, ref).state is TrialState.SUCCEEDED
        assert order.read_text().split() == ["2", "9", "10"]

    def test_a_trial_whose_process_is_killed_is_lost_and_the_long_job_goes_on(
        self, backend: Backend, home: Home
    ) -> None:
        kill = (
            "import os, signal\n"
            "told = open(f'/proc/{os.getppid()}/status').read()\n"
            "os.kill(int(told.split('PPid:')[1].split()[0]), signal.SIGKILL)\nsignal.pause()"
        )
        killed = self.begin(backend, home, kill, 1)
        last = self.begin(backend, home, "print('ran')", 2)
        assert self.finish(backend, killed).state is TrialState.LOST
        assert self.finish(backend, last).state is TrialState.SUCCEEDED
        assert len(self.double.begun) == 1

    def test_a_start_whose_answer_was_lost_makes_no_second_long_job(self, backend: Backend, home: Home) -> None:
        trial = trial_of(home, "print('ran')", secrets=("API_KEY",))
        self.double.loses_answers = True
        with pytest.raises(SubmitUnknownError):
            backend.submit(trial, Placement(), {"API_KEY": SECRET})
        self.double.loses_answers = False
        ref = self.make(BackendContext(home)).submit(trial, Placement(), {"API_KEY": SECRET})
        assert self.finish(backend, ref).state is TrialState.SUCCEEDED
        assert self.read(backend, ref, wire.STDOUT) == b"ran\n"
        assert len(self.double.begun) == 1

    def test_a_refused_long_job_leaves_no_trial_that_waits(self, backend: Backend, home: Home) -> None:
        with self.double.refusing(403, {}), pytest.raises(BackendError, match="answers 403"):
            self.begin(backend, home, "print('ran')", 1)
        assert self.stored("jobs") == []
        again = self.begin(backend, home, "print('ran')", 1)
        assert self.finish(backend, again).state is TrialState.SUCCEEDED
        assert len(self.double.begun) == 1

    def test_a_search_from_a_cell_runs_in_one_long_job_and_a_killed_manager_loses_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with self.notebook(tmp_path, monkeypatch) as made:
            search_with_a_killed_manager(made, tmp_path)
        assert len(self.double.begun) == 1


class TestOpenpai(_Reuse, OnOpenpai):
    """On the double of OpenPAI."""

    def test_a_trial_on_several_nodes_is_a_job_of_its_own(self, backend: Backend, home: Home) -> None:
        running = self.begin(backend, home, WAITS, 1)
        self.begun(backend, running)
        wide = self.start(backend, home, "print('ran')", experiment_id="e2", resources=Resources(nodes=2))
        assert self.finish(backend, wide).state is TrialState.SUCCEEDED
        assert len(self.double.runner.jobs[self.double.begun[-1]].workers) == 2
        backend.put(running, wire.STOP_FILE, b"")
        assert self.finish(backend, running).state is TrialState.EARLY_STOPPED

    def test_a_long_job_that_the_list_lacks_is_not_lost(self, backend: Backend, home: Home) -> None:
        running = self.begin(backend, home, WAITS, 1)
        self.begun(backend, running)
        self.double.forgets_list = True
        many = len(self.double.asked)
        wait_until(lambda: len(self.double.asked) > many + 60, "many looks, longer than it may be unknown")
        assert self.status(backend, running).state is TrialState.RUNNING
        backend.put(running, wire.STOP_FILE, b"")
        assert self.finish(backend, running).state is TrialState.EARLY_STOPPED
        assert len(self.double.begun) == 1


@pytest.mark.long
class TestDlts(_Reuse, OnDlts):
    """On the double of DLTS."""

    def forget(self, job_id: str) -> None:
        del self.double.rows[job_id]


@with_sdk
@pytest.mark.long
class TestDlc(_Reuse, OnDlc):
    """On the double of PAI-DLC."""

    def forget(self, job_id: str) -> None:
        del self.double.asked_jobs[job_id]


@pytest.mark.long
class TestAml(_Reuse, OnAml):
    """On the double of Azure Machine Learning, whose blob store cannot rename."""

    short_idle_s = 30.0  # each trial is given when this process has seen the end of the last one


@pytest.mark.long
class TestRay(_Reuse, OnRay):
    """On the double of Ray, with a storage that its nodes and this machine have mounted."""

    def options(self) -> JsonObject:
        return {**super().options(), "storage": self.shared_storage}


@pytest.mark.long
class TestContract(OnOpenpai, BackendContract):
    """All of the contract, in four long jobs."""

    def options(self) -> JsonObject:
        return {**super().options(), "reuse": 4}

    def test_a_path_that_is_not_there_is_named_with_its_node(self, backend: Backend) -> None:
        assert backend.missing_paths(["/no/such/place"]) == []  # only a job can look, and its trial says it

    def test_given_gpus_are_the_visible_ones(self, backend: Backend, home: Home) -> None:
        pytest.skip("OpenPAI gives GPUs to its containers, and the double has none")


del BackendContract, OnADouble

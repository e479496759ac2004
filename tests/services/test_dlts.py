"""The contract of backends on a double of DLTS, and its faults."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.services.backend import ServiceBackend
from jupyter_autotrain.backends.services.dlts.backend import DltsBackend
from jupyter_autotrain.core.backend import Backend, BackendContext, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.errors import BackendError
from jupyter_autotrain.testing import BackendContract, trial_of, wait_until
from tests.labs.dlts_double import CLUSTER, EMAIL, KEY, TEAM, DltsDouble
from tests.labs.service_jobs import JobRunner
from tests.services.on_a_double import WAITS, OnADouble, ServiceFaults
from tests.services.searches import search_with_a_killed_manager
from tests.services.several_nodes import SeveralNodes


class OnDlts(OnADouble):
    """Backends on one double of DLTS."""

    backend_type = DltsBackend
    kind = "dlts"
    double: DltsDouble

    def make_double(self, runner: JobRunner) -> DltsDouble:
        self.login.write_text(f"machine 127.0.0.1 login {EMAIL} password {KEY}\n")
        return DltsDouble(runner)

    def options(self) -> JsonObject:
        return {
            "address": self.double.address, "team": TEAM, "image": "python:3.12", "python": sys.executable,
            "login_file": str(self.login), "storage": self.shared_storage,
        }  # fmt: skip

    def row_of(self, name: str) -> str:
        """Return the id of the job of a trial."""
        (job_id,) = self.double.ids(name)
        return job_id


@pytest.mark.long
class TestContract(OnDlts, BackendContract):
    """All of the contract."""

    def test_a_path_that_is_not_there_is_named_with_its_node(self, backend: Backend) -> None:
        assert backend.missing_paths(["/no/such/place"]) == []  # only a job can look, and its trial says it

    def test_given_gpus_are_the_visible_ones(self, backend: Backend, home: Home) -> None:
        pytest.skip("DLTS gives GPUs to its containers, and the double has none")


@pytest.mark.long
class TestNodes(OnDlts, SeveralNodes):
    """Trials on several nodes."""

    def kill_worker(self, ref: JobRef, number: int) -> None:
        self.double.kill_worker(self.row_of(str(ref.data["name"])), number)


@pytest.mark.long
class TestFaults(OnDlts, ServiceFaults):
    """Faults of any service."""

    def log_file(self, name: str) -> Path:
        (own,) = (row.asked["jobName"] for row in self.double.rows.values())
        return self.storage / "jupyter-autotrain" / "jobs" / str(own) / "log"

    def expire_login(self) -> None:
        self.double.key = "another"

    def renew_login(self) -> None:
        self.double.key = KEY


class TestRequests(OnDlts):
    """Requests to DLTS, and what is made of its answers."""

    @pytest.mark.long  # by default one goes to a double of OpenPAI
    def test_a_search_from_a_cell_goes_there_and_a_killed_manager_loses_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with self.notebook(tmp_path, monkeypatch) as made:
            search_with_a_killed_manager(made, tmp_path)
        assert len(self.double.runner.started) == 2
        wait_until(lambda: not list((self.storage / "jupyter-autotrain" / "jobs").iterdir()), "an empty folder")

    def test_the_job_is_what_the_golden_one_is(self, backend: Backend, home: Home) -> None:
        trial = trial_of(
            home, "", resources=Resources(cpus=1.5, gpus=2, memory_bytes=2 << 30), options={"gpu_type": "P40"}
        )
        shown = backend.render(trial, Placement()).files["request.txt"]
        assert KEY not in shown
        head, _, body = shown.partition("\n\n")
        assert head == (
            f"POST {self.double.address}/api/clusters/.default/jobs?email=***&password=***\n"
            "Content-Type: application/json"
        )
        job = json.loads(body)
        exports, _, command = job.pop("cmd").rpartition("; ")
        assert exports.endswith("; export PYTHONUNBUFFERED=1")
        own = f"{self.mounted}/jupyter-autotrain/jobs/{job['jobName']}"
        assert command.startswith(f"mkdir {own}/begun && exec {sys.executable} -I -S -u {self.mounted}/")
        assert command.endswith(f" /tmp/{job['jobName']} {own} >{own}/log 2>&1")
        assert len(job.pop("jobId")) == 36
        assert job == {
            "team": "vision", "vcName": "vision", "jobName": job["jobName"], "jobType": "training",
            "jobtrainingtype": "RegularJob", "image": "python:3.12", "gpuType": "P40", "resourcegpu": 2,
            "cpurequest": "1500m", "memoryrequest": "2048Mi", "preemptionAllowed": "False", "workPath": "",
            "enableworkpath": True, "jobPath": "", "enablejobpath": True, "dataPath": "", "enabledatapath": False,
            "mountpoints": [], "env": [], "interactivePorts": [], "ssh": False, "ipython": False,
            "tensorboard": False, "hostNetwork": False, "hostIPC": False, "isPrivileged": False,
            "useGPUTopology": False,
        }  # fmt: skip

    def test_on_several_nodes_the_command_starts_each_worker_by_ssh(self, backend: Backend, home: Home) -> None:
        shown = backend.render(trial_of(home, "", resources=Resources(nodes=2, gpus=1)), Placement())
        job = json.loads(shown.files["request.txt"].partition("\n\n")[2])
        assert [job[key] for key in ("jobtrainingtype", "numps", "numpsworker", "resourcegpu")] == [
            "PSDistJob",
            1,
            2,
            1,
        ]
        own = f"{self.mounted}/jupyter-autotrain/jobs/{job['jobName']}"
        before, _, after = job["cmd"].partition("; for node in 0 1; do ssh -n worker-$node ")
        assert before == f"mkdir {own}/begun || exit 1; first=$(ssh -G worker-0 | sed -n 's/^hostname //p')"
        told, _, rest = after.partition(" & ")
        assert rest == 'nodes="$nodes $!"; done; for one in $nodes; do wait $one || exit 1; done'
        exports, command = shlex.split(told)
        assert exports == "export AUTOTRAIN_NODE=$node AUTOTRAIN_FIRST_ADDRESS=$first;"
        run = f"/tmp/{job['jobName']}-$AUTOTRAIN_NODE"
        assert command.endswith(f" {run} {own} >{own}/node-$AUTOTRAIN_NODE/log 2>&1")

    def test_a_job_that_is_missing_in_a_list_is_found_by_its_id(self, backend: Backend, home: Home) -> None:
        self.double.forgets_list = True
        assert self.run(backend, home, "report(loss=1)")[1].state is TrialState.SUCCEEDED

    def test_a_refusal_that_comes_as_an_answer_is_told(self, backend: ServiceBackend, home: Home) -> None:
        backend._service = DltsBackend.connect(backend, {**self.options(), "team": "speech"})  # type: ignore[arg-type]
        with pytest.raises(BackendError, match="Access Denied"):
            backend.submit(trial_of(home, ""), Placement(), {})

    def test_a_job_that_waits_says_for_what(self, backend: Backend, home: Home) -> None:
        self.double.holds = True
        ref = self.start(backend, home, "")
        told = wait_until(lambda: self.status(backend, ref).reason, "a reason")
        assert told == "waits in DLTS: waiting for available resource."
        self.double.rows[self.row_of(str(ref.data["name"]))].status = "unapproved"
        wait_until(lambda: "until somebody of team vision approves it" in self.status(backend, ref).reason, "another")
        receipt = backend.cancel(ref, 1.0)
        assert self.finish(backend, ref).state is TrialState.CANCELLED, receipt

    @pytest.mark.parametrize("word", ["paused", "queued"])
    def test_a_job_that_loses_its_place_is_preempted_and_never_comes_back(
        self, backend: Backend, home: Home, word: str
    ) -> None:
        ref = self.start(backend, home, WAITS)
        self.begun(backend, ref)
        job_id = self.row_of(str(ref.data["name"]))
        job = self.double.runner.jobs[job_id]
        assert job.process is not None
        job.process.kill()
        job.process.wait()
        self.double.rows[job_id].status = word
        status = self.finish(backend, ref)
        assert (status.state, status.reason.partition(" Its job printed")[0]) == (
            TrialState.PREEMPTED, f"DLTS has taken its place away: its job is {word}.",
        )  # fmt: skip
        wait_until(lambda: self.double.status(job_id) == "killed", "the end of the job")

    def test_a_long_log_that_is_read_from_its_end_loses_nothing(self, backend: Backend, home: Home) -> None:
        code = "for k in range(600):\n    print('x' * 1000)\n    report(step=k, loss=1)\n"
        ref = self.start(backend, home, code + WAITS)
        self.begun(self.make(BackendContext(home)), ref)
        backend.put(ref, wire.STOP_FILE, b"")
        assert self.finish(backend, ref).state is TrialState.EARLY_STOPPED
        assert [step for step, _ in self.points(backend, ref)] == list(range(600))
        assert self.read(backend, ref, wire.STDOUT).count(b"x" * 1000 + b"\n") == 600

    def test_a_second_job_of_a_trial_changes_nothing(self, backend: Backend, home: Home) -> None:
        ref = self.start(backend, home, WAITS)
        self.begun(backend, ref)
        command = str(self.double.rows[self.row_of(str(ref.data["name"]))].asked["cmd"])
        self.double.runner.start("second", command, {})
        assert wait_until(lambda: self.double.runner.jobs["second"].state == "FAILED", "its end")
        backend.put(ref, wire.STOP_FILE, b"")
        assert self.finish(backend, ref).state is TrialState.EARLY_STOPPED
        assert self.read(backend, ref, wire.STDOUT) == b"begun\n"

    def test_dlts_s_own_reason_is_told(self, backend: Backend, home: Home) -> None:
        self.double.holds = True
        ref = self.start(backend, home, "")
        row = self.double.rows[self.row_of(str(ref.data["name"]))]
        row.error = "pod failed:\nImagePullBackOff: python:3.12"
        row.status = "failed"
        status = self.finish(backend, ref)
        assert status.state is TrialState.FAILED
        assert status.reason == "DLTS ended its job: ImagePullBackOff: python:3.12"

    def test_a_storage_that_goes_away_is_a_doubt(self, backend: Backend, home: Home) -> None:
        ref = self.start(backend, home, WAITS)
        self.begun(backend, ref)
        self.storage.rename(self.storage.with_name("away"))
        assert "Look at the mount" not in wait_until(lambda: self.status(backend, ref).doubt, "a doubt")
        self.storage.with_name("away").rename(self.storage)
        wait_until(lambda: not self.status(backend, ref).doubt, "the storage")
        backend.put(ref, wire.STOP_FILE, b"")
        assert self.finish(backend, ref).state is TrialState.EARLY_STOPPED

    def test_a_check_says_step_by_step_what_to_do(self, backend: DltsBackend) -> None:
        assert [step.name for step in backend.check_steps()] == ["address", "login", "team", "storage"]
        told = {
            "storage": ({"storage": {"local_path": "/no/such", "mount_path": "/x"}}, "local_path:"),
            "team": ({"cluster": "none"}, "`cluster:`"),
            "login": ({"login_file": "/no/such"}, "/no/such"),
        }
        for name, (options, action) in told.items():
            (*_, last) = backend.connect({**self.options(), **options}).check_steps()
            assert (last.name, last.is_good) == (name, False)
            assert action in last.action
            assert KEY not in f"{last}"
        assert CLUSTER in [step.text for step in backend.check_steps()][2]


del BackendContract, OnADouble, ServiceFaults, SeveralNodes

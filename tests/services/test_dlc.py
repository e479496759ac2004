"""The contract of backends on a double of PAI-DLC, which the real SDK asks over HTTPS, and its faults."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.services.dlc.backend import DlcBackend
from jupyter_autotrain.core.backend import Backend, BackendContext, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.errors import BackendUnavailableError
from jupyter_autotrain.testing import BackendContract, trial_of, wait_until
from jupyter_autotrain.testing.harness import WAITS as NODES_WAIT
from tests.labs.dlc_double import INSTANCE, KEY, KEY_ID, WORKSPACE, DlcDouble
from tests.labs.service_jobs import JobRunner
from tests.services.on_a_double import WAITS, OnADouble, ServiceFaults
from tests.services.searches import search_with_a_killed_manager
from tests.services.several_nodes import SeveralNodes

with_sdk = pytest.mark.skipif(
    find_spec("alibabacloud_pai_dlc20201203") is None,
    reason="needs the SDK of PAI-DLC: pip install 'jupyter-autotrain[dlc]'",
)


class OnDlc(OnADouble):
    """Backends on one double of PAI-DLC."""

    backend_type = DlcBackend
    kind = "dlc"
    double: DlcDouble

    def make_double(self, runner: JobRunner) -> DlcDouble:
        self.write_login(KEY)
        return DlcDouble(runner, self.storage.parent / "certificates")

    def write_login(self, key: str) -> None:
        """Write the file with an access key, as the SDK reads it."""
        lines = ("[default]", "type = access_key", f"access_key_id = {KEY_ID}", f"access_key_secret = {key}")
        self.login.write_text("\n".join(lines))

    def options(self) -> JsonObject:
        return {
            "region": "cn-hangzhou", "endpoint": self.double.address.partition("://")[2], "workspace": WORKSPACE,
            "image": "python:3.12", "instance": INSTANCE, "python": sys.executable, "login_file": str(self.login),
            "storage": self.shared_storage, "ca_file": str(self.double.ca_file),
        }  # fmt: skip


@with_sdk
@pytest.mark.long
class TestContract(OnDlc, BackendContract):
    """All of the contract."""

    def test_a_path_that_is_not_there_is_named_with_its_node(self, backend: Backend) -> None:
        assert backend.missing_paths(["/no/such/place"]) == []  # only a job can look, and its trial says it

    def test_given_gpus_are_the_visible_ones(self, backend: Backend, home: Home) -> None:
        pytest.skip("PAI-DLC gives GPUs to its containers, and the double has none")


@with_sdk
@pytest.mark.long
class TestNodes(OnDlc, SeveralNodes):
    """Trials on several nodes."""

    def test_of_two_jobs_of_one_trial_the_second_one_ends_on_all_nodes(self, backend: Backend, home: Home) -> None:
        trial = trial_of(home, NODES_WAIT, resources=Resources(nodes=2))
        self.double.hides_new = True
        ref = backend.submit(trial, Placement(), {})
        assert self.make(BackendContext(home)).submit(trial, Placement(), {}) == ref
        first, second = self.double.ids(str(ref.data["name"]))
        jobs = self.double.runner.jobs
        wait_until(lambda: "FAILED" in {jobs[first].state, jobs[second].state}, "the end of one", within_s=240)
        self.double.hides_new = False
        self.all_begun(backend, ref)
        backend.put(ref, wire.STOP_FILE, b"")
        assert self.finish(backend, ref).state is TrialState.EARLY_STOPPED
        assert [self.of_rank(backend, ref, rank) for rank in range(2)] == ["begun\n"] * 2


@with_sdk
@pytest.mark.long
class TestNodesOfATensorflowJob(OnDlc, SeveralNodes):
    """Trials on several nodes, which `TF_CONFIG` tells who they are."""

    def options(self) -> JsonObject:
        return {**super().options(), "job_type": "TFJob"}


@with_sdk
@pytest.mark.long
class TestFaults(OnDlc, ServiceFaults):
    """Faults of any service."""

    def log_file(self, name: str) -> Path:
        own = self.double.asked_jobs[name]["DisplayName"]
        return self.storage / "jupyter-autotrain" / "jobs" / str(own) / "log"

    wait_30_s = MappingProxyType({"x-acs-retry-after": "30000"})

    def expire_login(self) -> None:
        self.double.key = "another"

    def renew_login(self) -> None:
        self.write_login("another")


class TestWithoutSdk(OnDlc):
    """Tests that need no SDK."""

    def test_the_job_of_a_public_machine_is_what_the_golden_one_is(self, backend: Backend, home: Home) -> None:
        shown = backend.render(trial_of(home, ""), Placement()).files["request.txt"]
        assert KEY not in shown
        head, _, body = shown.partition("\n\n")
        assert head == (f"POST {self.double.address}/api/v1/jobs\nAuthorization: ***\nContent-Type: application/json")
        job = json.loads(body)
        own = f"{self.mounted}/jupyter-autotrain/jobs/{job['DisplayName']}"
        command = job.pop("UserCommand")
        assert command.startswith(f"mkdir {own}/begun && exec {sys.executable} -I -S -u {self.mounted}/")
        assert command.endswith(f" /tmp/{job['DisplayName']} {own} >{own}/log 2>&1")
        assert sorted(job.pop("Envs")) == ["AUTOTRAIN_POD", "PYTHONUNBUFFERED"]
        assert job == {
            "DisplayName": job["DisplayName"], "JobType": "PyTorchJob", "WorkspaceId": WORKSPACE,
            "JobSpecs": [
                {
                    "Type": "Worker", "Image": "python:3.12", "PodCount": 1, "RestartPolicy": "Never",
                    "EcsSpec": INSTANCE,
                }
            ],
        }  # fmt: skip

    def test_several_nodes_are_a_master_and_workers(self, home: Home, backend: Backend) -> None:
        shown = backend.render(trial_of(home, "", resources=Resources(nodes=3)), Placement()).files["request.txt"]
        job = json.loads(shown.partition("\n\n")[2])
        assert [(spec["Type"], spec["PodCount"], spec["EcsSpec"]) for spec in job["JobSpecs"]] == [
            ("Master", 1, INSTANCE), ("Worker", 2, INSTANCE),
        ]  # fmt: skip
        own = f"{self.mounted}/jupyter-autotrain/jobs/{job['DisplayName']}"
        claim, _, command = job["UserCommand"].partition("; fi && ")
        assert claim == (
            f'if [ $RANK = 0 ]; then mkdir {own}/begun && echo "$MASTER_ADDR" >{own}/begun/job; '
            f'else until [ -s {own}/begun/job ]; do sleep 1; done; [ "$(cat {own}/begun/job)" = "$MASTER_ADDR" ]'
        )
        assert command.endswith(f" /tmp/{job['DisplayName']}-$RANK {own} >{own}/node-$RANK/log 2>&1")

    def test_several_nodes_of_a_tensorflow_job_are_workers_that_read_tf_config(self, home: Home) -> None:
        profile = Profile("lab", self.kind, {**self.options(), "job_type": "TFJob"})
        backend = DlcBackend(profile, BackendContext(home))
        shown = backend.render(trial_of(home, "", resources=Resources(nodes=3)), Placement()).files["request.txt"]
        job = json.loads(shown.partition("\n\n")[2])
        assert [(spec["Type"], spec["PodCount"]) for spec in job["JobSpecs"]] == [("Worker", 3)]
        told, _, rest = job["UserCommand"].partition(" && if ")
        assert rest.startswith("[ $RANK = 0 ]; then mkdir ")
        hosts = [f"dlc1-worker-{node}.t16.svc:2222" for node in range(3)]
        config = {"cluster": {"worker": hosts}, "task": {"type": "worker", "index": 2}, "environment": "cloud"}
        shell = ["sh", "-c", f'{told} && echo "$RANK $MASTER_ADDR"']
        seen = subprocess.run(shell, env={"TF_CONFIG": json.dumps(config)}, check=True, capture_output=True)
        assert seen.stdout == b"2 dlc1-worker-0.t16.svc\n"

    def test_the_job_of_a_quota_asks_for_what_its_trial_needs(self, home: Home, backend: DlcBackend) -> None:
        options: JsonObject = {
            "quota": "quota1", "priority": 7, "gpu_type": "V100", "shared_memory": 3 << 30,
            "data_sources": [{"id": "d-1", "mount_path": "/mnt/nas"}, {"uri": "oss://b.e/f/"}],
        }  # fmt: skip
        trial = trial_of(home, "", options=options, resources=Resources(cpus=1.5, gpus=2, memory_bytes=5 << 29))
        job = json.loads(backend.render(trial, Placement()).files["request.txt"].partition("\n\n")[2])
        assert job["JobSpecs"][0]["ResourceConfig"] == {
            "CPU": "1.5", "Memory": "3Gi", "GPU": "2", "GPUType": "V100", "SharedMemory": "3Gi",
        }  # fmt: skip
        assert "EcsSpec" not in job["JobSpecs"][0]
        assert job["DataSources"] == [{"DataSourceId": "d-1", "MountPath": "/mnt/nas"}, {"Uri": "oss://b.e/f/"}]
        assert (job["ResourceId"], job["Priority"]) == ("quota1", 7)

    def test_a_missing_sdk_gives_the_line_that_installs_it(
        self, backend: Backend, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "alibabacloud_pai_dlc20201203", None)
        (step,) = backend.check_steps()
        assert (step.name, step.is_good) == ("access", False)
        assert "pip install 'jupyter-autotrain[dlc]'" in step.action


@with_sdk
class TestRequests(OnDlc):
    """Requests to PAI-DLC, and what is made of its answers."""

    def test_the_sdk_knows_every_field_of_a_job(self, backend: DlcBackend, home: Home) -> None:
        from alibabacloud_pai_dlc20201203.models import CreateJobRequest

        options: JsonObject = {"quota": "q", "priority": 1, "gpu_type": "V100", "data_sources": [{"id": "d-1"}]}
        trial = trial_of(home, "", options=options, resources=Resources(gpus=1))
        job = json.loads(backend.render(trial, Placement()).files["request.txt"].partition("\n\n")[2])
        made = CreateJobRequest().from_map(job).to_map()
        (spec,) = made["JobSpecs"]
        assert job == {**_without_empty(made), "JobSpecs": [_without_empty(spec)]}

    @pytest.mark.long  # by default one goes to a double of OpenPAI
    def test_a_search_from_a_cell_goes_there_and_a_killed_manager_loses_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with self.notebook(tmp_path, monkeypatch) as made:
            search_with_a_killed_manager(made, tmp_path)
        assert len(self.double.runner.started) == 2

    def test_of_two_jobs_of_one_trial_one_runs_it_and_both_are_stopped(self, backend: Backend, home: Home) -> None:
        trial = trial_of(home, WAITS)
        ref = backend.submit(trial, Placement(), {})
        self.begun(backend, ref)
        self.double.hides_new = True
        self.make(BackendContext(home)).submit(trial, Placement(), {})
        self.double.hides_new = False
        second = self.double.ids(str(ref.data["name"]))[1]
        wait_until(lambda: self.double.status(second)[0] == "Failed", "the end of the second job")
        assert self.status(backend, ref).state is TrialState.RUNNING
        self.double.words[second] = ("Queuing", "", "")
        backend.cancel(ref, 5.0)
        status = self.finish(backend, ref)
        assert status.state is TrialState.CANCELLED
        assert self.read(backend, ref, wire.STDOUT) == b"begun\n"

    def test_the_states_of_many_jobs_come_by_pages(self, backend: DlcBackend, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("jupyter_autotrain.backends.services.dlc.service._PAGE", 2)
        self.double.holds = True
        refs = []
        for number in range(5):
            name = f"autotrain-{number}"
            self.double.asked_jobs[f"dlc{number}"] = {"DisplayName": name}
            refs.append(JobRef("lab", name, {"name": name}))
        found = backend._service.states([refs[0], refs[4], JobRef("lab", "none", {"name": "autotrain-9"})])
        assert {name: state.state for name, state in found.items()} == {
            "autotrain-0": TrialState.PREPARING, "autotrain-4": TrialState.PREPARING,
        }  # fmt: skip
        assert [asked.query["PageNumber"] for asked in self.double.asked] == ["1", "2", "3", "1"]

    def test_a_job_that_waits_says_for_what_and_can_be_stopped(self, backend: Backend, home: Home) -> None:
        self.double.holds = True
        ref = self.start(backend, home, "")
        told = wait_until(lambda: self.status(backend, ref).reason, "a reason")
        assert told == "waits in PAI-DLC (Queuing): waits for resources"
        backend.cancel(ref, 1.0)
        assert self.finish(backend, ref).state is TrialState.CANCELLED
        (job_id,) = self.double.ids(str(ref.data["name"]))
        assert self.double.status(job_id)[0] == "Stopped"

    def test_a_machine_that_is_taken_away_is_a_preemption(self, backend: Backend, home: Home) -> None:
        ref = self.start(backend, home, WAITS)
        self.begun(backend, ref)
        (job_id,) = self.double.ids(str(ref.data["name"]))
        process = self.double.runner.jobs[job_id].process
        assert process is not None
        process.kill()
        process.wait()
        self.double.words[job_id] = ("Restarting", "SpotReclaimed", "")
        status = self.finish(backend, ref)
        assert status.state is TrialState.PREEMPTED
        assert status.reason.startswith("PAI-DLC has taken its machine away: its job is Restarting.")
        wait_until(lambda: self.double.status(job_id)[0] == "Stopped", "the end of the job")

    def test_pai_dlc_s_own_reason_is_told(self, backend: Backend, home: Home) -> None:
        self.double.holds = True
        ref = self.start(backend, home, "")
        (job_id,) = self.double.ids(str(ref.data["name"]))
        self.double.words[job_id] = ("Failed", "ImagePullBackOff", "python:3.12 cannot be pulled")
        status = self.finish(backend, ref)
        assert status.state is TrialState.FAILED
        assert status.reason == "PAI-DLC ended its job (ImagePullBackOff): python:3.12 cannot be pulled"

    def test_a_service_that_is_not_there_is_told(self, backend: DlcBackend, home: Home) -> None:
        backend._service = backend.connect({**self.options(), "endpoint": "127.0.0.1:1"})
        with pytest.raises(BackendUnavailableError, match="did not answer"):
            backend.submit(trial_of(home, ""), Placement(), {})

    def test_a_check_says_step_by_step_what_to_do(self, backend: DlcBackend) -> None:
        assert [step.name for step in backend.check_steps()] == ["access", "instance", "storage"]
        told = {
            "storage": ({"storage": {"local_path": "/no/such", "mount_path": "/x"}}, "local_path:"),
            "instance": ({"instance": "ecs.none"}, "`instance:`"),
            "access": ({"login_file": "/no/such"}, "put an access key into /no/such"),
        }
        for name, (options, action) in told.items():
            (*_, last) = backend.connect({**self.options(), **options}).check_steps()
            assert (last.name, last.is_good) == (name, False)
            assert action in last.action
            assert KEY not in f"{last}"


def _without_empty(spec: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in spec.items() if value != []}


del BackendContract, OnADouble, ServiceFaults, SeveralNodes

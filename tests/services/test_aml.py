"""The contract of backends on a double of Azure Machine Learning, and its faults."""

from __future__ import annotations

import json
import sys
import time
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.pods import frames, places
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.services.aml.backend import AmlBackend
from jupyter_autotrain.backends.services.aml.login import Token, credential_of
from jupyter_autotrain.backends.services.aml.service import AmlService
from jupyter_autotrain.backends.services.reuse import ReusingService
from jupyter_autotrain.core.backend import Backend, BackendContext, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.errors import MissingExtraError
from jupyter_autotrain.testing import BackendContract, trial_of, wait_until
from tests.labs import aml_double
from tests.labs.aml_double import AmlDouble
from tests.labs.kubernetes.server.certificates import Authority
from tests.labs.service_jobs import JobRunner
from tests.services.notebook import Notebook, notebook
from tests.services.on_a_double import WAITS, OnADouble, ServiceFaults
from tests.services.searches import search_with_a_killed_manager
from tests.services.several_nodes import SeveralNodes


class OnAml(OnADouble):
    """Backends on one double, over HTTPS."""

    backend_type = AmlBackend
    kind = "aml"
    double: AmlDouble

    def make_double(self, runner: JobRunner) -> AmlDouble:
        authority = Authority()
        self.ca_file = self.login.with_name("ca.pem")
        self.ca_file.write_bytes(authority.certificate)
        authority.write_server(self.login.with_name("server.pem"), ["127.0.0.1"])
        return AmlDouble(runner, self.storage, self.login.with_name("server.pem"))

    def options(self) -> JsonObject:
        return {
            "subscription": aml_double.SUBSCRIPTION, "resource_group": aml_double.GROUP, "compute": aml_double.COMPUTE,
            "workspace": aml_double.WORKSPACE, "image": "python:3.12", "python": sys.executable,
            "address": self.double.address, "blob_address": self.double.address, "ca_file": str(self.ca_file),
            "reuse": 0,
        }  # fmt: skip

    def get_token(self, *scopes: str) -> Token:
        """Act as a credential of azure-identity."""
        return Token(self.double.token(scopes[0]), int(time.time()) + 3600)

    def make(self, context: BackendContext) -> Backend:
        backend = super().make(context)
        self.service(backend).login.make = lambda: self.get_token
        self.service(backend)._folder.storage.look_again_s = 0.05
        return backend

    def notebook(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AbstractContextManager[Notebook]:
        return notebook(tmp_path, monkeypatch, {"type": "aml", **self.principal(monkeypatch)})

    def principal(self, monkeypatch: pytest.MonkeyPatch, secret: str = aml_double.SECRET) -> JsonObject:
        """Return options with a file by which azure-identity logs in at the double."""
        pytest.importorskip("azure.identity", reason="needs azure-identity: pip install 'jupyter-autotrain[aml]'")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(self.ca_file))
        file = self.ca_file.with_name("principal.json")
        principal = {"tenantId": aml_double.TENANT, "clientId": aml_double.CLIENT, "clientSecret": secret}
        file.write_text(json.dumps({**principal, "activeDirectoryEndpointUrl": self.double.address}))
        return {**self.options(), "login_file": str(file)}

    def service(self, backend: Backend) -> AmlService:
        assert isinstance(backend, AmlBackend)
        service = backend._service
        if isinstance(service, ReusingService):
            service = service._service
        assert isinstance(service, AmlService)
        return service


@pytest.mark.long
class TestContract(OnAml, BackendContract):
    """All of the contract."""

    def test_a_path_that_is_not_there_is_named_with_its_node(self, backend: Backend) -> None:
        assert backend.missing_paths(["/no/such/place"]) == []  # only a job can look, and its trial says it

    def test_given_gpus_are_the_visible_ones(self, backend: Backend, home: Home) -> None:
        pytest.skip("Azure gives a job its node, and the double has no GPU")


@pytest.mark.long
class TestNodes(OnAml, SeveralNodes):
    """Trials on several nodes."""


@pytest.mark.long
class TestFaults(OnAml, ServiceFaults):
    """Faults of any service."""

    is_expired = False

    def get_token(self, *scopes: str) -> Token:
        found = super().get_token(*scopes)
        return found._replace(token="of-yesterday") if self.is_expired else found

    def expire_login(self) -> None:
        self.is_expired = True
        self.double.expire()

    def renew_login(self) -> None:
        self.is_expired = False


class TestRequests(OnAml):
    """Requests to Azure, and what is made of its refusals."""

    def test_a_trial_goes_there_and_back_and_leaves_nothing_in_the_blob_store(
        self, backend: Backend, home: Home
    ) -> None:
        ref, status = self.run(backend, home, "for step in range(50):\n    report(step=step, loss=step)\nprint('ran')")
        assert (status.state, status.reason) == (TrialState.SUCCEEDED, "")
        assert [step for step, _ in self.points(backend, ref)] == list(range(50))
        assert self.read(backend, ref, wire.STDOUT) == b"ran\n"
        wait_until(lambda: not list(self.storage.glob("jupyter-autotrain/jobs/*")), "an empty folder")

    @pytest.mark.long
    def test_a_search_from_a_cell_goes_there_and_a_killed_manager_loses_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with self.notebook(tmp_path, monkeypatch) as made:
            search_with_a_killed_manager(made, tmp_path)
        assert len(self.double.runner.started) == 2
        kept = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
        assert not [path for path in kept if aml_double.SECRET.encode() in path.read_bytes()]

    def test_azures_own_library_logs_in_by_the_file_of_a_service_principal(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (first, *_, last) = AmlService(self.principal(monkeypatch)).check_steps()
        assert (first.text, last.is_good) == ("vision in westeurope", True), last

    def test_a_wrong_login_says_what_to_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        (last,) = AmlService(self.principal(monkeypatch, "wrong-secret")).check_steps()
        assert not last.is_good
        assert "az login" in last.action
        assert "wrong-secret" not in f"{last}"

    def test_a_file_that_is_none_of_a_service_principal_says_how_to_make_one(self) -> None:
        pytest.importorskip("azure.identity", reason="needs azure-identity: pip install 'jupyter-autotrain[aml]'")
        (last,) = AmlService({**self.options(), "login_file": str(self.ca_file)}).check_steps()
        assert last.action == "Make one: az ad sp create-for-rbac --json-auth"

    def test_a_missing_library_is_named_with_its_pip_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "azure.identity", None)
        with pytest.raises(MissingExtraError, match=r"pip install 'jupyter-autotrain\[aml\]'"):
            credential_of("")

    def test_several_nodes_are_instances_of_pytorch_s_distribution(self, backend: AmlBackend, home: Home) -> None:
        shown = backend.render(trial_of(home, "", resources=Resources(nodes=2)), Placement()).files["requests.txt"]
        job = json.loads(shown.rpartition("\n\n")[2])["properties"]
        assert job["resources"] == {"instanceCount": 2}
        assert job["distribution"] == {"distributionType": "PyTorch", "processCountPerInstance": 1}

    def test_the_requests_are_what_the_golden_ones_are(self, backend: AmlBackend, home: Home) -> None:
        trial = trial_of(home, "", resources=Resources(gpus=2))
        trial = replace(trial, options={"instance_type": "Standard_NC12", "shared_memory": 2 << 30})
        shown = backend.render(trial, Placement()).files["requests.txt"]
        assert self.double.asked == []
        environment, job = shown.split("PUT ")[1:]
        scope = self.service(backend)._workspace.path
        assert environment.startswith(f"{self.double.address}{scope}/environments/autotrain-")
        assert "?api-version=2024-10-01\nAuthorization: ***\nContent-Type: application/json\n\n" in environment
        body = json.loads(job.partition("\n\n")[2])["properties"]
        name = job.partition("/jobs/")[2].partition("?")[0]
        root = "${{outputs.autotrain}}"
        command = body.pop("command")
        assert command.startswith(f"exec {sys.executable} -I -S -u {root}/packages/")
        assert command.endswith(f"/agent.zip /tmp/{name} {root}/jobs/{name}")
        assert body.pop("environmentId").startswith(f"{scope}/environments/autotrain-")
        assert json.loads(body["environmentVariables"].pop("AUTOTRAIN_POD"))["nodes"] == 1
        assert body == {
            "computeId": f"{scope}/computes/cluster", "displayName": "e1-1-1", "experimentName": "jupyter-autotrain",
            "environmentVariables": {
                "CUDA_VISIBLE_DEVICES": "0,1", "DATASET_MOUNT_ATTRIBUTE_CACHE_TTL": "1000", "PYTHONUNBUFFERED": "1",
            },
            "jobType": "Command",
            "outputs": {"autotrain": {
                "jobOutputType": "uri_folder", "mode": "ReadWriteMount",
                "uri": "azureml://datastores/workspaceblobstore/paths/jupyter-autotrain/",
            }},
            "resources": {"instanceCount": 1, "instanceType": "Standard_NC12", "shmSize": "2048m"},
            "tags": {"jupyter_autotrain": "e1-1-1"},
        }  # fmt: skip

    def test_an_expired_token_and_an_expired_log_address_are_fetched_anew(self, backend: Backend, home: Home) -> None:
        ref = self.start(backend, home, WAITS)
        self.begun(backend, ref)
        self.double.expire()
        backend.put(ref, wire.STOP_FILE, b"")
        assert self.finish(backend, ref).state is TrialState.EARLY_STOPPED
        assert self.double.issued == 2

    def test_a_cancel_ends_the_job_and_proves_it(self, backend: Backend, home: Home) -> None:
        ref = self.start(backend, home, WAITS)
        self.begun(backend, ref)
        backend.cancel(ref, 5.0)
        assert self.status(backend, ref).state is TrialState.CANCELLED
        job = self.double.runner.jobs[str(ref.data["name"])]
        assert job.process is not None
        assert job.process.wait(60) is not None

    def test_a_job_that_fails_before_its_trial_tells_azures_own_reason(self, backend: AmlBackend, home: Home) -> None:
        self.double.runner.start("gone", "exit 1", {})
        ref = JobRef("azure", "e1-1-1", {"name": "gone"})
        state = wait_until(lambda: self._final(backend, ref), "the end of the job")
        assert state == "Azure says of its job: Execution failed. User process 'python3' exited with status code 1."

    def _final(self, backend: AmlBackend, ref: JobRef) -> str:
        state = self.service(backend).states([ref])["gone"]
        return state.reason if state.state.is_final else ""

    def test_each_trial_of_a_long_job_is_read_from_where_it_begins_in_the_log(self, backend: AmlBackend) -> None:
        self.double.runner.start("pilot", "exec sleep 1000", {})
        log = self.service(backend)._workspace.log("pilot", 0)
        texts = {}
        for trial in ("first", "second"):
            assert log.read(trial, is_whole=False) == ""
            mark = "".join(frames.encode(places.JOB, 0, trial.encode()))
            texts[trial] = "".join(frames.encode(wire.STDOUT, 0, trial.encode() * 50_000))
            with self.double.runner.jobs["pilot"].log_file(0).open("a") as file:
                file.write(mark + texts[trial])
            before = self.double.log_bytes
            assert log.read(trial, is_whole=True) == texts[trial]
            assert self.double.log_bytes - before == len(mark + texts[trial])
        assert log.read("first", is_whole=True) == texts["first"]
        assert log.read("second", is_whole=False) in texts["second"]
        assert self.double.log_bytes < 2.2 * sum(map(len, texts.values()))

    def test_the_states_of_many_jobs_come_by_pages(self, backend: AmlBackend) -> None:
        self.double.page = 2
        for number in range(5):
            self.double.runner.start(f"job-{number}", "exec sleep 1000", {})
        refs = [JobRef("azure", name, {"name": name}) for name in ("job-0", "job-3", "job-9")]
        found = self.service(backend).states(refs)
        assert {name: state.state for name, state in found.items()} == {
            "job-0": TrialState.RUNNING, "job-3": TrialState.RUNNING,
        }  # fmt: skip
        assert len([asked for asked in self.double.asked if asked.path.endswith("/jobs")]) == 3

    @pytest.mark.parametrize("secrets_type", ["Sas", "AccountKey", "None"])
    def test_a_check_writes_into_the_blob_store_however_that_is_opened(
        self, backend: AmlBackend, secrets_type: str
    ) -> None:
        self.double.secrets_type = secrets_type
        steps = list(backend.check_steps())
        assert [(step.name, step.is_good) for step in steps] == [
            ("workspace", True), ("compute", True), ("storage", True)
        ], steps  # fmt: skip
        assert not list(self.storage.rglob("*"))
        assert aml_double.KEY not in f"{steps}"

    def test_a_check_says_step_by_step_what_to_do(self, home: Home) -> None:
        service = AmlService({**self.options(), "compute": "none"})
        service.login.make = lambda: self.get_token
        (*_, last) = service.check_steps()
        assert (last.text, last.action) == ("there is no compute none", "Correct `compute:` of the profile.")
        service = AmlService({**self.options(), "workspace": "none"})
        service.login.make = lambda: self.get_token
        (last,) = service.check_steps()
        assert (last.name, last.is_good) == ("workspace", False)


del BackendContract, OnADouble, ServiceFaults, SeveralNodes

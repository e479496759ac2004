"""Azure Machine Learning as a `Service`: a trial is a command job, its package lies in the workspace's blob store.

On several nodes it is a job of PyTorch's distribution with one process on each.

Azure Resource Manager starts, lists and cancels jobs; the workspace's run history says where their logs lie, and why
they failed. Jobs have the blob store's folder mounted, by which requests reach them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, cast
from urllib.parse import urlsplit

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.services import http_client
from jupyter_autotrain.backends.services.aml.blobs import BlobStorage
from jupyter_autotrain.backends.services.aml.login import Login, credential_of
from jupyter_autotrain.backends.services.aml.workspace import API_VERSION, Workspace
from jupyter_autotrain.backends.services.http_client import RefusedError, Request
from jupyter_autotrain.backends.services.package import TrialPackage
from jupyter_autotrain.backends.services.service import ServiceState
from jupyter_autotrain.backends.services.shared_folder import ROOT, FolderService, SharedFolder
from jupyter_autotrain.core.backend import JobRef, Submission
from jupyter_autotrain.core.backend_check import CheckStep, StepTimer
from jupyter_autotrain.core.capabilities import Capabilities
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.spec import Placement

MOST_PILOTS: Final = 100  # in effect one for each trial that runs at once
_OUTPUT = "autotrain"
_TAG = "jupyter_autotrain"
_WAITING = frozenset({"NotStarted", "Starting", "Provisioning", "Preparing", "Queued", "Paused"})
_ENDS: Final = {
    "Completed": TrialState.SUCCEEDED, "Failed": TrialState.FAILED, "Canceled": TrialState.CANCELLED,
}  # fmt: skip


class AmlService(FolderService):
    """A workspace.

    Args:
        options: Of the profile.
    """

    capabilities = Capabilities(
        multi_node=True, multi_worker=True, gpu_slots=True, limits_memory=True, secrets=True, queues=True
    )
    node_variables: Mapping[str, str] = MappingProxyType(
        {"rank": "NODE_RANK", "first_address": "MASTER_ADDR", "first_port": "MASTER_PORT"}
    )
    pause_s = 5.0
    settle_s = 30.0
    keeps_whole_log = True

    def __init__(self, options: JsonObject) -> None:
        self._options = options
        self.login = Login(lambda: credential_of(str(options.get("login_file") or "")))
        self._workspace = Workspace(options, self.login)
        # Azure puts the path in the job in place of the braces.
        super().__init__(SharedFolder(BlobStorage(self._workspace.container), f"${{{{outputs.{_OUTPUT}}}}}"))

    def _steps(self, timer: StepTimer) -> Iterator[CheckStep]:
        timer.begin("workspace")
        found = self._workspace.get("")
        yield timer.done(f"{found.get('name')} in {found.get('location')}")
        timer.begin("compute")
        name = self._options.get("compute")
        if self._workspace.find(f"/computes/{name}") is None:
            yield timer.failed(f"there is no compute {name}", "Correct `compute:` of the profile.")
        yield timer.done(str(name))

    def discover(self) -> Inventory:
        """Return the compute, as one node: Azure places by itself."""
        return Inventory((Node(str(self._options.get("compute"))),), limits="memory is kept by the trial's supervisor")

    def _requests(self, package: TrialPackage) -> list[Request]:
        """Return the requests of a submit: the image as an environment, then the job."""
        name = f"autotrain-{hashlib.sha256(package.image.encode()).hexdigest()[:20]}"
        environment = f"/environments/{name}/versions/1"
        job = self._job(package, f"{self._workspace.path}{environment}")
        return [
            self._workspace.request("PUT", environment, {"properties": {"image": package.image}}),
            self._workspace.request("PUT", f"/jobs/{package.name}", {"properties": job}),
        ]

    def _job(self, package: TrialPackage, environment: str) -> JsonObject:
        options = package.options
        variables = {
            **package.job_variables,
            "DATASET_MOUNT_ATTRIBUTE_CACHE_TTL": "1000",  # ms; else files never change
        }
        if gpus := package.trial.resources.gpus:
            variables["CUDA_VISIBLE_DEVICES"] = ",".join(str(index) for index in range(gpus))
        resources: dict[str, JsonValue] = {"instanceCount": package.nodes}
        if kind := options.get("instance_type"):
            resources["instanceType"] = kind
        if shared := options.get("shared_memory"):
            resources["shmSize"] = f"{-(-int(cast('int', shared)) // (1 << 20))}m"
        job: dict[str, JsonValue] = {
            "jobType": "Command", "displayName": package.trial.job_id, "tags": {_TAG: package.trial.job_id},
            "experimentName": options.get("experiment_name") or "jupyter-autotrain",
            "computeId": f"{self._workspace.path}/computes/{options.get('compute')}",
            "environmentId": environment, "environmentVariables": variables,
            "command": self._folder.command(package, package.run_folder(self.node_variables)),
            "outputs": {_OUTPUT: {
                "jobOutputType": "uri_folder", "mode": "ReadWriteMount",
                "uri": f"azureml://datastores/{self._workspace.datastore}/paths/{ROOT}/",
            }},
            "resources": resources,
        }  # fmt: skip
        if package.nodes > 1:
            job["distribution"] = {"distributionType": "PyTorch", "processCountPerInstance": 1}
        return job

    def render(self, package: TrialPackage, placement: Placement) -> Submission:  # noqa: ARG002 - Azure places
        """Return the requests of a submit, and what lies in the blob store for it."""
        text = http_client.as_text(self._requests(package), self._workspace.address, {"Authorization": ""})
        return Submission(
            argv=("az", "ml", "job", "create", "--name", package.name),
            files={"requests.txt": text, "trial.json": package.trial_text},
        )

    def submit(self, package: TrialPackage, placement: Placement, secrets: Mapping[str, str]) -> None:  # noqa: ARG002 - as above
        """Put the package into the blob store, and start the job; one of its name that is there is the same one."""
        if self._workspace.find(f"/jobs/{package.name}") is not None:
            return
        self._folder.put(package, secrets)
        for request in self._requests(package):
            try:
                self._workspace.send(request)
            except RefusedError as error:
                if error.code != http_client.CONFLICT:  # else it is there already
                    raise

    def states(self, refs: Sequence[JobRef]) -> Mapping[str, ServiceState]:
        """Return the states of jobs: of several by a list, whose newest ones come first; else one by one."""
        names = [str(ref.data["name"]) for ref in refs]
        rows = self._listed(set(names)) if len(names) > 1 else {}
        found = {}
        for name in names:
            row = rows.get(name) or self._workspace.find(f"/jobs/{name}")
            if row is not None:
                found[name] = self._state(name, str(cast("JsonObject", row["properties"])["status"]))
        return found

    def _listed(self, wanted: set[str]) -> dict[str, JsonObject]:
        found: dict[str, JsonObject] = {}
        target = f"{self._workspace.path}/jobs?api-version={API_VERSION}&jobType=Command&tag={_TAG}"
        while target and len(found) < len(wanted):
            page = self._workspace.send(Request("GET", target))
            for row in cast("list[JsonObject]", page["value"]):
                if row["name"] in wanted:
                    found[str(row["name"])] = row
            following = urlsplit(str(page.get("nextLink") or ""))
            target = f"{following.path}?{following.query}" if following.query else ""
        return found

    def _state(self, name: str, word: str) -> ServiceState:
        if word in _WAITING:
            return ServiceState(TrialState.PREPARING, f"waits in Azure for {self._options.get('compute')} ({word})")
        state = _ENDS.get(word, TrialState.RUNNING)
        if state is TrialState.CANCELLED:
            return ServiceState(state, "Somebody has cancelled its job in Azure.")
        return ServiceState(state, self._why(name) if state is TrialState.FAILED else "")

    def _why(self, name: str) -> str:
        error = cast("JsonObject", self._workspace.run(name).get("error") or {})
        told = str(cast("JsonObject", error.get("error") or {}).get("message") or "").strip()
        return f"Azure says of its job: {told.splitlines()[0][:300]}" if told else ""

    def log(self, ref: JobRef, state: ServiceState, lines: int | None, node: int) -> str:  # noqa: ARG002 - by its name
        """Return what is new of the log, and some before it; all of it, for None."""
        trial = str(ref.data.get("trial") or "")
        return self._workspace.log(str(ref.data["name"]), node).read(trial, is_whole=lines is None)

    def _end(self, ref: JobRef, state: ServiceState) -> None:  # noqa: ARG002 - as above
        path = f"/jobs/{ref.data['name']}"
        try:
            self._workspace.send(self._workspace.request("POST", f"{path}/cancel", {}))
        except RefusedError:
            job = self._workspace.find(path)
            if job is not None and cast("JsonObject", job["properties"])["status"] not in _ENDS:
                raise

    def release(self, ref: JobRef, *, waits: bool) -> None:
        """Remove the folder of the trial from the blob store."""
        self._workspace.forget_log(str(ref.data["name"]))
        super().release(ref, waits=waits)

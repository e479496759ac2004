"""PAI-DLC as a `Service`: a trial is a job of a worker for each node, its package and logs lie in a mounted storage.

Names of jobs are not unique there. A job claims its trial in the storage before it begins it, so of two jobs that were
made for one trial, as after a submit whose answer was lost, the second one ends at once.
"""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.services import http_client
from jupyter_autotrain.backends.services.dlc.client import DlcClient
from jupyter_autotrain.backends.services.http_client import Request
from jupyter_autotrain.backends.services.mounted_folder import MountedFolder
from jupyter_autotrain.backends.services.package import TrialPackage
from jupyter_autotrain.backends.services.service import ServiceState
from jupyter_autotrain.backends.services.shared_folder import FolderService
from jupyter_autotrain.core.backend import JobRef, Submission
from jupyter_autotrain.core.backend_check import CheckStep, StepTimer
from jupyter_autotrain.core.capabilities import Capabilities
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.spec import Placement

_OWN = "autotrain-"
_TENSORFLOW = "TFJob"
_READ_TF_CONFIG = (  # in one line: what a PyTorchJob has in its variables
    'import json, os; told = json.loads(os.environ["TF_CONFIG"]); first = told["cluster"]["worker"][0]; '
    'print("RANK=%d MASTER_ADDR=%s" % (told["task"]["index"], first.rpartition(":")[0]))'
)
_PAGE = 100
_SINCE = "2020-01-01T00:00:00Z"  # else it tells of the jobs of a week alone
_CPUS = 1
_MEMORY = 4 << 30
_STATES: Final = {
    "Creating": TrialState.PREPARING, "Queuing": TrialState.PREPARING, "Bidding": TrialState.PREPARING,
    "EnvPreparing": TrialState.PREPARING, "SanityChecking": TrialState.PREPARING, "Running": TrialState.RUNNING,
    "Stopping": TrialState.RUNNING, "Restarting": TrialState.PREPARING, "SucceededReserving": TrialState.SUCCEEDED,
    "Succeeded": TrialState.SUCCEEDED, "FailedReserving": TrialState.FAILED, "Failed": TrialState.FAILED,
    "Stopped": TrialState.CANCELLED,
}  # fmt: skip
_BEFORE = (TrialState.RUNNING, TrialState.PREPARING, TrialState.SUCCEEDED, TrialState.CANCELLED, TrialState.FAILED)
_BEGUN = (TrialState.RUNNING, TrialState.SUCCEEDED, TrialState.CANCELLED, TrialState.FAILED, TrialState.PREPARING)


class DlcService(FolderService):
    """A workspace of PAI-DLC.

    Args:
        options: Of the profile.
    """

    node_variables: Mapping[str, str] = MappingProxyType(
        {"rank": "RANK", "first_address": "MASTER_ADDR", "first_port": "MASTER_PORT"}
    )
    capabilities = Capabilities(
        multi_node=True, multi_worker=True, gpu_slots=True, limits_cpu=True, limits_memory=True, secrets=True,
        queues=True,
    )  # fmt: skip
    pause_s = 5.0  # PAI-DLC wants to be asked seldom
    settle_s = 30.0  # a new job may be missing in lists for a while
    keeps_whole_log = True
    _folder: MountedFolder

    def __init__(self, options: JsonObject) -> None:
        self._options = options
        self._job_type = str(options.get("job_type") or "PyTorchJob")
        super().__init__(MountedFolder(cast("JsonObject", options.get("storage") or {})))
        self._workspace = str(options.get("workspace") or "")
        region = str(options.get("region") or "")
        endpoint = str(options.get("endpoint") or f"pai-dlc.{region}.aliyuncs.com")
        self._client = DlcClient(
            region, endpoint, str(options.get("login_file") or ""), str(options.get("ca_file") or "")
        )

    def _steps(self, timer: StepTimer) -> Iterator[CheckStep]:
        timer.begin("access")
        self._page(_OWN, 1)
        yield timer.done(f"PAI-DLC answers at {self._client.address}, and the key may list jobs of {self._workspace}")
        if instance := self._options.get("instance"):
            timer.begin("instance")
            content: JsonObject = {"InstanceTypes": instance, "PageSize": _PAGE}
            answer = self._client.call("list_ecs_specs", content=content)
            found = cast("list[JsonObject]", answer.get("EcsSpecs") or [])
            if instance not in {str(row.get("InstanceType")) for row in found}:
                yield timer.failed(f"there is no {instance} in this region", "Correct `instance:` of the profile.")
            yield timer.done(str(instance))

    def discover(self) -> Inventory:
        """Return the workspace, as one node: PAI-DLC places by itself."""
        return Inventory((Node(self._workspace),), limits="by PAI-DLC's containers")

    def _job(self, package: TrialPackage) -> JsonObject:
        """Return the job, as CreateJob takes it."""
        options = package.options
        worker: dict[str, JsonValue] = {
            "Type": "Worker", "Image": package.image, "PodCount": package.nodes, "RestartPolicy": "Never",
        }  # fmt: skip
        if options.get("quota") or not options.get("instance"):
            worker["ResourceConfig"] = _resources(package)
        else:
            worker["EcsSpec"] = options["instance"]
        workers: list[JsonValue] = [worker]
        if package.nodes > 1 and self._job_type != _TENSORFLOW:
            workers = [{**worker, "Type": "Master", "PodCount": 1}, {**worker, "PodCount": package.nodes - 1}]
        job: dict[str, JsonValue] = {
            "DisplayName": package.name, "JobType": self._job_type, "JobSpecs": workers,
            "WorkspaceId": self._workspace, "Envs": dict(package.job_variables),
            "UserCommand": self._command(package),
        }  # fmt: skip
        sources = cast("Sequence[JsonObject]", options.get("data_sources") or ())
        if sources:
            job["DataSources"] = [_data_source(source) for source in sources]
        if options.get("quota"):
            job["ResourceId"] = options["quota"]
        if options.get("priority"):
            job["Priority"] = options["priority"]
        return job

    def _command(self, package: TrialPackage) -> str:
        command = self._folder.recorded_command(package, self.node_variables)
        if package.nodes == 1 or self._job_type != _TENSORFLOW:
            return command
        return f"node=$({package.python} -c {shlex.quote(_READ_TF_CONFIG)}) && export $node && {command}"

    def render(self, package: TrialPackage, placement: Placement) -> Submission:  # noqa: ARG002 - PAI-DLC places
        """Return the call of a submit, and what lies in the storage for it."""
        request = Request("POST", "/api/v1/jobs", body=json.dumps(self._job(package)).encode())
        text = http_client.as_text([request], self._client.address, ("Authorization",))
        return Submission(
            argv=("aliyun", "pai-dlc", "POST", "/api/v1/jobs"),
            files={"request.txt": text, "trial.json": package.trial_text},
        )

    def submit(self, package: TrialPackage, placement: Placement, secrets: Mapping[str, str]) -> None:  # noqa: ARG002 - as above
        """Put the package into the storage, and make the job."""
        if self._page(package.name, 1):
            return
        self._folder.put(package, secrets)
        self._client.call("create_job", content=self._job(package))

    def _page(self, name: str, number: int) -> list[JsonObject]:
        """Return a page of the jobs whose name has a text in it, the newest ones first."""
        content: JsonObject = {
            "WorkspaceId": self._workspace, "DisplayName": name, "ShowOwn": True, "StartTime": _SINCE,
            "SortBy": "GmtCreateTime", "Order": "desc", "PageNumber": number, "PageSize": _PAGE,
        }  # fmt: skip
        return list(cast("Sequence[JsonObject]", self._client.call("list_jobs", content=content).get("Jobs") or ()))

    def _listed(self, wanted: set[str]) -> dict[str, list[JsonObject]]:
        """Return the jobs of these names, by pages until all names were seen."""
        found: dict[str, list[JsonObject]] = {}
        for number in itertools.count(1):
            page = self._page(_OWN, number)
            for row in page:
                if row["DisplayName"] in wanted:
                    found.setdefault(str(row["DisplayName"]), []).append(row)
            if len(page) < _PAGE or len(found) == len(wanted):
                break
        return found

    def states(self, refs: Sequence[JobRef]) -> Mapping[str, ServiceState]:
        """Return the states by a list; of jobs that it lacks, or whose other job may be older, by their names."""
        names = [str(ref.data["name"]) for ref in refs]
        rows = self._listed(set(names))
        found = {}
        for name in names:
            own = rows.get(name, [])
            if all(_word_state(row).is_final for row in own):
                own = [row for row in self._page(name, 1) if row["DisplayName"] == name]
            if own:
                found[name] = self._state(name, own)
        return found

    def _state(self, name: str, rows: Sequence[JsonObject]) -> ServiceState:
        """Return the state of a trial by its jobs, which are several after a lost answer."""
        has_begun = self._folder.has_begun(name)
        order = _BEGUN if has_begun else _BEFORE
        row = min(rows, key=lambda one: order.index(_word_state(one)))
        state = _word_state(row)
        waiting = [str(one["JobId"]) for one in rows if not _word_state(one).is_final]
        where: JsonObject = {"jobs": waiting}
        word = str(row["Status"])
        told = str(row.get("ReasonMessage") or "").strip()
        if state is TrialState.PREPARING and has_begun and word in {"Queuing", "Restarting"}:
            return ServiceState(TrialState.PREEMPTED, f"PAI-DLC has taken its machine away: its job is {word}.", where)
        if state is TrialState.PREPARING:
            return ServiceState(state, f"waits in PAI-DLC ({word}){f': {told}' if told else ''}", where)
        if state is TrialState.CANCELLED:
            return ServiceState(state, "Somebody has stopped its job in PAI-DLC.", where)
        if state is TrialState.FAILED:
            code = str(row.get("ReasonCode") or "no reason code")
            return ServiceState(state, f"PAI-DLC ended its job ({code}): {told or 'it does not say why'}", where)
        return ServiceState(state, "", where)

    def log(self, ref: JobRef, state: ServiceState, lines: int | None, node: int) -> str:  # noqa: ARG002 - by its name
        """Return the log, from the storage."""
        return self._folder.log(ref, lines, node)

    def _end(self, ref: JobRef, state: ServiceState) -> None:  # noqa: ARG002 - by the ids of its jobs
        for job_id in cast("Sequence[str]", (state.where or {}).get("jobs") or ()):
            with http_client.unless_gone():
                self._client.call("stop_job", job_id)


def _word_state(row: JsonObject) -> TrialState:
    return _STATES.get(str(row.get("Status")), TrialState.RUNNING)


def _resources(package: TrialPackage) -> JsonObject:
    """Return what a worker gets of a quota, in which all numbers are text."""
    resources = package.trial.resources
    found: dict[str, JsonValue] = {
        "CPU": f"{resources.cpus or _CPUS:g}", "Memory": _gib(resources.memory_bytes or _MEMORY),
    }  # fmt: skip
    if resources.gpus:
        found["GPU"] = str(resources.gpus)
        if gpu_type := package.options.get("gpu_type"):
            found["GPUType"] = gpu_type
    if shared := package.options.get("shared_memory"):
        found["SharedMemory"] = _gib(int(cast("int", shared)))
    return found


def _gib(size_bytes: int) -> str:
    return f"{-(-size_bytes // (1 << 30))}Gi"


def _data_source(source: JsonObject) -> JsonObject:
    names = {"DataSourceId": "id", "Uri": "uri", "MountPath": "mount_path"}
    return {name: source[key] for name, key in names.items() if source.get(key)}

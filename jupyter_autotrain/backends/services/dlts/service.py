"""The REST interface of a DLTS (DLWorkspace) dashboard as a `Service`: a trial is a job whose id is made here.

On several nodes DLTS runs a job's command beside its workers, which it reaches by SSH, and starts each by that.

DLTS takes an id once, so a submit whose answer was lost starts nothing twice. The log of a job lies in its folder of
the shared storage, as the interface's own one is switched off at many clusters.
"""

from __future__ import annotations

import netrc
import shlex
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, cast
from urllib.parse import quote, urlsplit

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.services import http_client
from jupyter_autotrain.backends.services.http_client import HttpService, Request, json_request
from jupyter_autotrain.backends.services.mounted_folder import MountedFolder
from jupyter_autotrain.backends.services.package import TrialPackage
from jupyter_autotrain.backends.services.service import ServiceState
from jupyter_autotrain.backends.services.shared_folder import FolderService
from jupyter_autotrain.core.backend import JobRef, Submission
from jupyter_autotrain.core.backend_check import CheckStep, StepTimer
from jupyter_autotrain.core.capabilities import Capabilities
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.errors import BackendError

LOGIN_FILE: Final = "~/.netrc"
_CREDENTIALS = ("email", "password")
_NODE = "AUTOTRAIN_NODE"
_IDS = uuid.UUID("6f0a4f0e-6a0c-5d53-9d5a-0d8b6b7f3c1e")
_LIMIT = 200  # of ended jobs in a list, which has all others
_STATES: Final = {
    "unapproved": TrialState.PREPARING, "queued": TrialState.PREPARING, "scheduling": TrialState.PREPARING,
    "running": TrialState.RUNNING, "pausing": TrialState.RUNNING, "killing": TrialState.RUNNING,
    "paused": TrialState.PREPARING, "finished": TrialState.SUCCEEDED, "failed": TrialState.FAILED,
    "error": TrialState.FAILED, "killed": TrialState.CANCELLED,
}  # fmt: skip


class DltsService(FolderService):
    """A cluster of DLTS.

    Args:
        options: Of the profile.
    """

    capabilities = Capabilities(
        multi_node=True, multi_worker=True, gpu_slots=True, limits_cpu=True, limits_memory=True, secrets=True,
        queues=True,
    )  # fmt: skip
    node_variables: Mapping[str, str] = MappingProxyType(
        {"rank": _NODE, "first_address": places.FIRST_ADDRESS_VARIABLE}
    )
    pause_s = 2.0
    settle_s = 10.0
    keeps_whole_log = True
    _folder: MountedFolder

    def __init__(self, options: JsonObject) -> None:
        self._login_file = Path(str(options.get("login_file") or LOGIN_FILE)).expanduser()
        self._team = str(options.get("team") or "")
        self._cluster = str(options.get("cluster") or ".default")
        super().__init__(MountedFolder(cast("JsonObject", options.get("storage") or {})))
        address = str(options.get("address") or "")
        host = urlsplit(address).hostname
        self._http = HttpService(
            "DLTS", address, dict, f"put your e-mail and key of {host} into {self._login_file}",
            str(options.get("ca_file") or ""), self._credentials,
        )  # fmt: skip

    def _credentials(self) -> dict[str, str]:
        """Return the parameters that say who asks; none where the file has no line for the dashboard."""
        try:
            found = netrc.netrc(str(self._login_file)).authenticators(urlsplit(self._http.address).hostname or "")
        except (OSError, netrc.NetrcParseError):
            return {}
        return dict(zip(_CREDENTIALS, (found[0], found[2] or ""), strict=True)) if found else {}

    def _steps(self, timer: StepTimer) -> Iterator[CheckStep]:
        timer.begin("address")
        self._http.call(Request("GET", "/api/v2/"))
        yield timer.done(f"DLTS answers at {self._http.address}")
        timer.begin("login")
        teams = cast("list[JsonObject]", self._http.json(Request("GET", "/api/teams")))
        yield timer.done(f"the key is valid, and has {len(teams)} teams")
        timer.begin("team")
        found = {str(team["id"]): cast("list[JsonObject]", team["clusters"]) for team in teams}
        clusters = {str(cluster["id"]) for cluster in found.get(self._team, ())}
        if not clusters or self._cluster not in {".default", *clusters}:
            known = ", ".join(sorted(found)) or "none"
            told = f"team {self._team} is not at cluster {self._cluster}; your teams are: {known}"
            yield timer.failed(told, "Correct `team:` and `cluster:` of the profile.")
        yield timer.done(f"{self._team} at {', '.join(sorted(clusters))}")

    def discover(self) -> Inventory:
        """Return the team, as one node: DLTS places by itself."""
        return Inventory((Node(self._team),), limits="by DLTS's containers")

    def _job(self, package: TrialPackage) -> JsonObject:
        """Return the job, as the dashboard takes it."""
        resources = package.trial.resources
        job: dict[str, JsonValue] = {
            "team": self._team, "vcName": self._team, "jobId": _id(package.name), "jobName": package.name,
            "jobType": "training", "jobtrainingtype": "RegularJob", "image": package.image,
            "cmd": self._command(package), "resourcegpu": resources.gpus,
            "preemptionAllowed": str(bool(package.options.get("preemptible"))),
            "workPath": "", "enableworkpath": True, "jobPath": "", "enablejobpath": True, "dataPath": "",
            "enabledatapath": False, "mountpoints": [], "env": [], "interactivePorts": [], "ssh": False,
            "ipython": False, "tensorboard": False, "hostNetwork": False, "hostIPC": False, "isPrivileged": False,
            "useGPUTopology": False,
        }  # fmt: skip
        if package.nodes > 1:
            job |= {"jobtrainingtype": "PSDistJob", "numps": 1, "numpsworker": package.nodes}
        if gpu_type := package.options.get("gpu_type"):
            job["gpuType"] = gpu_type
        if resources.cpus:
            job["cpurequest"] = f"{round(resources.cpus * 1000)}m"
        if resources.memory_bytes:
            job["memoryrequest"] = f"{-(-resources.memory_bytes // (1 << 20))}Mi"
        return job

    def _command(self, package: TrialPackage) -> str:
        """Return the command of a job, in one line."""
        if package.nodes == 1:
            return "; ".join([*package.exports, self._folder.recorded_command(package, self.node_variables)])
        names = " ".join(map(str, range(package.nodes)))
        own = "; ".join([*package.exports, self._folder.logged_command(package, self.node_variables)])
        told = f"export {_NODE}=$node {places.FIRST_ADDRESS_VARIABLE}=$first;"
        return (
            f"{self._folder.claim(package)} || exit 1; first=$(ssh -G worker-0 | sed -n 's/^hostname //p'); "
            f'for node in {names}; do ssh -n worker-$node "{told}" {shlex.quote(own)} & nodes="$nodes $!"; done; '
            "for one in $nodes; do wait $one || exit 1; done"
        )

    def _request(self, package: TrialPackage) -> Request:
        return json_request("POST", f"/api/clusters/{quote(self._cluster)}/jobs", self._job(package))

    def render(self, package: TrialPackage, placement: Placement) -> Submission:  # noqa: ARG002 - DLTS places
        """Return the job as the dashboard takes it, and what lies in the storage for it."""
        request = self._request(package)
        text = http_client.as_text([request], self._http.address, (), _CREDENTIALS)
        return Submission(
            argv=("curl", "-X", "POST", f"{self._http.address}{request.path}"),
            files={"request.txt": text, "trial.json": package.trial_text},
        )

    def submit(self, package: TrialPackage, placement: Placement, secrets: Mapping[str, str]) -> None:  # noqa: ARG002 - as above
        """Put the package into the storage, and start the job."""
        if self._details(package.name) is not None:
            return
        self._folder.put(package, secrets)
        answer = cast("JsonObject", self._http.json(self._request(package)) or {})
        if answer.get("jobId") != _id(package.name) and self._details(package.name) is None:
            raise BackendError(
                f"DLTS does not take the job {package.name}: {answer.get('error') or answer}", "",
                "Look at the team and the image of the profile.",
            )  # fmt: skip

    def _path(self, name: str, version: str = "") -> str:
        return f"/api/{version}clusters/{quote(self._cluster)}/jobs/{_id(name)}"

    def _details(self, name: str) -> JsonObject | None:
        """Return a job; DLTS gives an empty one for an id that it does not know."""
        found = cast("JsonObject | None", self._http.json(Request("GET", self._path(name, "v2/"))))
        return found if found and found.get("jobStatus") else None

    def states(self, refs: Sequence[JobRef]) -> Mapping[str, ServiceState]:
        """Return the states by one list, and of jobs that it lacks by their details."""
        path = f"/api/v2/clusters/{quote(self._cluster)}/teams/{quote(self._team)}/jobs"
        rows = cast("list[JsonObject | None]", self._http.json(Request("GET", path, {"limit": _LIMIT})))
        listed = {str(row["jobId"]): row for row in rows if row}
        found = {}
        for ref in refs:
            name = str(ref.data["name"])
            job = listed.get(_id(name)) or self._details(name)
            if job is not None:
                found[name] = self._state(name, job)
        return found

    def _state(self, name: str, job: JsonObject) -> ServiceState:
        word = str(job["jobStatus"])
        state = _STATES.get(word, TrialState.RUNNING)
        if word == "unapproved":
            return ServiceState(state, f"waits in DLTS until somebody of team {self._team} approves it")
        if word == "paused" or (word == "queued" and self._folder.has_begun(name)):
            return ServiceState(TrialState.PREEMPTED, f"DLTS has taken its place away: its job is {word}.")
        if state is TrialState.PREPARING:
            return ServiceState(state, f"waits in DLTS: {_waits_for(job) or word}")
        if word == "killed":
            return ServiceState(state, "Somebody has killed its job in DLTS.")
        return ServiceState(state, self._why(name) if state is TrialState.FAILED else "")

    def _why(self, name: str) -> str:
        """Return DLTS's own reason for a failure."""
        told = cast("JsonObject", self._http.json(Request("GET", f"{self._path(name)}/status")) or {})
        lines = str(told.get("message") or "").strip().splitlines()
        return f"DLTS ended its job: {lines[-1] if lines else 'it does not say why'}"

    def log(self, ref: JobRef, state: ServiceState, lines: int | None, node: int) -> str:  # noqa: ARG002 - by its name
        """Return the log, from the storage."""
        return self._folder.log(ref, lines, node)

    def _end(self, ref: JobRef, state: ServiceState) -> None:  # noqa: ARG002 - as above
        path = f"{self._path(str(ref.data['name']))}/status"
        self._http.call(json_request("PUT", path, {"status": "killing"}))


def _id(name: str) -> str:
    return str(uuid.uuid5(_IDS, name))


def _waits_for(job: JsonObject) -> str:
    """Return what a job waits for, as DLTS tells it, or ""."""
    told = job.get("jobStatusDetail")
    if not isinstance(told, list) or not told:
        return ""
    return str(cast("JsonObject", told[0]).get("message") or "")

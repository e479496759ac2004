"""OpenPAI's REST interface (v2) as a `Service`: a trial is a job, its package lies in a shared storage.

Each node of a trial is a task. Tasks have their host's network; OpenPAI gives node 0 a port there, where the others
find it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.services import http_client
from jupyter_autotrain.backends.services.http_client import HttpService, RefusedError, Request, json_request
from jupyter_autotrain.backends.services.mounted_folder import MountedFolder
from jupyter_autotrain.backends.services.package import TrialPackage
from jupyter_autotrain.backends.services.service import ServiceState
from jupyter_autotrain.backends.services.shared_folder import FolderService
from jupyter_autotrain.core.backend import JobRef, Submission
from jupyter_autotrain.core.backend_check import CheckStep, StepTimer
from jupyter_autotrain.core.capabilities import Capabilities
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.spec import Placement

_API = "/rest-server/api/v2"
LOGIN_FILE: Final = "~/.openpai/clusters.yaml"
_ROLE = "trial"
_PORT = "nodes"
_LOG = "all"  # stdout and stderr of a task
_ROTATED = "all.1"
_BLOCK = 8192  # OpenPAI's log manager puts a newline after each of so many bytes
_MEMORY_MB = 4096
_STATES: Final = {
    "WAITING": TrialState.PREPARING, "RUNNING": TrialState.RUNNING, "STOPPING": TrialState.RUNNING,
    "STOPPED": TrialState.CANCELLED, "SUCCEEDED": TrialState.SUCCEEDED, "FAILED": TrialState.FAILED,
}  # fmt: skip


class OpenpaiService(FolderService):
    """An OpenPAI cluster.

    Args:
        options: Of the profile.
    """

    capabilities = Capabilities(
        multi_node=True, multi_worker=True, gpu_slots=True, limits_cpu=True, limits_memory=True, secrets=True,
        queues=True,
    )  # fmt: skip
    node_variables: Mapping[str, str] = MappingProxyType({
        "rank": "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "first_address": f"PAI_HOST_IP_{_ROLE}_0",
        "first_port": f"PAI_PORT_LIST_{_ROLE}_0_{_PORT}",
    })  # fmt: skip
    pause_s = 2.0
    settle_s = 20.0
    keeps_whole_log = False
    _folder: MountedFolder

    def __init__(self, options: JsonObject) -> None:
        self._options = options
        self._login_file = Path(str(options.get("login_file") or LOGIN_FILE)).expanduser()
        self._user = str(options.get("user") or "")
        super().__init__(MountedFolder(cast("JsonObject", options.get("storage") or {})))
        self._http = HttpService(
            "OpenPAI", _with_scheme(str(options.get("address") or "")), self._headers,
            f"put an application token of this cluster into {self._login_file}", str(options.get("ca_file") or ""),
        )  # fmt: skip

    def _headers(self) -> dict[str, str]:
        """Return the header with the token of this cluster, from where OpenPAI's own client keeps it."""
        try:
            clusters = YAML(typ="safe").load(self._login_file.read_text(encoding="utf-8"))
        except (OSError, YAMLError):
            return {}
        for cluster in clusters if isinstance(clusters, list) else ():
            if _with_scheme(str(cluster.get("pai_uri"))) == self._http.address:
                return {"Authorization": f"Bearer {cluster.get('token')}"}
        return {}

    def _steps(self, timer: StepTimer) -> Iterator[CheckStep]:
        timer.begin("address")
        self._http.json(Request("GET", f"{_API}/info"))
        yield timer.done(f"OpenPAI answers at {self._http.address}")
        timer.begin("token")
        found = cast("JsonObject", self._http.json(Request("GET", f"{_API}/virtual-clusters")))
        yield timer.done(f"{self._user} may use {', '.join(sorted(found))}")
        timer.begin("virtual cluster")
        name = str(self._options.get("virtual_cluster") or "default")
        if name not in found:
            yield timer.failed(f"there is no virtual cluster {name}", "Correct `virtual_cluster:` of the profile.")
        yield timer.done(name)

    def discover(self) -> Inventory:
        """Return the virtual cluster, as one node: OpenPAI places by itself."""
        name = str(self._options.get("virtual_cluster") or "default")
        return Inventory((Node(name),), limits="by OpenPAI's containers")

    def _job(self, package: TrialPackage) -> JsonObject:
        """Return the job, by OpenPAI's protocol."""
        options = package.options
        resources = package.trial.resources
        memory = resources.memory_bytes
        each: dict[str, JsonValue] = {
            "cpu": max(1, round(resources.cpus or 1)), "gpu": resources.gpus,
            "memoryMB": -(-memory // (1 << 20)) if memory else _MEMORY_MB,
        }  # fmt: skip
        if package.nodes > 1:
            each["ports"] = {_PORT: 1}
        task: dict[str, JsonValue] = {
            "instances": package.nodes, "taskRetryCount": 0, "dockerImage": "image",
            "completion": {"minFailedInstances": 1, "minSucceededInstances": package.nodes},
            "resourcePerInstance": each,
            "commands": [*package.exports, self._folder.command(package, package.run_folder(self.node_variables))],
        }  # fmt: skip
        if shared := options.get("shared_memory"):
            task["extraContainerOptions"] = {"shmMB": -(-int(cast("int", shared)) // (1 << 20))}
        extras: dict[str, JsonValue] = {}
        if name := options.get("storage_name"):
            extras["storages"] = [{"name": name}]
        if sku := options.get("sku"):
            extras["hivedScheduler"] = {"taskRoles": {_ROLE: {"skuType": sku, "skuNum": max(1, resources.gpus)}}}
        return {
            "protocolVersion": 2, "name": package.name, "type": "job", "jobRetryCount": 0,
            "prerequisites": [
                {"protocolVersion": 2, "name": "image", "type": "dockerimage", "uri": package.image}
            ],
            "taskRoles": {_ROLE: task},
            "defaults": {"virtualCluster": options.get("virtual_cluster") or "default"}, "extras": extras,
        }  # fmt: skip

    def _request(self, package: TrialPackage) -> Request:
        text = json.dumps(self._job(package), indent=1, sort_keys=True)  # which is YAML, too
        return Request("POST", f"{_API}/jobs", body=text.encode(), content_type="text/yaml")

    def render(self, package: TrialPackage, placement: Placement) -> Submission:  # noqa: ARG002 - OpenPAI places
        """Return the job by OpenPAI's protocol, and what lies in the storage for it."""
        text = http_client.as_text([self._request(package)], self._http.address, {"Authorization": ""})
        return Submission(
            argv=("curl", "-X", "POST", f"{self._http.address}{_API}/jobs"),
            files={"request.txt": text, "trial.json": package.trial_text},
        )

    def submit(self, package: TrialPackage, placement: Placement, secrets: Mapping[str, str]) -> None:  # noqa: ARG002 - as above
        """Put the package into the storage, and start the job."""
        if self._details(package.name) is not None:
            return
        self._folder.put(package, secrets)
        try:
            self._http.call(self._request(package))
        except RefusedError as error:
            if error.code != http_client.CONFLICT:
                raise

    def _path(self, name: str) -> str:
        return f"{_API}/jobs/{self._user}~{name}"

    def _details(self, name: str) -> JsonObject | None:
        return self._http.find(Request("GET", self._path(name)))

    def states(self, refs: Sequence[JobRef]) -> Mapping[str, ServiceState]:
        """Return the states by one list; those that it lacks, or that have ended, by their details."""
        query: dict[str, str | int] = {"username": self._user, "keyword": "autotrain-", "limit": 5000}
        rows = cast("list[JsonObject]", self._http.json(Request("GET", f"{_API}/jobs", query)))
        listed = {str(row["name"]): str(row["state"]) for row in rows}
        found = {}
        for ref in refs:
            name = str(ref.data["name"])
            state = listed.get(name, "UNKNOWN")
            if state not in {"WAITING", "RUNNING"}:
                details = self._details(name)
                if details is not None:
                    found[name] = self._state(cast("JsonObject", details["jobStatus"]))
            else:
                found[name] = self._state({"state": state})
        return found

    def _state(self, status: JsonObject) -> ServiceState:
        word = str(status.get("state"))
        state = _STATES.get(word, TrialState.RUNNING)
        if word == "WAITING":
            virtual_cluster = self._options.get("virtual_cluster") or "default"
            return ServiceState(state, f"waits in OpenPAI for room in the virtual cluster {virtual_cluster}")
        if word == "STOPPED":
            return ServiceState(state, "Somebody has stopped its job in OpenPAI.")
        return ServiceState(state, _why(status) if word == "FAILED" else "")

    def log(self, ref: JobRef, state: ServiceState, lines: int | None, node: int) -> str:  # noqa: ARG002 - OpenPAI gives 16 KiB
        """Return the end of the task's log; all that OpenPAI keeps, which is two files of it, for None."""
        task = f"attempts/0/taskRoles/{_ROLE}/taskIndex/{node}/attempts/0/logs"
        query = None if lines is None else {"tail-mode": "true"}
        answer = self._http.find(Request("GET", f"{self._path(str(ref.data['name']))}/{task}", query))
        if answer is None:  # its container has not begun
            return ""
        rows = cast("list[Mapping[str, str]]", answer["locations"])
        places = {row["name"]: row["uri"] for row in rows}
        wanted = [_LOG] if lines is not None else [_ROTATED, _LOG]
        texts = [self._http.call(Request("GET", places[name])) for name in wanted if name in places]
        return "\n".join(_joined(text).decode(errors="replace") for text in texts)

    def _end(self, ref: JobRef, state: ServiceState) -> None:  # noqa: ARG002 - by its name
        path = f"{self._path(str(ref.data['name']))}/executionType"
        self._http.call(json_request("PUT", path, {"value": "STOP"}))


def _with_scheme(address: str) -> str:
    return (address if "://" in address else f"https://{address}").rstrip("/")


def _why(status: JsonObject) -> str:
    """Return OpenPAI's own reason for a failure, in plain words; "" where the trial's own end says more."""
    spec = cast("JsonObject", status.get("appExitSpec") or {})
    told = [str(spec.get(key) or "") for key in ("reason", "repro", "solution")]
    text = str(status.get("appExitTriggerMessage") or status.get("appExitDiagnostics") or told[0]).strip()
    code = status.get("appExitCode")
    return f"OpenPAI ended its job (exit code {code}): {text.splitlines()[-1] if text else 'it does not say why'}"


def _joined(data: bytes) -> bytes:
    """Return a log without the newlines that the log manager puts after each block."""
    marks = data[_BLOCK :: _BLOCK + 1]
    if not marks or set(marks) != {0x0A}:
        return data
    step = _BLOCK + 1
    return b"".join(data[begin : begin + _BLOCK] for begin in range(0, len(data), step))

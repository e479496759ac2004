"""Ray's Jobs interface as a `Service`: a trial is a job of an existing cluster, and its package the working directory.

On several nodes it is a job on each. A request to a running trial is a small job of its own on the same node, whose
answer comes in its log.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.objects import agent_archive
from jupyter_autotrain.agent.pods import service_job
from jupyter_autotrain.agent.program import PROGRAM
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.services import http_client, package
from jupyter_autotrain.backends.services.http_client import (
    HttpService,
    RefusedError,
    Request,
    ServerFailedError,
    json_request,
)
from jupyter_autotrain.backends.services.mounted_folder import MountedFolder
from jupyter_autotrain.backends.services.package import TrialPackage
from jupyter_autotrain.backends.services.ray import rows
from jupyter_autotrain.backends.services.ray.requests_of_trials import (
    ON_NODE,
    PYTHON_FLAGS,
    VARIABLES,
    folder_of,
    names_of,
    requests_of,
)
from jupyter_autotrain.backends.services.service import AnswerLostError, ServiceState
from jupyter_autotrain.backends.services.shared_folder import SharedFolder
from jupyter_autotrain.core.backend import JobRef, Submission
from jupyter_autotrain.core.backend_check import CheckStep, StepTimer
from jupyter_autotrain.core.capabilities import Capabilities
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.errors import AutotrainError, BackendError, BackendUnavailableError

LOGIN_FILE: Final = "~/.ray/auth_token"
ADDRESS: Final = "http://127.0.0.1:8265"
_MOST_PACKAGE_BYTES = 100 << 20  # as Ray's own client
_PENDING_S = 5.0
_ASK_S = 60.0
_LOOK_AGAIN_S = 0.2


class RayService:
    """A Ray cluster.

    Args:
        options: Of the profile.
    """

    capabilities = Capabilities(
        multi_node=True, multi_worker=True, gpu_slots=True, limits_cpu=True, limits_memory=True, secrets=True
    )
    node_variables = VARIABLES
    pause_s = 0.5
    settle_s = 3.0
    keeps_whole_log = True

    def __init__(self, options: JsonObject) -> None:
        self._options = options
        self._login_file = Path(str(options.get("login_file") or LOGIN_FILE)).expanduser()
        self._http = HttpService(
            "Ray", str(options.get("address") or ADDRESS), self._headers, f"the token is in {self._login_file}",
            str(options.get("ca_file") or ""),
        )  # fmt: skip

    @property
    def shared_folder(self) -> SharedFolder | None:
        """The folder in the storage of the profile, where it has one."""
        storage = self._options.get("storage")
        return MountedFolder(storage) if isinstance(storage, Mapping) else None

    def _headers(self) -> dict[str, str]:
        """Return the headers with credentials, from where Ray's own tools keep the token."""
        try:
            return {"Authorization": f"Bearer {self._login_file.read_text(encoding='utf-8').strip()}"}
        except OSError:
            return {}

    def check_steps(self) -> Iterator[CheckStep]:
        """Yield the steps before a trial can run there."""
        timer = StepTimer("")
        timer.begin("address")
        try:
            version = cast("JsonObject", self._http.json(Request("GET", "/api/version")))
            yield timer.done(f"Ray {version.get('ray_version')} answers at {self._http.address}")
            timer.begin("jobs")
            self._http.json(Request("GET", "/api/jobs/"))
            yield timer.done("jobs may be listed")
            timer.begin("nodes")
            found = self._nodes()
            yield timer.done(f"{len(found)} nodes with {sum(node.cpus or 0 for node in found):g} CPUs")
        except AutotrainError as error:
            yield timer.refused(error)

    def discover(self) -> Inventory:
        """Return the cluster's nodes."""
        limits = "CPUs and GPUs are counted by Ray; memory is kept by the trial's supervisor"
        return Inventory(tuple(self._nodes()), limits=limits)

    def _nodes(self) -> list[Node]:
        answer = cast("JsonObject", self._http.json(Request("GET", "/api/v0/nodes", {"detail": 1, "limit": 10_000})))
        listed = cast("JsonObject", cast("JsonObject", answer["data"])["result"])["result"]
        return [rows.node(row) for row in cast("list[JsonObject]", listed) if row.get("state") == "ALIVE"]

    def render(self, package: TrialPackage, placement: Placement) -> Submission:
        """Return the requests of a submit."""
        requests: list[Request] = []
        for _, send, start in requests_of(self._options, package, placement, {}):
            requests += [send, start]
        text = http_client.as_text(requests, self._http.address, self._headers())
        notes = ("Values of secrets travel in the package, and are removed there before the trial begins.",)
        return Submission(
            argv=("ray", "job", "submit", "--address", self._http.address, "--submission-id", package.name),
            env=dict(package.variables), files={"requests.txt": text}, notes=notes if package.trial.secrets else (),
        )  # fmt: skip

    def submit(self, package: TrialPackage, placement: Placement, secrets: Mapping[str, str]) -> None:
        """Send each node's package where the cluster lacks it, and start its job; all of them, or none."""
        started: list[str] = []
        for name, send, start in requests_of(self._options, package, placement, secrets):
            try:
                self._send(send)
                self._start(name, start)
            except BackendUnavailableError:
                raise  # the same submit again finds what has been started
            except BackendError:
                for one in started:
                    self._stop(one)
                raise
            started.append(name)

    def _send(self, request: Request) -> None:
        """Send a package where the cluster lacks it."""
        body = cast("bytes", request.body)
        if len(body) > _MOST_PACKAGE_BYTES:
            raise BackendError(
                f"Code and data of this trial have {format_bytes(len(body))}.",
                f"Ray takes {format_bytes(_MOST_PACKAGE_BYTES)} with a job.",
                "Name data that is there already by `path:` or `url:` under `data:`.",
            )
        try:
            with contextlib.suppress(RefusedError):
                self._http.call(Request("GET", request.path))
                return
            self._http.call(request)
        except AnswerLostError as error:  # nothing has been started
            raise BackendUnavailableError(error.found, error.expected, error.action) from error

    def _start(self, name: str, request: Request) -> None:
        """Start a job; one of that name was started by an earlier call, whose answer was lost.

        Raises:
            AnswerLostError: Whether it was started is not known.
        """
        try:
            self._http.call(request)
        except ServerFailedError as error:
            if "already exists" in error.text:
                return
            if self._details(name) is None:
                raise BackendUnavailableError(error.found, error.expected, error.action) from error

    def _details(self, name: str) -> JsonObject | None:
        return self._http.find(Request("GET", f"/api/jobs/{name}"))

    def states(self, refs: Sequence[JobRef]) -> Mapping[str, ServiceState]:
        """Return the states of trials: of one job by itself, of several by a list."""
        wanted = [name for ref in refs for name in names_of(ref)]
        if len(wanted) == 1:
            one = self._details(wanted[0])
            listed = [] if one is None else [one]
        else:
            listed = cast("list[JsonObject]", self._http.json(Request("GET", "/api/jobs/")))
        known = {str(row.get("submission_id")): row for row in listed}
        names = {str(ref.data["name"]): names_of(ref) for ref in refs}
        return {name: self._together(own, known) for name, own in names.items() if name in known}

    def _together(self, names: Sequence[str], known: Mapping[str, JsonObject]) -> ServiceState:
        """Return the state of a trial by those of its jobs; where one has ended badly, the others are ended."""
        states = {name: rows.state_of(known[name]) for name in names if name in known}
        going = [name for name, one in states.items() if not one.state.is_final]
        bad = [one for one in states.values() if one.state.is_final and one.state is not TrialState.SUCCEEDED]
        for name in going if bad else ():
            self._stop(name)
        waits = [states[name] for name in going if states[name].state is TrialState.PREPARING]
        told = [*waits, *(states[name] for name in going), *bad, states[names[0]]][0]
        where: list[JsonValue] = [rows.where(known.get(name, {})) for name in names]
        return replace(told, where={"nodes": where})

    def log(self, ref: JobRef, state: ServiceState, lines: int | None, node: int) -> str:
        """Return the end of the log of a node's job."""
        return self._log(names_of(ref)[node], rows.of_node(state, node), lines)

    def _log(self, name: str, where: JsonObject, lines: int | None) -> str:
        node = where.get("node_id")
        if not node:
            return ""
        query: dict[str, str | int] = {
            "node_id": str(node), "filename": f"job-driver-{name}.log", "lines": -1 if lines is None else lines
        }  # fmt: skip
        return self._http.call(Request("GET", "/api/v0/logs/file", query)).decode(errors="replace")

    def ask(self, ref: JobRef, state: ServiceState, request: JsonObject, node: int) -> JsonValue:
        """Have a small job on the node of a trial answer."""
        folder = folder_of(self._options, names_of(ref)[node])
        address = rows.of_node(state, node).get("address")
        program = f"{folder}/{agent_archive.CODE}/{PROGRAM} answer"
        name = package.new_name(str(ref.data["name"]))
        job: JsonObject = {
            "entrypoint": f"exec {self._options.get('python') or 'python3'} {PYTHON_FLAGS} {program} {folder}",
            "submission_id": name,
            "runtime_env": {"env_vars": {service_job.REQUEST_VARIABLE: json.dumps(request)}},
            "entrypoint_num_cpus": 0, "entrypoint_resources": {f"node:{address}": ON_NODE},
        }  # fmt: skip
        self._start(name, json_request("POST", "/api/jobs/", job))
        details = self._until_ended(name)
        found = package.answered(self._log(name, rows.where(details), None))
        self._forget(name)
        if not isinstance(found, Mapping):
            raise BackendError(
                f"The job of the trial does not answer: {rows.state_of(details).reason or 'it said nothing'}."
            )
        if "failure" in found:
            raise BackendError(*cast("list[str]", found["failure"]))
        return found["ok"]

    def _until_ended(self, name: str) -> JsonObject:
        end_s = time.monotonic() + _ASK_S
        while True:
            details = self._details(name)
            if details is None or rows.state_of(details).state.is_final:
                return details or {}
            if time.monotonic() > end_s:
                raise BackendUnavailableError(f"Ray has not run a request to the trial within {_ASK_S:g} s.")
            time.sleep(_LOOK_AGAIN_S)

    def _forget(self, name: str) -> None:
        try:
            self._http.call(Request("DELETE", f"/api/jobs/{name}"))
        except BackendError:
            return  # it stays in Ray's list, as an ended one

    def release(self, ref: JobRef, *, waits: bool) -> None:
        """Stop a job that waits; Ray itself drops packages that no job uses."""
        for name in names_of(ref) if waits else ():
            self._stop(name)

    def experiments_there(self, home: str) -> Mapping[str, int]:  # noqa: ARG002 - as below
        """Return none: jobs remove their folders, and Ray its packages."""
        return {}

    def remove_experiments(self, home: str, experiments: Collection[str]) -> None:
        """Remove nothing, as nothing stays."""

    def stop(self, ref: JobRef, state: ServiceState) -> str:  # noqa: ARG002 - Ray finds it by its name
        """Have Ray end a job; one that waits for a node cannot be taken out of Ray's queue."""
        names = names_of(ref)
        for name in names:
            self._stop(name)
        end_s = time.monotonic() + _PENDING_S
        while time.monotonic() < end_s:
            found = [self._details(name) or {} for name in names]
            if not any(details.get("status") == "PENDING" for details in found):
                return ""
            time.sleep(_LOOK_AGAIN_S)
        return "Ray keeps it in its queue until it has a node for it; then it ends before the trial begins"

    def _stop(self, name: str) -> None:
        with http_client.unless_gone():
            self._http.call(Request("POST", f"/api/jobs/{name}/stop", body=b""))

"""A service without a network: the smallest one there can be, to test what all services share, with faults."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.objects import agent_archive
from jupyter_autotrain.agent.pods import service_job
from jupyter_autotrain.agent.program import PROGRAM
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.services.backend import ServiceBackend
from jupyter_autotrain.backends.services.package import TrialPackage, answered
from jupyter_autotrain.backends.services.service import AnswerLostError, Service, ServiceState, nodes_of
from jupyter_autotrain.core.backend import BackendContext, JobRef, Submission
from jupyter_autotrain.core.backend_check import CheckStep
from jupyter_autotrain.core.capabilities import Capabilities
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.errors import BackendError, BackendUnavailableError
from tests.labs.service_jobs import JobRunner, new_address

_STATES = {
    "WAITING": TrialState.PREPARING, "RUNNING": TrialState.RUNNING, "STOPPED": TrialState.CANCELLED,
    "SUCCEEDED": TrialState.SUCCEEDED, "FAILED": TrialState.FAILED,
}  # fmt: skip


class ProcessService:
    """Jobs are processes here.

    Args:
        runner: Runs them; it outlives this object, as a service outlives a manager.

    Attributes:
        is_away: Whether it does not answer.
        loses_answers: Whether submits are done, and their answers lost.
        log_fault: What happens to logs: `""`, `cut` (the beginning is gone while the job runs), `doubled`, `reordered`.
    """

    capabilities = Capabilities(multi_node=True, multi_worker=True, limits_memory=True, secrets=True, queues=True)
    node_variables: Mapping[str, str] = MappingProxyType({"rank": "NODE", "first_address": "FIRST"})
    pause_s = 0.05
    settle_s = 0.3
    keeps_whole_log = True

    def __init__(self, runner: JobRunner) -> None:
        self.runner = runner
        self.is_away = False
        self.loses_answers = False
        self.log_fault = ""

    def check_steps(self) -> Iterator[CheckStep]:
        yield CheckStep("", "answers", not self.is_away, "processes are here")

    def discover(self) -> Inventory:
        return Inventory((Node("here"),), limits="by the supervisor")

    def _command(self, package: TrialPackage) -> str:
        node = "-$NODE" if package.nodes > 1 else ""
        return f"exec {sys.executable} -I -S -u {agent_archive.NAME} {self._folder(package.name)}{node}"

    def _folder(self, name: str) -> Path:
        return self.runner.folder / f"run-{name}"

    def render(self, package: TrialPackage, placement: Placement) -> Submission:
        return Submission(("sh", "-c", self._command(package)), dict(package.variables))

    def submit(self, package: TrialPackage, placement: Placement, secrets: Mapping[str, str]) -> None:
        self._answer()
        first = new_address()
        workers = [{"FIRST": first, "NODE": str(node)} for node in range(package.nodes)]
        files = {**package.files, **package.secret_files(secrets)}
        self.runner.start(package.name, self._command(package), package.variables, files, workers)
        if self.loses_answers:
            raise AnswerLostError("The answer was lost.")

    def _answer(self) -> None:
        if self.is_away:
            raise BackendUnavailableError("The service does not answer.")

    def states(self, refs: Sequence[JobRef]) -> Mapping[str, ServiceState]:
        self._answer()
        found = {}
        for ref in refs:
            name = str(ref.data["name"])
            if name in self.runner.jobs:
                found[name] = ServiceState(_STATES[self.runner.jobs[name].state])
        return found

    def log(self, ref: JobRef, state: ServiceState, lines: int | None, node: int) -> str:
        self._answer()
        job = self.runner.jobs[str(ref.data["name"])]
        text = job.log_of(node)
        found = text[: text.rfind("\n") + 1].splitlines() if job.state == "RUNNING" else text.splitlines()
        if self.log_fault == "cut" and not state.state.is_final:
            found = found[-3:]
        if self.log_fault == "doubled":
            found = found + found
        if self.log_fault == "reordered":
            found = random.Random(len(found)).sample(found, len(found))
        return "\n".join(found if lines is None else found[-lines:])

    def ask(self, ref: JobRef, state: ServiceState, request: JsonObject, node: int) -> JsonValue:
        self._answer()
        folder = f"{self._folder(str(ref.data['name']))}{service_job.of_node(node, nodes_of(ref))}"
        program = f"{folder}/{agent_archive.CODE}/{PROGRAM}"
        done = subprocess.run(
            [sys.executable, "-I", "-S", program, "answer", folder], check=False, capture_output=True, text=True,
            env={service_job.REQUEST_VARIABLE: json.dumps(request)},
        )  # fmt: skip
        found = cast("JsonObject", answered(done.stdout) or {"failure": [done.stderr[-300:], "", ""]})
        if "failure" in found:
            raise BackendError(*cast("list[str]", found["failure"]))
        return found["ok"]

    def release(self, ref: JobRef, *, waits: bool) -> None:
        if waits:
            self.runner.stop(str(ref.data["name"]))

    def experiments_there(self, home: str) -> Mapping[str, int]:
        return {}

    def remove_experiments(self, home: str, experiments: Collection[str]) -> None:
        """Have nothing to remove."""

    def stop(self, ref: JobRef, state: ServiceState) -> str:
        self._answer()
        self.runner.stop(str(ref.data["name"]))
        return ""


class ProcessServiceBackend(ServiceBackend):
    """The backend of all services, over processes."""

    def __init__(self, context: BackendContext, service: ProcessService) -> None:
        self.processes = service
        super().__init__(Profile("lab", "processes", {"python": sys.executable}), context)

    def connect(self, options: JsonObject) -> Service:
        return self.processes

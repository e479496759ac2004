"""A double of the dashboard of a Ray head: its Jobs interface, packages, nodes and logs, with a token.

It is made from what Ray 2.60 takes and answers, and refuses fields that a job there does not have. Its jobs are
processes here, all on one node. Tests of what Ray itself does run against a real head, `ray_lab`.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator

import jsonschema  # type: ignore[import-untyped] # has no stubs

from tests.labs.service_double import Answer, Asked, RefusalError, Route, ServiceDouble
from tests.labs.service_jobs import Job, JobRunner

TOKEN = "ray-token-0123456789"
NODE = "5f1c2d"
ADDRESS = "127.0.0.1"
_AMOUNT = {"type": "number", "minimum": 0}
_AMOUNTS = {"type": "object", "additionalProperties": _AMOUNT}
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_JOB = {
    "type": "object",
    "properties": {
        "entrypoint": {"type": "string", "minLength": 1},
        "submission_id": {"type": "string", "minLength": 1},
        "metadata": _TEXTS,
        "runtime_env": {
            "type": "object",
            "properties": {"working_dir": {"type": "string", "pattern": "^gcs://.+[.]zip$"}, "env_vars": _TEXTS},
            "additionalProperties": False,
        },
        "entrypoint_num_cpus": _AMOUNT, "entrypoint_num_gpus": _AMOUNT, "entrypoint_memory": {"type": "integer"},
        "entrypoint_resources": _AMOUNTS, "entrypoint_label_selector": _TEXTS,
    },
    "required": ["entrypoint"],
    "additionalProperties": False,
}  # fmt: skip
_STATUS = {
    "WAITING": "PENDING", "RUNNING": "RUNNING", "STOPPED": "STOPPED", "SUCCEEDED": "SUCCEEDED", "FAILED": "FAILED",
}  # fmt: skip


class RayDouble(ServiceDouble):
    """A head with one node.

    Args:
        runner: Runs its jobs.

    Attributes:
        token: Which one is taken.
    """

    def __init__(self, runner: JobRunner) -> None:
        self.token = TOKEN
        self._packages: dict[str, bytes] = {}
        self._trials: list[str] = []
        super().__init__(runner)

    def routes(self) -> Iterator[Route]:
        yield "GET", "/api/version", lambda _: Answer({"version": "4", "ray_version": "2.60.0"})
        yield "GET", "/api/packages/gcs/([^/]+)", self._package
        yield "PUT", "/api/packages/gcs/([^/]+)", self._put_package
        yield "POST", "/api/jobs/", self._submit
        yield "GET", "/api/jobs/", lambda _: Answer([self._row(name) for name in list(self.runner.jobs)])
        yield "GET", "/api/jobs/([^/]+)", lambda asked: Answer(self._row(self._known(asked)))
        yield "POST", "/api/jobs/([^/]+)/stop", self._stop
        yield "DELETE", "/api/jobs/([^/]+)", self._delete
        yield "GET", "/api/v0/nodes", self._nodes
        yield "GET", "/api/v0/logs/file", self._log

    def admit(self, asked: Asked) -> None:
        if asked.headers.get("authorization") != f"Bearer {self.token}":
            raise RefusalError(401, "Unauthorized: the token is missing or invalid")

    def refusal(self, refusal: RefusalError) -> Answer:
        return Answer(refusal.text.encode(), refusal.code, {"Content-Type": "text/plain"})

    @property
    def begun(self) -> list[str]:
        return self._trials  # beside them are small jobs, which answer requests

    def _package(self, asked: Asked) -> Answer:
        if asked.parts[0] not in self._packages:
            raise RefusalError(404, "Package does not exist.")
        return Answer()

    def _put_package(self, asked: Asked) -> Answer:
        self._packages[asked.parts[0]] = asked.body
        return Answer()

    def _submit(self, asked: Asked) -> Answer:
        job = json.loads(asked.body)
        faults = [error.message for error in jsonschema.Draft7Validator(_JOB).iter_errors(job)]
        if faults:
            raise RefusalError(400, "; ".join(faults))
        if unknown := [name for name in job.get("entrypoint_resources", {}) if name != f"node:{ADDRESS}"]:
            raise RefusalError(400, f"no node has {unknown}")
        name = job["submission_id"]
        environment = job.get("runtime_env", {})
        files = self._unpacked(environment.get("working_dir", ""))
        if not self.runner.start(name, job["entrypoint"], environment.get("env_vars", {}), files):
            told = f"ValueError: Job with submission_id {name} already exists."
            raise RefusalError(500, f"Traceback (most recent call last):\n{told}")
        if "jupyter_autotrain" in job.get("metadata", {}):
            self._trials.append(name)
        return Answer({"job_id": name, "submission_id": name})

    def _unpacked(self, uri: str) -> dict[str, bytes]:
        if not uri:
            return {}
        package = uri.removeprefix("gcs://")
        if package not in self._packages:
            raise RefusalError(400, f"there is no package {uri}")
        with zipfile.ZipFile(io.BytesIO(self._packages[package])) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    def _known(self, asked: Asked) -> str:
        if asked.parts[0] not in self.runner.jobs:
            raise RefusalError(404, f"Job {asked.parts[0]} does not exist")
        return asked.parts[0]

    def _row(self, name: str) -> dict[str, object]:
        status = _STATUS[self.runner.jobs[name].state]
        row: dict[str, object] = {"type": "SUBMISSION", "submission_id": name, "status": status}
        if status != "PENDING":
            row |= {"driver_node_id": NODE, "driver_agent_http_address": f"http://{ADDRESS}:52365"}
        if status == "FAILED":
            row |= {"error_type": "JOB_ENTRYPOINT_COMMAND_ERROR", "message": "Job entrypoint command failed"}
        return row

    def _stop(self, asked: Asked) -> Answer:
        name = self._known(asked)
        is_running = self.runner.jobs[name].state == "RUNNING"
        if is_running:
            self.runner.stop(name)
        return Answer({"stopped": is_running})

    def _delete(self, asked: Asked) -> Answer:
        name = self._known(asked)
        if self.runner.jobs[name].state == "RUNNING":
            raise RefusalError(500, f"RuntimeError: Attempted to delete job {name}, but it is in a non-terminal state")
        del self.runner.jobs[name]
        return Answer({"deleted": True})

    def _nodes(self, asked: Asked) -> Answer:
        row = {"state": "ALIVE", "node_ip": ADDRESS, "resources_total": {"CPU": 4.0, f"node:{ADDRESS}": 1.0}}
        return Answer({"result": True, "data": {"result": {"result": [row]}}})

    def _log(self, asked: Asked) -> Answer:
        if unknown := set(asked.query) - {"node_id", "filename", "lines"}:
            raise RefusalError(400, f"unknown parameters {unknown}")
        name = asked.query["filename"].removeprefix("job-driver-").removesuffix(".log")
        job: Job | None = self.runner.jobs.get(name)
        if asked.query["node_id"] != NODE or job is None:
            raise RefusalError(404, "there is no such log")
        lines = job.log.splitlines(keepends=True)
        wanted = int(asked.query["lines"])
        return Answer("".join(lines if wanted < 0 else lines[-wanted:]).encode())

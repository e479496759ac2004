"""A double of OpenPAI's REST server (API v2) and its log manager; strict, as the real ones' schema is.

Its jobs are processes here, so images are names alone, and a storage is mounted where this machine has it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped] # has no stubs

from jupyter_autotrain.agent.system.ports import find_free
from tests.labs.service_double import Answer, Asked, RefusalError, Route, ServiceDouble
from tests.labs.service_jobs import Job, JobRunner, new_address

USER = "ada"
TOKEN = "openpai-token-0123456789"
_API = "/rest-server/api/v2"
_JOB = rf"{_API}/jobs/([^/~]+)~([^/]+)"
_BLOCK = 8192
_NAME = {"type": "string", "pattern": "^[a-zA-Z0-9_-]+$", "maxLength": 255}
_TASK = {
    "type": "object",
    "properties": {
        "instances": {"type": "integer", "minimum": 1},
        "completion": {
            "type": "object",
            "properties": {
                "minFailedInstances": {"type": ["integer", "null"]},
                "minSucceededInstances": {"type": ["integer", "null"]},
            },
            "additionalProperties": False,
        },
        "taskRetryCount": {"type": "integer"},
        "dockerImage": {"type": "string"},
        "extraContainerOptions": {
            "type": "object", "properties": {"shmMB": {"type": "integer"}}, "additionalProperties": False
        },
        "resourcePerInstance": {
            "type": "object",
            "properties": {
                "cpu": {"type": "integer"}, "memoryMB": {"type": "integer"}, "gpu": {"type": "integer"},
                "ports": {
                    "type": "object", "patternProperties": {"^[a-zA-Z_][a-zA-Z0-9_]*$": {"type": "integer"}},
                    "minProperties": 1, "additionalProperties": False,
                },
            },
            "required": ["cpu", "memoryMB", "gpu"],
            "additionalProperties": False,
        },
        "commands": {"type": "array", "items": {"type": "string"}, "minItems": 1},
    },
    "required": ["dockerImage", "resourcePerInstance", "commands"],
    "additionalProperties": False,
}  # fmt: skip
_PROTOCOL = {
    "type": "object",
    "properties": {
        "protocolVersion": {"enum": ["2", 2]},
        "name": _NAME,
        "type": {"enum": ["job"]},
        "jobRetryCount": {"type": "integer", "minimum": 0},
        "prerequisites": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {
                    "protocolVersion": {"enum": ["2", 2]}, "name": _NAME, "type": {"enum": ["dockerimage"]},
                    "uri": {"type": "string"},
                },
                "required": ["name", "type", "uri"],
                "additionalProperties": False,
            },
        },
        "taskRoles": {
            "type": "object", "patternProperties": {"^[a-zA-Z_][a-zA-Z0-9_]*$": _TASK}, "minProperties": 1,
            "additionalProperties": False,
        },
        "defaults": {"type": "object", "properties": {"virtualCluster": {"type": "string"}}},
        "extras": {"type": "object"},
    },
    "required": ["protocolVersion", "name", "type", "taskRoles"],
    "additionalProperties": False,
}  # fmt: skip


class OpenpaiDouble(ServiceDouble):
    """One OpenPAI cluster with the virtual cluster `default`.

    Args:
        runner: Runs its jobs.

    Attributes:
        token: Which one is taken.
        kept_bytes: How much of a log it keeps: a current file, and one that was rotated; both of half that size.
        forgets_list: Whether new jobs are missing in lists, as while its database lags behind.
    """

    def __init__(self, runner: JobRunner) -> None:
        self.token = TOKEN
        self.kept_bytes = 1 << 30
        self.forgets_list = False
        super().__init__(runner)

    def routes(self) -> Iterator[Route]:
        yield "GET", f"{_API}/info", lambda _: Answer({"launcherType": "k8s"})
        yield "GET", f"{_API}/virtual-clusters", lambda _: Answer({"default": {"capacity": 100}})
        yield "POST", f"{_API}/jobs", self._submit
        yield "GET", f"{_API}/jobs", self._list
        yield "GET", _JOB, self._details
        yield "PUT", f"{_JOB}/executionType", self._execute
        logs = r"/attempts/0/taskRoles/([^/]+)/taskIndex/(\d+)/attempts/0/logs"
        yield "GET", _JOB + logs, self._logs
        yield "GET", "/log-manager/node/api/v1/logs/user-([^/]+)", self._log

    def admit(self, asked: Asked) -> None:
        if asked.path != f"{_API}/info" and asked.headers.get("authorization") != f"Bearer {self.token}":
            raise RefusalError(401, "Your token is invalid.")

    def refusal(self, refusal: RefusalError) -> Answer:
        return Answer({"code": "Error", "message": refusal.text}, refusal.code)

    def _submit(self, asked: Asked) -> Answer:
        if asked.headers.get("content-type") != "text/yaml":
            raise RefusalError(400, "content type text/yaml is expected")
        job = json.loads(asked.body)
        faults = [error.message for error in jsonschema.Draft7Validator(_PROTOCOL).iter_errors(job)]
        if faults:
            raise RefusalError(400, "; ".join(faults))
        images = {one["name"] for one in job["prerequisites"]}
        ((role, task),) = job["taskRoles"].items()
        if task["dockerImage"] not in images:
            raise RefusalError(400, f"no prerequisite {task['dockerImage']}")
        if (wanted := job["defaults"]["virtualCluster"]) != "default":
            raise RefusalError(400, f"no virtual cluster {wanted}")
        ends = task.get("completion", {})
        if (ends.get("minFailedInstances"), ends.get("minSucceededInstances")) != (1, task.get("instances", 1)):
            raise RefusalError(400, "the double runs jobs whose tasks end together, and no others")
        if not self.runner.start(job["name"], "\n".join(task["commands"]), {}, workers=_workers(role, task)):
            raise RefusalError(409, f"Job {USER}~{job['name']} already exists.")
        return Answer({"status": 202, "message": "Update job successfully."}, 202)

    def _list(self, asked: Asked) -> Answer:
        known = {"username", "keyword", "limit", "offset", "vc", "state", "order"}
        if unknown := set(asked.query) - known:
            raise RefusalError(400, f"unknown parameters {unknown}")
        jobs = {} if self.forgets_list else self.runner.jobs
        return Answer([{"name": name, "username": USER, "state": job.state} for name, job in jobs.items()])

    def _found(self, asked: Asked) -> Job:
        user, name = asked.parts[:2]
        if user != USER or name not in self.runner.jobs:
            raise RefusalError(404, f"Job {user}~{name} is not found.")
        return self.runner.jobs[name]

    def _details(self, asked: Asked) -> Answer:
        job = self._found(asked)
        codes = [worker.poll() for worker in job.workers]
        code = next(filter(None, codes), codes[0] if codes else None)
        status = {
            "username": USER,
            "state": job.state,
            "appExitCode": code,
            "appExitSpec": {"reason": "Container failed"},
        }
        return Answer({"name": asked.parts[1], "jobStatus": status, "taskRoles": {}})

    def _execute(self, asked: Asked) -> Answer:
        self._found(asked)
        if json.loads(asked.body) != {"value": "STOP"}:
            raise RefusalError(400, "value START or STOP is expected")
        self.runner.stop(asked.parts[1])
        return Answer({"status": 202}, 202)

    def _logs(self, asked: Asked) -> Answer:
        job = self._found(asked)
        index = int(asked.parts[3])
        if asked.parts[2] != "trial" or index >= len(job.workers):
            raise RefusalError(404, "Log of task is not found.")
        tail = "&tail-mode=true" if asked.query.get("tail-mode") == "true" else ""
        names = ["all", "all.1"] if job.log_file(index).stat().st_size > self.kept_bytes // 2 else ["all"]
        prefix = "/log-manager/node/api/v1/logs/user-"
        query = f"job={asked.parts[1]}&task={index}&token=t{tail}"
        rows = [{"name": name, "uri": f"{prefix}{name}?{query}"} for name in names]
        return Answer({"locations": rows})

    def _log(self, asked: Asked) -> Answer:
        half = self.kept_bytes // 2
        data = self.runner.jobs[asked.query["job"]].log_file(int(asked.query["task"])).read_bytes()
        files = [data[begin : begin + half] for begin in range(0, len(data) or 1, half)]
        found = files[-1] if asked.parts[0] == "all" else files[-2]
        if asked.query.get("tail-mode") == "true":
            found = found[-(16 << 10) :]
        blocks = [found[begin : begin + _BLOCK] + b"\n" for begin in range(0, len(found), _BLOCK)]
        return Answer(b"".join(blocks))


def _workers(role: str, task: dict[str, Any]) -> list[dict[str, str]]:
    """Return the variables of the tasks of a role: each knows the hosts of all, and the ports that they got."""
    addresses = [new_address() for _ in range(task.get("instances", 1))]
    shared = {f"PAI_HOST_IP_{role}_{index}": address for index, address in enumerate(addresses)}
    for label, count in task["resourcePerInstance"].get("ports", {}).items():
        for index, address in enumerate(addresses):
            ports = find_free(count, address)
            shared[f"PAI_PORT_LIST_{role}_{index}_{label}"] = ",".join(map(str, ports))
    return [{**shared, "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(index)} for index in range(len(addresses))]

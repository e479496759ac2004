"""A double of the dashboard of DLTS (DLWorkspace) with its REST interface behind it, and of one cluster.

It refuses fields that the interface does not describe. Its jobs are processes here, so images are names alone.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

import jsonschema  # type: ignore[import-untyped] # has no stubs

from tests.labs.service_double import Answer, Asked, RefusalError, Route, ServiceDouble
from tests.labs.service_jobs import JobRunner

EMAIL = "ada@example.org"
KEY = "0123456789abcdef0123456789abcdef"
TEAM = "vision"
CLUSTER = "azure-eastus-p40"
_ENDED = frozenset({"finished", "failed", "error", "killed"})
_FLAGS = (
    "enableworkpath", "enablejobpath", "enabledatapath", "ssh", "ipython", "tensorboard", "hostNetwork", "hostIPC",
    "isPrivileged", "useGPUTopology", "runningasroot", "is_interactive", "do_log",
)  # fmt: skip
_PATH = {"type": "string", "pattern": r"^(?!/)(?!.*\.\.)"}
_JOB = {
    "type": "object",
    "properties": {
        "team": {"type": "string"},
        "vcName": {"type": "string", "minLength": 1},
        "jobId": {"type": "string", "maxLength": 50},
        "jobName": {"type": "string", "minLength": 1, "maxLength": 1024},
        "jobType": {"enum": ["training"]},
        "jobtrainingtype": {"enum": ["RegularJob", "PSDistJob", "InferenceJob"]},
        "image": {"type": "string", "minLength": 1},
        "cmd": {"type": "string", "pattern": "^[^\n]*$"},
        "gpuType": {"type": "string"},
        "resourcegpu": {"type": "integer", "minimum": 0},
        "numps": {"type": "integer"},
        "numpsworker": {"type": "integer"},
        "cpurequest": {"type": "string", "pattern": r"^\d+m$"},
        "memoryrequest": {"type": "string", "pattern": r"^\d+Mi$"},
        "preemptionAllowed": {"enum": ["True", "False"]},
        "workPath": _PATH,
        "jobPath": _PATH,
        "dataPath": _PATH,
        "mountpoints": {"type": "array"},
        "env": {"type": "array", "items": {"type": "object", "required": ["name", "value"]}},
        "interactivePorts": {"type": "array", "items": {"type": "integer"}},
        **{flag: {"type": "boolean"} for flag in _FLAGS},
    },
    "required": ["team", "vcName", "jobName", "jobType"],
    "additionalProperties": False,
}
_JOBS = "/api/clusters/([^/]+)/jobs"


@dataclass(slots=True)
class _Row:
    """A row of the table of jobs: what was asked, and a status that overrides that of its process."""

    asked: dict[str, object]
    status: str = ""
    detail: list[dict[str, str]] = field(default_factory=list)
    error: str = ""


class DltsDouble(ServiceDouble):
    """One dashboard with one cluster and one team.

    Args:
        runner: Runs its jobs.

    Attributes:
        key: Which one is taken.
        rows: The jobs, by their ids.
        holds: Whether new jobs wait in the queue and are not begun.
        forgets_list: Whether jobs are missing in lists.
    """

    def __init__(self, runner: JobRunner) -> None:
        self.key = KEY
        self.rows: dict[str, _Row] = {}
        self.holds = False
        self.forgets_list = False
        super().__init__(runner)

    def routes(self) -> Iterator[Route]:
        yield "GET", "/api/v2/", lambda _: Answer({"title": "DLTS Dashboard API v2"})
        yield "GET", "/api/teams", lambda _: Answer([{"id": TEAM, "clusters": [{"id": CLUSTER, "admin": False}]}])
        yield "POST", _JOBS, self._submit
        yield "PUT", f"{_JOBS}/([^/]+)/status", self._set_status
        yield "GET", f"{_JOBS}/([^/]+)/status", self._status
        yield "GET", "/api/v2/clusters/([^/]+)/teams/([^/]+)/jobs", self._list
        yield "GET", "/api/v2/clusters/([^/]+)/jobs/([^/]+)", self._details

    def admit(self, asked: Asked) -> None:
        if asked.path == "/api/v2/":
            return
        if (asked.query.get("email"), asked.query.get("password")) != (EMAIL, self.key):
            raise RefusalError(403, "Invalid token")
        if "/clusters/" in asked.path and asked.path.split("/clusters/")[1].split("/")[0] not in {CLUSTER, ".default"}:
            raise RefusalError(404, "Cluster is not found")

    def refusal(self, refusal: RefusalError) -> Answer:
        return Answer(refusal.text.encode(), refusal.code, {"Content-Type": "text/plain"})

    def status(self, job_id: str) -> str:
        """Return the status of a job."""
        row = self.rows[job_id]
        job = self.runner.jobs.get(job_id)
        if row.status or job is None:
            return row.status or "queued"
        if job.is_stopped and job.state != "STOPPED":
            return "killing"
        return {"RUNNING": "running", "STOPPED": "killed", "SUCCEEDED": "finished", "FAILED": "failed"}[job.state]

    def ids(self, name: str) -> list[str]:
        return [key for key, row in self.rows.items() if row.asked["jobName"] == name]

    def lose(self, name: str) -> None:
        for job_id in self.ids(name):
            self.runner.lose(job_id)
            del self.rows[job_id]

    def _submit(self, asked: Asked) -> Answer:
        if not asked.headers.get("content-type", "").startswith("application/json"):
            raise RefusalError(415, "application/json is expected")
        job = json.loads(asked.body)
        faults = [error.message for error in jsonschema.Draft7Validator(_JOB).iter_errors(job)]
        if faults:
            raise RefusalError(400, "; ".join(faults))
        if job["vcName"] != TEAM:
            return Answer({"error": "Cannot create job!Access Denied!"})
        job_id = job.get("jobId") or str(uuid.uuid4())
        if job_id in self.rows:
            return Answer({"error": "Cannot create job!Cannot schedule job. Cannot add job into database."})
        self.rows[job_id] = _Row(job, detail=[{"message": "waiting for available resource."}])
        if not self.holds:
            self.runner.start(job_id, job["cmd"], {})
        return Answer({"jobId": job_id})

    def _row(self, job_id: str) -> dict[str, object]:
        row = self.rows[job_id]
        return {
            "jobId": job_id, "jobName": row.asked["jobName"], "userName": EMAIL, "vcName": TEAM,
            "jobStatus": self.status(job_id), "jobStatusDetail": row.detail, "jobType": "training",
            "jobParams": row.asked,
        }  # fmt: skip

    def _list(self, asked: Asked) -> Answer:
        if unknown := set(asked.query) - {"email", "password", "limit", "user"}:
            raise RefusalError(400, f"unknown parameters {unknown}")
        rows = [] if self.forgets_list else [self._row(job_id) for job_id in self.rows]
        ended = [row for row in rows if row["jobStatus"] in _ENDED]
        kept = ended[-int(asked.query.get("limit", "10")) :]
        return Answer([*kept, *(row for row in rows if row not in ended), None])

    def _details(self, asked: Asked) -> Answer:
        job_id = asked.parts[1]
        return Answer(self._row(job_id) if job_id in self.rows else {})

    def _known(self, asked: Asked) -> str:
        job_id = asked.parts[1]
        if job_id not in self.rows:
            raise RefusalError(404, "Not Found")
        return job_id

    def _status(self, asked: Asked) -> Answer:
        job_id = self._known(asked)
        error = self.rows[job_id].error
        return Answer({"status": self.status(job_id), **({"message": error} if error else {})})

    def _set_status(self, asked: Asked) -> Answer:
        if json.loads(asked.body) != {"status": "killing"}:
            raise RefusalError(400, "Invalid status")
        job_id = self._known(asked)
        if self.status(job_id) in _ENDED:
            return Answer(f'{{"result": "Cannot Kill the job. Job ID:{job_id}"}}'.encode())
        if job_id in self.runner.jobs:
            self.runner.stop(job_id)
            self.rows[job_id].status = ""
        else:
            self.rows[job_id].status = "killed"
        return Answer(b'{"result": "Success, the job is scheduled to be terminated."}')

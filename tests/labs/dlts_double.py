"""A double of the dashboard of DLTS (DLWorkspace) with its REST interface behind it, and of one cluster.

It refuses fields that the interface does not describe. Its jobs are processes here, so images are names alone. The
command of a distributed job runs beside its workers, which it reaches by SSH: here by a program of that name.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import jsonschema  # type: ignore[import-untyped] # has no stubs

from tests.labs.service_double import Answer, Asked, RefusalError, Route, ServiceDouble
from tests.labs.service_jobs import JobRunner, new_address

EMAIL = "ada@example.org"
KEY = "0123456789abcdef0123456789abcdef"
TEAM = "vision"
CLUSTER = "azure-eastus-p40"
_WORDS = {
    "WAITING": "scheduling", "RUNNING": "running", "STOPPED": "killed", "SUCCEEDED": "finished", "FAILED": "failed",
}  # fmt: skip
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
_SSH = """#!/bin/sh
how=$1; host=$2; shift 2
address=$(sed -n "s/^$host //p" "$0-hosts")
[ -n "$address" ] || { echo "ssh: Could not resolve hostname $host" >&2; exit 255; }
case $how in
-G) echo "host $host"; echo "hostname $address"; echo "port 22" ;;
-n) echo $$ >"$0-$host"; exec env DLTS_ROLE_NAME=worker DLTS_ROLE_IDX=${host#worker-} sh -c "$*" </dev/null ;;
*) echo "ssh: unknown option $how" >&2; exit 255 ;;
esac
"""


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
        return _WORDS[job.state]

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
        is_distributed = job.get("jobtrainingtype") == "PSDistJob"
        if is_distributed and (job.get("numps"), job.get("numpsworker", 0) > 0) != (1, True):
            return Answer({"error": "ERROR: Invalid numpsworker value"})
        self.rows[job_id] = _Row(job, detail=[{"message": "waiting for available resource."}])
        if not self.holds:
            environ = self._hosts(job_id, job["numpsworker"]) if is_distributed else {}
            self.runner.start(job_id, job["cmd"], environ)
        return Answer({"jobId": job_id})

    def _hosts(self, job_id: str, workers: int) -> dict[str, str]:
        """Make the workers of a distributed job; return the variables of the process that has its command."""
        ssh = self._ssh(job_id)
        ssh.parent.mkdir(parents=True)
        ssh.write_text(_SSH)
        ssh.chmod(0o700)
        lines = [f"worker-{number} {new_address()}\n" for number in range(workers)]
        Path(f"{ssh}-hosts").write_text("".join(lines))
        return {"PATH": f"{ssh.parent}:{os.environ['PATH']}", "DLTS_ROLE_NAME": "ps", "DLTS_ROLE_IDX": "0"}

    def _ssh(self, job_id: str) -> Path:
        return self.runner.folder / f"ssh-{job_id}" / "ssh"

    def kill_worker(self, job_id: str, number: int, code: int = signal.SIGKILL) -> None:
        """Kill a worker of a distributed job; one that has ended is passed over."""
        pid = int(Path(f"{self._ssh(job_id)}-worker-{number}").read_text())
        with contextlib.suppress(OSError):
            if str(self.rows[job_id].asked["jobName"]) in Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(pid, code)

    def close(self) -> None:
        """End the server, its jobs, and the workers of those that are distributed."""
        for job_id in self.runner.jobs:
            for number in range(len(list(self._ssh(job_id).parent.glob("ssh-worker-*")))):
                self.kill_worker(job_id, number)
        super().close()

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

"""A double of PAI-DLC's interface (2020-12-03) in one region, over HTTPS; it checks signatures as the real one does.

It refuses fields that the interface does not have. Its jobs are processes here, so images and machines are names alone,
and a data source is mounted where this machine has it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jsonschema  # type: ignore[import-untyped] # has no stubs

from tests.labs.kubernetes.server.certificates import Authority
from tests.labs.service_double import Answer, Asked, RefusalError, Route, ServiceDouble
from tests.labs.service_jobs import JobRunner, new_address

KEY_ID = "LTAI5tDouble0123456789"
KEY = "double-access-key-secret"
WORKSPACE = "123456"
INSTANCE = "ecs.gn6i-c4g1.xlarge"
VERSION = "2020-12-03"
_MOST_BYTES = 65_536
_ALGORITHM = "ACS3-HMAC-SHA256"
_SKEW = timedelta(minutes=15)
_TEXT = {"type": "string"}
_NONE = {"type": "array", "maxItems": 0}  # the SDK sends lists that were not given as empty ones
_RESOURCES = {
    "type": "object",
    "properties": {
        "CPU": {"type": "string", "pattern": r"^\d+(\.\d+)?$"}, "GPU": {"type": "string", "pattern": r"^\d+$"},
        "GPUType": _TEXT, "Memory": {"type": "string", "pattern": r"^\d+Gi$"},
        "SharedMemory": {"type": "string", "pattern": r"^\d+Gi$"},
    },
    "additionalProperties": False,
}  # fmt: skip
_SPEC = {
    "type": "object",
    "properties": {
        "Type": _TEXT, "Image": _TEXT,
        "PodCount": {"type": "integer", "minimum": 1}, "EcsSpec": _TEXT, "ResourceConfig": _RESOURCES,
        "ElasticSpotSpecs": _NONE, "LocalMountSpecs": _NONE, "StartupDependencies": _NONE,
        "RestartPolicy": {"enum": ["Always", "Never", "OnFailure", "ExitCode"]},
    },
    "required": ["Type", "Image", "PodCount"],
    "oneOf": [{"required": ["EcsSpec"]}, {"required": ["ResourceConfig"]}],
    "additionalProperties": False,
}  # fmt: skip
_JOB = {
    "type": "object",
    "properties": {
        "DisplayName": {"type": "string", "pattern": r"^[A-Za-z0-9_.-]{1,256}$"},
        "JobType": {"enum": ["TFJob", "PyTorchJob", "MPIJob", "XGBoostJob", "OneFlowJob", "ElasticBatchJob"]},
        "JobSpecs": {"type": "array", "items": _SPEC, "minItems": 1},
        "UserCommand": {"type": "string", "minLength": 1},
        "WorkspaceId": {"enum": [WORKSPACE]},
        "ResourceId": _TEXT,
        "Priority": {"type": "integer", "minimum": 1, "maximum": 9},
        "Envs": {"type": "object", "additionalProperties": _TEXT},
        "CustomEnvs": _NONE,
        "DataSources": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"DataSourceId": _TEXT, "Uri": _TEXT, "MountPath": _TEXT},
                "additionalProperties": False,
            },
        },
    },
    "required": ["DisplayName", "JobType", "JobSpecs", "UserCommand"],
    "additionalProperties": False,
}
_TYPES = {"TFJob": {"Chief", "PS", "Worker", "Evaluator", "GraphLearn"}}
_ALONE = frozenset({"Master", "Chief"})
_LIST = frozenset({"WorkspaceId", "DisplayName", "ShowOwn", "StartTime", "SortBy", "Order", "PageNumber", "PageSize"})
_ACTIONS = {"POST jobs": "CreateJob", "GET jobs": "ListJobs", "GET ecsspecs": "ListEcsSpecs", "POST stop": "StopJob"}


class DlcDouble(ServiceDouble):
    """One region with one workspace.

    Args:
        runner: Runs its jobs.
        folder: Where its certificates go.

    Attributes:
        key: Which secret signs.
        ca_file: The certificate of its authority.
        asked_jobs: What each job was made of, by its id.
        words: A status and a reason that override those of a job's process, by its id.
        holds: Whether new jobs wait in the queue and are not begun.
        hides_new: Whether jobs are missing in lists.
    """

    def __init__(self, runner: JobRunner, folder: Path) -> None:
        self.key = KEY
        self.asked_jobs: dict[str, dict[str, object]] = {}
        self.words: dict[str, tuple[str, str, str]] = {}
        self.holds = False
        self.hides_new = False
        self._nonces: set[str] = set()
        folder.mkdir()
        self.ca_file = folder / "ca.pem"
        authority = Authority()
        self.ca_file.write_bytes(authority.certificate)
        authority.write_server(folder / "server.pem", ["127.0.0.1"])
        super().__init__(runner, folder / "server.pem")

    def routes(self) -> Iterator[Route]:
        yield "POST", "/api/v1/jobs", self._create
        yield "GET", "/api/v1/jobs", self._list
        yield "POST", "/api/v1/jobs/([^/]+)/stop", self._stop
        yield "GET", "/api/v1/ecsspecs", self._specs

    def admit(self, asked: Asked) -> None:
        headers = asked.headers
        if headers.get("x-acs-version") != VERSION:
            raise RefusalError(400, f"InvalidVersion: {headers.get('x-acs-version')}")
        action = _ACTIONS.get(f"{asked.method} {asked.path.rpartition('/')[2]}")
        if headers.get("x-acs-action") != action:
            raise RefusalError(404, f"InvalidAction.NotFound: {headers.get('x-acs-action')}")
        sent = datetime.strptime(headers.get("x-acs-date", ""), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        if abs(datetime.now(UTC) - sent) > _SKEW:
            raise RefusalError(400, "InvalidTimeStamp.Expired: the date is too far from now")
        if (nonce := headers.get("x-acs-signature-nonce", "")) in self._nonces or not nonce:
            raise RefusalError(400, "SignatureNonceUsed: the nonce was used before")
        self._nonces.add(nonce)
        if len(asked.body) > _MOST_BYTES:
            raise RefusalError(400, "RequestTooLarge: 65536 bytes at most")
        self._check_signature(asked)

    def _check_signature(self, asked: Asked) -> None:
        scheme, _, fields = asked.headers.get("authorization", "").partition(" ")
        given = dict(part.split("=", 1) for part in fields.split(",") if part)
        if scheme != _ALGORITHM or given.get("Credential") != KEY_ID:
            raise RefusalError(404, "InvalidAccessKeyId.NotFound: Specified access key is not found.")
        payload = hashlib.sha256(asked.body).hexdigest()
        signed = given["SignedHeaders"].split(";")
        names = sorted(name for name in asked.headers if name.startswith("x-acs-") or name in {"host", "content-type"})
        if asked.headers.get("x-acs-content-sha256") != payload or not set(names) <= set(signed):
            raise RefusalError(400, "IncompleteSignature: the signature does not cover the request")
        query = "&".join(f"{key}={quote(value, safe='~')}" for key, value in sorted(asked.query.items()))
        lines = "".join(f"{name}:{asked.headers[name].strip()}\n" for name in signed)
        text = "\n".join((asked.method, asked.path, query, lines, given["SignedHeaders"], payload))
        to_sign = f"{_ALGORITHM}\n{hashlib.sha256(text.encode()).hexdigest()}"
        if not hmac.compare_digest(
            hmac.new(self.key.encode(), to_sign.encode(), hashlib.sha256).hexdigest(), given["Signature"]
        ):
            raise RefusalError(400, "SignatureDoesNotMatch: Specified signature is not matched with our calculation.")

    def refusal(self, refusal: RefusalError) -> Answer:
        code, _, message = refusal.text.partition(": ")
        return Answer({"Code": code, "Message": message or code, "RequestId": uuid.uuid4().hex}, refusal.code)

    def status(self, job_id: str) -> tuple[str, str, str]:
        """Return the status of a job, and code and text of its reason."""
        if job_id in self.words:
            return self.words[job_id]
        job = self.runner.jobs.get(job_id)
        if job is None:
            return "Queuing", "JobQueuing", "waits for resources"
        if job.is_stopped and job.state != "STOPPED":
            return "Stopping", "", ""
        if job.state == "FAILED":
            return "Failed", "PodFailed", "The worker ended with an error."
        return (
            {"WAITING": "Queuing", "RUNNING": "Running", "STOPPED": "Stopped", "SUCCEEDED": "Succeeded"}[job.state],
            "",
            "",
        )

    def ids(self, name: str) -> list[str]:
        return [key for key, job in self.asked_jobs.items() if job["DisplayName"] == name]

    def lose(self, name: str) -> None:
        for job_id in self.ids(name):
            self.runner.lose(job_id)
            del self.asked_jobs[job_id]

    def _create(self, asked: Asked) -> Answer:
        job = json.loads(asked.body)
        faults = [error.message for error in jsonschema.Draft7Validator(_JOB).iter_errors(job)]
        if faults:
            raise RefusalError(400, f"InvalidParameter: {'; '.join(faults)}")
        self._check_workers(job)
        job_id = f"dlc{uuid.uuid4().hex[:12]}"
        self.asked_jobs[job_id] = {**job, "GmtCreateTime": time.time()}
        if not self.holds:
            self.runner.start(job_id, job["UserCommand"], job.get("Envs", {}), workers=_workers(job))
        return Answer({"JobId": job_id, "RequestId": uuid.uuid4().hex})

    def _check_workers(self, job: dict[str, Any]) -> None:
        kinds = [spec["Type"] for spec in job["JobSpecs"]]
        if len(set(kinds)) < len(kinds):
            raise RefusalError(400, f"InvalidParameter: {kinds} has a type twice")
        if not set(kinds) <= _TYPES.get(job["JobType"], {"Master", "Worker"}):
            raise RefusalError(400, f"InvalidParameter: {kinds} are no types of a {job['JobType']}")
        if several := [spec["Type"] for spec in job["JobSpecs"] if spec["Type"] in _ALONE and spec["PodCount"] != 1]:
            raise RefusalError(400, f"InvalidParameter: there is one {several[0]}")

    def _list(self, asked: Asked) -> Answer:
        if unknown := set(asked.query) - _LIST:
            raise RefusalError(400, f"InvalidParameter: {unknown}")
        text = asked.query.get("DisplayName", "").lower()
        ids = [] if self.hides_new else list(reversed(self.asked_jobs))
        rows = []
        for job_id in ids:
            name = str(self.asked_jobs[job_id]["DisplayName"])
            if text in name.lower():
                status, code, reason = self.status(job_id)
                rows.append(
                    {
                        "JobId": job_id, "DisplayName": name, "Status": status, "ReasonCode": code,
                        "ReasonMessage": reason, "WorkspaceId": WORKSPACE,
                    }
                )  # fmt: skip
        size = int(asked.query.get("PageSize", "10"))
        begin = size * (int(asked.query.get("PageNumber", "1")) - 1)
        return Answer({"Jobs": rows[begin : begin + size], "TotalCount": len(rows), "RequestId": uuid.uuid4().hex})

    def _stop(self, asked: Asked) -> Answer:
        (job_id,) = asked.parts
        if job_id not in self.asked_jobs:
            raise RefusalError(404, "JobNotFound: there is no such job")
        self.words.pop(job_id, None)
        if job_id in self.runner.jobs:
            self.runner.stop(job_id)
        else:
            self.words[job_id] = ("Stopped", "", "")
        return Answer({"JobId": job_id, "RequestId": uuid.uuid4().hex})

    def _specs(self, asked: Asked) -> Answer:
        if unknown := set(asked.query) - {"InstanceTypes", "PageSize", "PageNumber", "AcceleratorType"}:
            raise RefusalError(400, f"InvalidParameter: {unknown}")
        rows = [{"InstanceType": INSTANCE, "AcceleratorType": "GPU", "Gpu": 1, "Cpu": 4, "Memory": 15}]
        wanted = asked.query.get("InstanceTypes")
        found = [row for row in rows if wanted in {None, row["InstanceType"]}]
        return Answer({"EcsSpecs": found, "TotalCount": len(found), "RequestId": uuid.uuid4().hex})


def _workers(job: dict[str, Any]) -> list[dict[str, str]]:
    """Return the variables of the workers of a job, that of the master first."""
    if job["JobType"] == "TFJob":
        return _tensorflow_workers(job["JobSpecs"])
    count = sum(spec["PodCount"] for spec in job["JobSpecs"])
    if job["JobType"] != "PyTorchJob":
        return [{}] * count
    shared = {"MASTER_ADDR": new_address(), "MASTER_PORT": "23456", "WORLD_SIZE": str(count)}
    return [{**shared, "RANK": str(rank)} for rank in range(count)]


def _tensorflow_workers(specs: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return `TF_CONFIG` of each worker: the addresses of all by their types, and which of them it is."""
    cluster = {}
    tasks = []
    for spec in specs:
        kind = spec["Type"].lower()
        cluster[kind] = [f"{new_address()}:2222" for _ in range(spec["PodCount"])]
        tasks += [{"type": kind, "index": index} for index in range(spec["PodCount"])]
    return [{"TF_CONFIG": json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})} for task in tasks]

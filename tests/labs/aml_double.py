"""A double of Azure Machine Learning: its logins, its resource manager, the run history and the blob store.

Jobs are processes here, so images are names alone, and the blob store is a folder that jobs have mounted. A job may say
what the models of `azure-ai-ml` can say.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode
from xml.sax.saxutils import escape

import jsonschema  # type: ignore[import-untyped] # has no stubs

from tests.labs.service_double import Answer, Asked, RefusalError, Route, ServiceDouble
from tests.labs.service_jobs import Job, JobRunner, new_address

TENANT = "72f988bf-0000-4000-8000-000000000000"
CLIENT = "autotrain-tests"
SECRET = "client-secret-0123456789"
SUBSCRIPTION = "7a6b2c1d-0000-4000-8000-000000000000"
GROUP = "research"
WORKSPACE = "vision"
COMPUTE = "cluster"
ACCOUNT = "visionblobs"
KEY = "YWNjb3VudC1rZXktMDEyMzQ1Njc4OQ=="
_SCOPE = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.MachineLearningServices"
    f"/workspaces/{WORKSPACE}"
)
_CONTAINER = "azureml-blobstore"
_LOGS = "azureml"
_DATASTORE = "workspaceblobstore"
_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}


def _strict(required: tuple[str, ...] = (), **properties: object) -> dict[str, object]:
    return {
        "type": "object", "properties": properties, "required": list(required), "additionalProperties": False,
    }  # fmt: skip


_OUTPUT = _strict(
    ("jobOutputType",), jobOutputType={"const": "uri_folder"}, mode={"enum": ["ReadWriteMount", "Upload", "Direct"]},
    uri=_TEXT, assetName=_TEXT, description=_TEXT,
)  # fmt: skip
_DISTRIBUTION = _strict(
    ("distributionType",), distributionType={"const": "PyTorch"},
    processCountPerInstance={"type": "integer", "minimum": 1},
)  # fmt: skip
_JOB = _strict(
    ("jobType", "command", "environmentId"),
    jobType={"const": "Command"}, command={**_TEXT, "minLength": 1}, environmentId=_TEXT, codeId=_TEXT, computeId=_TEXT,
    componentId=_TEXT, displayName=_TEXT, description=_TEXT, experimentName={**_TEXT, "pattern": "^[a-zA-Z0-9_.-]+$"},
    tags=_TEXTS, properties=_TEXTS, environmentVariables=_TEXTS, isArchived={"type": "boolean"},
    inputs={"type": "object"}, outputs={"type": "object", "additionalProperties": _OUTPUT},
    resources=_strict(
        instanceCount={"type": "integer", "minimum": 1}, instanceType=_TEXT,
        shmSize={**_TEXT, "pattern": r"^\d+[bkmg]$"}, dockerArgs=_TEXT, properties={"type": "object"},
    ),
    limits={"type": "object"}, distribution=_DISTRIBUTION, identity={"type": "object"},
    queueSettings={"type": "object"},
)  # fmt: skip
_BODIES = {
    "environments": _strict(("properties",), properties=_strict(image=_TEXT, condaFile=_TEXT, osType=_TEXT)),
    "jobs": _strict(("properties",), properties=_JOB),
}
_STATUS = {
    "WAITING": "Queued", "RUNNING": "Running", "STOPPED": "Canceled", "SUCCEEDED": "Completed", "FAILED": "Failed",
}  # fmt: skip


def sign(query: Mapping[str, str]) -> str:
    """Return the signature of an account's shared access signature, by Azure's rules for this version."""
    told = [ACCOUNT, *(query.get(key, "") for key in ("sp", "ss", "srt", "st", "se", "sip", "spr", "sv")), ""]
    digest = hmac.new(base64.b64decode(KEY), "\n".join(told).encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def is_signed(query: Mapping[str, str]) -> bool:
    """Return whether a query has a signature that is good now."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    is_known = query.get("sv") == "2019-12-12" and query.get("ss") == "b" and query.get("srt") == "co"
    return is_known and query.get("se", "") > now and query.get("sig") == sign(query)


class AmlDouble(ServiceDouble):
    """One workspace with the compute `cluster`.

    Args:
        runner: Runs its jobs.
        storage: The folder of the blob store.
        certificate: Of the server, with its key.

    Attributes:
        issued: How many tokens were made.
        secrets_type: `Sas`, `AccountKey`, or `None` of a datastore that only a login opens.
        page: How many jobs a list gives at once.
        log_bytes: How much of logs was given.
    """

    def __init__(self, runner: JobRunner, storage: Path, certificate: Path) -> None:
        self.issued = 0
        self.secrets_type = "Sas"
        self.page = 100
        self.log_bytes = 0
        self._storage = storage
        self._valid: dict[str, str] = {}
        self._log_signature = "log-1"
        self._environments: set[str] = set()
        super().__init__(runner, certificate)

    def token(self, audience: str) -> str:
        """Give the token that is taken now."""
        if audience not in self._valid:
            self.issued += 1
            self._valid[audience] = f"token-{self.issued}-0123456789"
        return self._valid[audience]

    def expire(self) -> None:
        """Take no token and no signature of a log that was given until now."""
        self._valid.clear()
        self._log_signature += "1"

    def routes(self) -> Iterator[Route]:
        yield "GET", f"/{TENANT}/v2.0/.well-known/openid-configuration", self._authority
        yield "POST", f"/{TENANT}/oauth2/v2.0/token", self._give_token
        yield "GET", _SCOPE, self._workspace
        yield "GET", f"{_SCOPE}/computes/([^/]+)", self._compute
        yield "GET", f"{_SCOPE}/datastores/([^/]+)", self._datastore
        yield "POST", f"{_SCOPE}/datastores/([^/]+)/listSecrets", self._secrets
        yield "PUT", f"{_SCOPE}/environments/([^/]+)/versions/([^/]+)", self._put_environment
        yield "PUT", f"{_SCOPE}/jobs/([^/]+)", self._put_job
        yield "GET", f"{_SCOPE}/jobs/([^/]+)", self._get_job
        yield "GET", f"{_SCOPE}/jobs", self._list
        yield "POST", f"{_SCOPE}/jobs/([^/]+)/cancel", self._cancel
        yield "GET", f"/history/v1.0{_SCOPE}/runs/([^/]+)/details", self._details
        yield "GET", rf"/{_LOGS}/ExperimentRun/dcid.([^/]+)/user_logs/std_log\D*(\d*).txt", self._log
        yield "GET", f"/{_CONTAINER}", self._names
        for method in ("GET", "PUT", "DELETE"):
            yield method, f"/{_CONTAINER}/(.+)", self._blob

    def admit(self, asked: Asked) -> None:
        path = asked.path
        if path.startswith(f"/{TENANT}/"):
            return
        if path.startswith((f"/{_CONTAINER}", f"/{_LOGS}/")):
            self._admit_to_blobs(asked)
            return
        if path.startswith(_SCOPE) and asked.query.get("api-version") != "2024-10-01":
            raise RefusalError(400, "The api-version query parameter is missing or not supported.")
        if not self._is_taken(asked, f"{self.address}/.default"):
            raise RefusalError(401, "The access token has expired.")

    def _is_taken(self, asked: Asked, audience: str) -> bool:
        return audience in self._valid and asked.headers.get("authorization") == f"Bearer {self._valid[audience]}"

    def _admit_to_blobs(self, asked: Asked) -> None:
        if asked.headers.get("x-ms-version") is None:
            raise RefusalError(400, "x-ms-version is missing.")
        if asked.path.startswith(f"/{_LOGS}/"):
            is_admitted = asked.query.get("sig") == self._log_signature
        elif self.secrets_type == "None":
            is_admitted = self._is_taken(asked, "https://storage.azure.com/.default")
        else:
            is_admitted = is_signed(asked.query)
        if not is_admitted:
            raise RefusalError(403, "Server failed to authenticate the request.")

    def refusal(self, refusal: RefusalError) -> Answer:
        return Answer({"error": {"code": "Refused", "message": refusal.text}}, refusal.code)

    def _authority(self, asked: Asked) -> Answer:
        here = f"{self.address}/{TENANT}"
        return Answer({
            "token_endpoint": f"{here}/oauth2/v2.0/token", "authorization_endpoint": f"{here}/oauth2/v2.0/authorize",
            "issuer": f"{here}/v2.0",
        })  # fmt: skip

    def _give_token(self, asked: Asked) -> Answer:
        form = dict(parse_qsl(asked.body.decode()))
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT, SECRET):
            return Answer(
                {"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret."}, 401
            )
        audience = next(one for one in form["scope"].split() if one.endswith("/.default"))
        return Answer({"token_type": "Bearer", "expires_in": 3600, "access_token": self.token(audience)})

    def _workspace(self, asked: Asked) -> Answer:
        place = {"discoveryUrl": f"{self.address}/discovery", "workspaceId": "4e0a"}
        return Answer({"name": WORKSPACE, "location": "westeurope", "properties": place})

    def _compute(self, asked: Asked) -> Answer:
        if asked.parts != (COMPUTE,):
            raise RefusalError(404, f"Compute {asked.parts[0]} was not found.")
        return Answer({"name": COMPUTE, "properties": {"computeType": "AmlCompute"}})

    def _datastore(self, asked: Asked) -> Answer:
        if asked.parts != (_DATASTORE,):
            raise RefusalError(404, f"Datastore {asked.parts[0]} was not found.")
        store = {"datastoreType": "AzureBlob", "accountName": ACCOUNT, "containerName": _CONTAINER, "protocol": "https"}
        return Answer({"name": _DATASTORE, "properties": {**store, "endpoint": "core.windows.net"}})

    def _secrets(self, asked: Asked) -> Answer:
        if self.secrets_type == "None":
            raise RefusalError(400, "No secrets are stored for this datastore.")
        if self.secrets_type == "AccountKey":
            return Answer({"secretsType": "AccountKey", "key": KEY})
        expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        query = {"sv": "2019-12-12", "ss": "b", "srt": "co", "sp": "rwdlac", "se": expires, "spr": "https"}
        return Answer({"secretsType": "Sas", "sasToken": f"?{urlencode({**query, 'sig': sign(query)})}"})

    def _content(self, asked: Asked, kind: str) -> dict[str, Any]:
        if asked.headers.get("content-type") != "application/json":
            raise RefusalError(415, "application/json is expected")
        content = json.loads(asked.body)
        faults = [error.message for error in jsonschema.Draft7Validator(_BODIES[kind]).iter_errors(content)]
        if faults:
            raise RefusalError(400, "; ".join(faults))
        return cast("dict[str, Any]", content["properties"])

    def _put_environment(self, asked: Asked) -> Answer:
        self._content(asked, "environments")
        self._environments.add(asked.path)
        return Answer({"id": asked.path}, 201)

    def _put_job(self, asked: Asked) -> Answer:
        job = self._content(asked, "jobs")
        (name,) = asked.parts
        if job["environmentId"] not in self._environments:
            raise RefusalError(400, f"There is no environment {job['environmentId']}.")
        if job.get("computeId") != f"{_SCOPE}/computes/{COMPUTE}":
            raise RefusalError(400, f"There is no compute {job.get('computeId')}.")
        command = str(job["command"])
        for output, content in job.get("outputs", {}).items():
            prefix = f"azureml://datastores/{_DATASTORE}/paths/"
            if not content["uri"].startswith(prefix):
                raise RefusalError(400, f"There is no datastore of {content['uri']}.")
            folder = (self._storage / content["uri"].removeprefix(prefix)).resolve()
            command = command.replace(f"${{{{outputs.{output}}}}}", str(folder))
        if "${{" in command:
            raise RefusalError(400, "The command names an output that the job does not have.")
        if not self.runner.start(name, command, job.get("environmentVariables", {}), workers=_workers(job)):
            return Answer(self._row(name))  # a job that is there is updated, and not started again
        return Answer(self._row(name), 201)

    def _row(self, name: str) -> dict[str, object]:
        status = _STATUS[self.runner.jobs[name].state]
        return {"id": f"{_SCOPE}/jobs/{name}", "name": name, "properties": {"jobType": "Command", "status": status}}

    def _known(self, asked: Asked) -> Job:
        job = self.runner.jobs.get(asked.parts[0])
        if job is None:
            raise RefusalError(404, f"Job {asked.parts[0]} was not found.")
        return job

    def _get_job(self, asked: Asked) -> Answer:
        self._known(asked)
        return Answer(self._row(asked.parts[0]))

    def _list(self, asked: Asked) -> Answer:
        if unknown := set(asked.query) - {"api-version", "$skip", "jobType", "tag", "listViewType", "properties"}:
            raise RefusalError(400, f"unknown parameters {unknown}")
        names = list(reversed(self.runner.jobs))
        begin = int(asked.query.get("$skip", "0"))
        found: dict[str, object] = {"value": [self._row(name) for name in names[begin : begin + self.page]]}
        if begin + self.page < len(names):
            query = {**asked.query, "$skip": str(begin + self.page)}
            found["nextLink"] = f"{self.address}{asked.path}?{urlencode(query)}"
        return Answer(found)

    def _cancel(self, asked: Asked) -> Answer:
        self._known(asked)
        self.runner.stop(asked.parts[0])
        return Answer(None, 202)

    def _details(self, asked: Asked) -> Answer:
        job = self._known(asked)
        (name,) = asked.parts
        logs = {}
        for worker in range(len(job.workers)):
            file = f"user_logs/std_log_process_{worker}.txt" if len(job.workers) > 1 else "user_logs/std_log.txt"
            logs[file] = f"{self.address}/{_LOGS}/ExperimentRun/dcid.{name}/{file}?sig={self._log_signature}"
        found: dict[str, object] = {"runId": name, "logFiles": logs}
        if job.state == "FAILED":
            told = "Execution failed. User process 'python3' exited with status code 1."
            found["error"] = {"error": {"code": "UserError", "message": told}}
        return Answer(found)

    def _log(self, asked: Asked) -> Answer:
        data = self._known(asked).log_file(int(asked.parts[1] or 0)).read_bytes()
        wanted = asked.headers.get("x-ms-range", "bytes=0-")
        begin, end = (int(one) if one else len(data) for one in wanted.removeprefix("bytes=").split("-"))
        if begin and begin >= len(data):
            raise RefusalError(416, "The range specified is invalid for the current size of the resource.")
        found = data[begin : end + 1]
        self.log_bytes += len(found)
        return Answer(found, 206 if len(found) < len(data) else 200)

    def _names(self, asked: Asked) -> Answer:
        if (asked.query.get("restype"), asked.query.get("comp")) != ("container", "list"):
            raise RefusalError(400, "restype=container&comp=list is expected")
        begin = int(asked.query.get("marker", "0"))
        files = [path for path in self._storage.rglob("*") if path.is_file()]
        names = sorted(str(path.relative_to(self._storage)) for path in files)
        found = [name for name in names if name.startswith(asked.query["prefix"])]
        rows = ""
        for name in found[begin : begin + 2]:
            with suppress(FileNotFoundError):  # a job has moved it meanwhile
                rows += self._entry(name)
        marker = begin + 2 if begin + 2 < len(found) else ""
        return Answer(
            f"<EnumerationResults><Blobs>{rows}</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>".encode()
        )

    def _entry(self, name: str) -> str:
        size = (self._storage / name).stat().st_size
        told = f"<Properties><Content-Length>{size}</Content-Length><BlobType>BlockBlob</BlobType></Properties>"
        return f"<Blob><Name>{escape(name)}</Name>{told}</Blob>"

    def _blob(self, asked: Asked) -> Answer:
        path = (self._storage / asked.parts[0]).resolve()
        if asked.method == "PUT":
            if asked.headers.get("x-ms-blob-type") != "BlockBlob":
                raise RefusalError(400, "x-ms-blob-type is missing.")
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = self._storage.parent / f"draft-{secrets.token_hex(8)}"  # a mount never shows a part of a blob
            draft.write_bytes(asked.body)
            draft.rename(path)
            return Answer(None, 201)
        if not path.is_file():
            raise RefusalError(404, "The specified blob does not exist.")
        try:
            if asked.method == "GET":
                return Answer(path.read_bytes())
            path.unlink()
        except FileNotFoundError:  # a job has moved it meanwhile
            raise RefusalError(404, "The specified blob does not exist.") from None
        with suppress(OSError):  # a job writes into it meanwhile
            self._remove_empty(path.parent)
        return Answer(None, 202)

    def _remove_empty(self, folder: Path) -> None:
        """Remove what is no folder any more: in a blob store one is a prefix alone."""
        while folder != self._storage and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent


def _workers(job: dict[str, Any]) -> list[dict[str, str]]:
    """Return the variables of the processes of a job: of PyTorch's distribution, each knows all about the others."""
    count = job.get("resources", {}).get("instanceCount", 1)
    distribution = job.get("distribution")
    if distribution is None:
        return [{}] * count
    if distribution.get("processCountPerInstance", 1) != 1:
        raise RefusalError(400, "The double starts one process on each node.")
    shared = {"MASTER_ADDR": new_address(), "MASTER_PORT": "6105", "WORLD_SIZE": str(count), "LOCAL_RANK": "0"}
    return [{**shared, "RANK": str(node), "NODE_RANK": str(node)} for node in range(count)]

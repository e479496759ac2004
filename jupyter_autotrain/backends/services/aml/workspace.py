"""The interfaces of one workspace: Azure Resource Manager, its run history, the logs of jobs, its blob store."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, cast
from urllib.parse import parse_qsl, urlsplit

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.pods import frames, places
from jupyter_autotrain.backends.services.aml import blobs
from jupyter_autotrain.backends.services.aml.blobs import Container
from jupyter_autotrain.backends.services.aml.login import STORAGE_SCOPE, AzureHttp, Login
from jupyter_autotrain.backends.services.http_client import HttpService, RefusedError, Request, json_request
from jupyter_autotrain.backends.services.shared_folder import ROOT

API_VERSION: Final = "2024-10-01"
_OVERLAP_BYTES = 16 << 10  # more than the longest line of a frame
_LOG = re.compile(r"user_logs/std_log\D*(\d*)\.txt")  # its number is that of the node


class _LogPlace(NamedTuple):
    """A part of a log that was read: its signed address, and the bytes where it begins (-1: not known) and ends."""

    address: str
    begin: int
    end: int = 0


class Workspace:
    """A workspace.

    Args:
        options: Of the profile.
        login: Gives tokens.
    """

    def __init__(self, options: JsonObject, login: Login) -> None:
        self.address = str(options.get("address") or "https://management.azure.com").rstrip("/")
        self.datastore = str(options.get("datastore") or "workspaceblobstore")
        self.path = (
            f"/subscriptions/{options.get('subscription')}/resourceGroups/{options.get('resource_group')}"
            f"/providers/Microsoft.MachineLearningServices/workspaces/{options.get('workspace')}"
        )
        self._blob_address = str(options.get("blob_address") or "")
        self._ca_file = str(options.get("ca_file") or "")
        self._login = login
        self._arm = self._azure(self.address)
        self._history: HttpService | None = None
        self._logs: dict[tuple[str, int, str], _LogPlace] = {}  # by job, node and trial

    def _azure(self, address: str, scope: str = "") -> HttpService:
        return AzureHttp(address, self._login, scope or f"{self.address}/.default", self._ca_file)

    def request(self, method: str, path: str, content: JsonValue = None) -> Request:
        """Return a request about something in the workspace."""
        target = f"{self.path}{path}?api-version={API_VERSION}"
        return Request(method, target) if content is None else json_request(method, target, content)

    def send(self, request: Request) -> JsonObject:
        """Return the answer to a request."""
        return cast("JsonObject", self._arm.json(request) or {})

    def get(self, path: str) -> JsonObject:
        """Return something in the workspace."""
        return self.send(self.request("GET", path))

    def find(self, path: str) -> JsonObject | None:
        """Return something in the workspace; None where it is not there."""
        return self._arm.find(self.request("GET", path))

    def container(self) -> Container:
        """Open the blob store by the datastore's own signature or key, which last an hour; else by this login."""
        found = cast("Mapping[str, str]", self.get(f"/datastores/{self.datastore}")["properties"])
        account = found["accountName"]
        address = self._blob_address or f"https://{account}.blob.{found.get('endpoint') or 'core.windows.net'}"
        folder = f"{found['containerName']}/{ROOT}"
        asked = {"expirableSecret": True, "expireAfterHours": 1}
        try:
            secret = self.send(self.request("POST", f"/datastores/{self.datastore}/listSecrets", asked))
        except RefusedError:  # of a datastore that has neither
            return Container(self._azure(address, STORAGE_SCOPE), folder)
        if secret.get("secretsType") == "Sas":
            query: Mapping[str, str] = dict(parse_qsl(str(secret["sasToken"]).lstrip("?")))
        else:
            query = blobs.signature(account, str(secret["key"]))
        login = f"its signature comes from the datastore {self.datastore}"
        http = HttpService("Azure's blob store", address, dict, login, self._ca_file, lambda: query)
        return Container(http, folder)

    def run(self, name: str) -> JsonObject:
        """Return what the run history says of a job."""
        if self._history is None:
            found = cast("JsonObject", self.get("")["properties"])
            address = urlsplit(str(found["discoveryUrl"]))
            self._history = self._azure(f"{address.scheme}://{address.netloc}")
        return cast("JsonObject", self._history.json(Request("GET", f"/history/v1.0{self.path}/runs/{name}/details")))

    def log(self, name: str, node: int, trial: str, *, is_whole: bool) -> str:
        """Return the log of a job's node: all of it, or what is new and some before that.

        Args:
            name: The job.
            node: Its node.
            trial: The trial whose part of the log it is, where that is the log of several; else "".
            is_whole: All of it.
        """
        known = self._logs.get((name, node, trial))
        if known is None:
            known = _LogPlace(self._log_address(name, node), -1 if trial else 0)
        if not known.address:
            return ""
        begin = max(0, known.begin if is_whole else max(known.begin, known.end - _OVERLAP_BYTES))
        try:
            data = self._log_part(known.address, begin)
        except RefusedError:  # its signature has expired
            known = known._replace(address=self._log_address(name, node))
            data = self._log_part(known.address, begin)
        if known.begin < 0:
            begin = data.find(_mark_of(trial))
            if begin < 0:  # the trial has written nothing yet
                return ""
            known = known._replace(begin=begin)
            data = data[begin:]
        data = _until_the_next(data, trial)
        self._logs[name, node, trial] = known._replace(end=begin + len(data))
        return data.replace(_mark_of(trial), b"").decode(errors="replace")

    def forget_log(self, name: str) -> None:
        """Forget where the log of a job or of a trial lies."""
        for key in [key for key in self._logs if name in {key[0], key[2]}]:
            del self._logs[key]

    def _log_address(self, name: str, node: int) -> str:
        """Return the signed address of a log; "" before there is one."""
        files = cast("Mapping[str, str]", self.run(name).get("logFiles") or {})
        for file, address in files.items():
            found = _LOG.fullmatch(file)
            if found and int(found[1] or 0) == node:
                return address
        return ""

    def _log_part(self, address: str, begin: int) -> bytes:
        url = urlsplit(address)
        http = HttpService("Azure's log store", f"{url.scheme}://{url.netloc}", dict, "", self._ca_file)
        headers = {**blobs.API, "x-ms-range": f"bytes={begin}-"} if begin else blobs.API
        return http.call(Request("GET", url.path, dict(parse_qsl(url.query)), headers=headers))


def _mark_of(trial: str) -> bytes:
    """Return the line with which a trial begins in the log of several."""
    return "".join(frames.encode(places.JOB, 0, trial.encode())).encode()


def _until_the_next(data: bytes, trial: str) -> bytes:
    """Return the beginning of a part of a log of several, as far as it is of one trial."""
    mark = _mark_of(trial)
    any_mark = _mark_of("x").partition(b'"x"')[0]
    at = data.find(any_mark)
    while trial and at >= 0:
        if not data.startswith(mark, at):
            return data[:at]
        at = data.find(any_mark, at + 1)
    return data

"""The interfaces of one workspace: Azure Resource Manager, its run history, the logs of jobs, its blob store."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Final, cast
from urllib.parse import parse_qsl, urlsplit

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends.services.aml import blobs
from jupyter_autotrain.backends.services.aml.blobs import Container
from jupyter_autotrain.backends.services.aml.login import STORAGE_SCOPE, AzureHttp, Login
from jupyter_autotrain.backends.services.http_client import HttpService, RefusedError, Request, json_request
from jupyter_autotrain.backends.services.shared_folder import ROOT
from jupyter_autotrain.backends.services.shared_log import SharedLog

API_VERSION: Final = "2024-10-01"
_NO_MORE = 416
_LOG = re.compile(r"user_logs/std_log\D*(\d*)\.txt")  # its number is that of the node


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
        self._logs: dict[tuple[str, int], SharedLog] = {}  # by job and node
        self._addresses: dict[tuple[str, int], str] = {}  # of these logs, signed for a while

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

    def log(self, name: str, node: int) -> SharedLog:
        """Return the log of a job's node."""
        return self._logs.setdefault((name, node), SharedLog(partial(self._log_part, name, node)))

    def forget_log(self, name: str) -> None:
        """Forget the logs of a job."""
        for key in [key for key in self._logs if key[0] == name]:
            del self._logs[key]
            self._addresses.pop(key, None)

    def _log_part(self, name: str, node: int, begin: int, end: int | None) -> bytes:
        """Return a part of a log; nothing before there is one, or where no more is there."""
        address = self._addresses.get((name, node)) or self._log_address(name, node)
        try:
            data = self._log_at(address, begin, end)
        except RefusedError as error:
            if error.code == _NO_MORE:
                return b""
            address = self._log_address(name, node)  # the signature of the known one has expired
            data = self._log_at(address, begin, end)
        self._addresses[name, node] = address
        return data

    def _log_address(self, name: str, node: int) -> str:
        """Return the signed address of a log; "" before there is one."""
        files = cast("Mapping[str, str]", self.run(name).get("logFiles") or {})
        for file, address in files.items():
            found = _LOG.fullmatch(file)
            if found and int(found[1] or 0) == node:
                return address
        return ""

    def _log_at(self, address: str, begin: int, end: int | None) -> bytes:
        if not address:
            return b""
        url = urlsplit(address)
        http = HttpService("Azure's log store", f"{url.scheme}://{url.netloc}", dict, "", self._ca_file)
        wanted = f"bytes={begin}-{'' if end is None else end - 1}"
        headers = {**blobs.API, "x-ms-range": wanted} if begin or end else blobs.API
        return http.call(Request("GET", url.path, dict(parse_qsl(url.query)), headers=headers))

"""Requests as bytes: what a server says, not what a client makes of it. Also small manifests."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML


@dataclass(frozen=True)
class Answer:
    code: int
    body: Any
    warnings: list[str]
    headers: dict[str, str]

    @property
    def message(self) -> str:
        return self.body["message"]

    @property
    def fields(self) -> list[str]:
        return [cause["field"] for cause in self.body["details"]["causes"]]


class Requests:
    """Sends requests with the token or certificate of a kubeconfig's current context."""

    def __init__(self, kubeconfig: Path) -> None:
        content = YAML(typ="safe").load(kubeconfig)
        context = _named(content["contexts"], content["current-context"])["context"]
        cluster = _named(content["clusters"], context["cluster"])["cluster"]
        user = _named(content["users"], context["user"])["user"]
        self.url = cluster["server"]
        self.token = user.get("token", "")
        self._context = ssl.create_default_context(
            cafile=cluster.get("certificate-authority"), cadata=_text(cluster.get("certificate-authority-data"))
        )
        if cluster.get("insecure-skip-tls-verify"):
            self._context.check_hostname = False
            self._context.verify_mode = ssl.CERT_NONE
        with tempfile.TemporaryDirectory() as folder:
            files = [_file_of(user, name, Path(folder)) for name in ("client-certificate", "client-key")]
            if all(files):
                self._context.load_cert_chain(*files)

    def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        kind: str = "application/json",
        **query: str,
    ) -> Answer:
        address = self.url + path + ("?" + urllib.parse.urlencode(query) if query else "")
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": kind, "Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(address, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=60) as response:
                return _answer(response)
        except urllib.error.HTTPError as error:
            with error:
                return _answer(error)


def _answer(response: Any) -> Answer:
    content = response.read()
    body = json.loads(content) if content[:1] in (b"{", b"[") else content.decode()
    return Answer(response.status, body, response.headers.get_all("Warning") or [], dict(response.headers))


def _named(items: list[dict], name: str) -> dict:
    return next(item for item in items if item["name"] == name)


def _file_of(user: dict, name: str, folder: Path) -> str:
    """Return the file of a certificate or key, which may stand in the kubeconfig itself; "" where there is none."""
    if f"{name}-data" not in user:
        return user.get(name, "")
    path = folder / name
    path.write_bytes(base64.b64decode(user[f"{name}-data"]))
    return str(path)


def _text(data: str | None) -> str | None:
    return base64.b64decode(data).decode() if data else None


def pod_spec(**changes: object) -> dict[str, Any]:
    container = {"name": "main", "image": "example.org/nothing:1"}
    return {"restartPolicy": "Never", "nodeSelector": {"nowhere": "yes"}, "containers": [container]} | changes


def pod(name: str, **changes: object) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"app": "x"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(**changes)}


def job(name: str, **changes: object) -> dict[str, Any]:
    """Return a suspended Job: nothing runs."""
    spec = {"suspend": True, "template": {"spec": pod_spec()}} | changes
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def config_map(name: str, **content: object) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} | content


def jobs(namespace: str, name: str = "") -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs" + (f"/{name}" if name else "")


def core_path(namespace: str, plural: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/{plural}" + (f"/{name}" if name else "")

"""AdaptDL's supervisor: the service that pods tell their hints, and ask for each other's addresses."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from tests.labs.kubernetes.adaptdl import pods as adaptdl_pods
from tests.labs.kubernetes.adaptdl.controller import ADAPTDL_JOBS, JOB_LABEL
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.resources import PODS
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

_HINTS = frozenset({
    "initBatchSize", "localBszBounds", "globalBatchSize", "maxBatchSize", "maxProfiledReplicas",
    "gradientAccumulation", "gradParams", "perfParams",
})  # fmt: skip
_DISCOVER_S = 10.0
_LOOK_AGAIN_S = 0.05


class AdaptDLSupervisor:
    """Serves `PUT /hints/NAMESPACE/JOB` and `GET /discover/NAMESPACE/JOB/GROUP`.

    Args:
        store: The objects.
        inside: Enters the network that pods are in.
    """

    def __init__(self, store: ObjectStore, inside: Callable[[], AbstractContextManager[object]]) -> None:
        handler = type("Handler", (_Handler,), {"store": store})
        with inside():
            self._server = ThreadingHTTPServer(("", adaptdl_pods.SUPERVISOR_PORT), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="adaptdl-supervisor", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=10)


class _Handler(BaseHTTPRequestHandler):
    store: ClassVar[ObjectStore]

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_PUT(self) -> None:
        """Hints of a job."""
        kind, namespace, name = self.path.strip("/").split("/")[:3]
        told = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        hints = {key: value for key, value in told.items() if key in _HINTS}
        try:
            self.store.patch(ADAPTDL_JOBS, namespace, name, {"status": {"train": hints}}, subresource="status")
        except ApiError as error:
            self._answer(500, {"message": error.message})
        else:
            self._answer(200 if kind == "hints" else 404, None)

    def do_GET(self) -> None:
        """Answer with the addresses of all pods of a group, by their ranks; 408 where some are missing for long."""
        parts = self.path.partition("?")[0].strip("/").split("/")
        if len(parts) != 4 or parts[0] != "discover":
            self._answer(200 if parts == ["healthz"] else 404, None)
            return
        deadline = time.monotonic() + _DISCOVER_S
        while time.monotonic() < deadline:
            addresses = self._addresses(*parts[1:])
            if addresses and all(addresses):
                self._answer(200, addresses)
                return
            time.sleep(_LOOK_AGAIN_S)
        self._answer(408, None)

    def _addresses(self, namespace: str, name: str, group: str) -> list[str]:
        pods = self.store.list(PODS, namespace, label_selector=f"{JOB_LABEL}={name}")[0]
        pods = [pod for pod in pods if adaptdl_pods.annotation(pod, "group") == group]
        found = [""] * int(adaptdl_pods.annotation(pods[0], "replicas")) if pods else []
        for pod in pods:
            found[int(adaptdl_pods.annotation(pod, "rank"))] = pod["status"].get("podIP") or ""
        return found

    def _answer(self, code: int, content: Json | list[str] | None) -> None:
        data = b"" if content is None else json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

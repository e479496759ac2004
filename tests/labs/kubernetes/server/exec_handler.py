"""Processes in containers over WebSockets (v4 and v5.channel.k8s.io)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from tornado import websocket

from tests.labs.kubernetes.objects.errors import ApiError, bad_request
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.server.exec_streams import CLOSE, ERROR, STDIN, ExecStreams, exit_status
from tests.labs.kubernetes.server.handlers import ObjectsHandler
from tests.labs.kubernetes.server.log_handler import container_of
from tests.labs.kubernetes.server.runtime import ExecProcess

_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_RESIZE = 4


class ExecHandler(websocket.WebSocketHandler, ObjectsHandler):
    """A process in a container."""

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        """Return the newest that both sides speak."""
        return next((name for name in _PROTOCOLS if name in subprotocols), None)

    def check_origin(self, origin: str) -> bool:
        """Clients are no browsers."""
        return True

    async def get(self) -> None:
        """Refuse what cannot be, then go over to the WebSocket."""
        pod = self.server.store.get(self.target.resource, self.target.namespace, self.target.name)
        self.container = container_of(pod, self.option("container"))
        phase = pod.get("status", {}).get("phase")
        if phase in ("Succeeded", "Failed"):
            raise bad_request(f"cannot exec into a container in a completed pod; current phase is {phase}")
        if not pod["spec"].get("nodeName"):
            raise bad_request(f"pod {self.target.name} does not have a host assigned")
        if not self.get_query_arguments("command"):
            raise bad_request("you must specify at least 1 container, stdin, stdout, stderr or a command")
        if self.request.headers.get("Upgrade", "").lower() != "websocket":
            raise bad_request("Upgrade request required")
        self.pod = pod
        await websocket.WebSocketHandler.get(self)

    def post(self) -> None:
        """SPDY: the double speaks only WebSocket."""
        raise ApiError(403, "Forbidden", "unable to upgrade: unable to negotiate protocol: the server speaks WebSocket")

    put = patch = delete = post

    async def open(self, *_: str, **__: str) -> None:
        """Start the process."""
        self.streams = ExecStreams(self.send_channel, stdin=self.flag("stdin"), tty=self.flag("tty"))
        for channel in self.streams.outputs:
            self.send_channel(channel, b"")
        task = asyncio.create_task(self.run())
        self.server.processes[task] = self.streams.abandon
        task.add_done_callback(self.server.processes.pop)

    async def run(self) -> None:
        """Pass on what the process writes, and how it ends."""
        command = self.get_query_arguments("command", strip=False)
        try:
            process = await self.streams.in_thread(self.start, command)
        except (ApiError, OSError) as error:
            self.send_channel(ERROR, json.dumps(_not_started(error)).encode())
        else:
            await self.streams.run(process)
            code = await self.streams.in_thread(process.wait)
            self.send_channel(ERROR, json.dumps(exit_status(code)).encode())
        self.streams.close()
        self.close(1000)

    def start(self, command: Sequence[str]) -> ExecProcess:
        """Start the process in its container."""
        assert self.server.runtime is not None
        stdin, stdout, stderr = self.streams.inside
        return self.server.runtime.exec(self.pod, self.container, command, stdin=stdin, stdout=stdout, stderr=stderr)

    def on_message(self, message: str | bytes) -> None:
        """Input of the process."""
        data = message.encode() if isinstance(message, str) else message
        if not data:
            return
        channel = data[0]
        if channel == STDIN:
            self.streams.write(data[1:])
        elif channel == CLOSE and data[1:2] == bytes([STDIN]):
            self.streams.write(None)
        elif channel == _RESIZE:
            size = json.loads(data[1:])
            self.streams.resize(size["Width"], size["Height"])

    def on_close(self) -> None:
        """End the process of a client that has gone."""
        if hasattr(self, "streams"):
            self.streams.abandon()

    def send_channel(self, channel: int, data: bytes) -> None:
        """Send what a channel carries; nothing where the client has gone."""
        if self.ws_connection is not None and not self.ws_connection.is_closing():
            self.write_message(bytes([channel]) + data, binary=True)


def _not_started(error: Exception) -> Json:
    message = f"error executing command in container: {error}"
    return {"metadata": {}, "status": "Failure", "message": message, "reason": "InternalError", "code": 500}

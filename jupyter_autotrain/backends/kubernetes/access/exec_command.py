"""Commands in running pods, over a WebSocket as `kubectl exec` uses it: a message's first byte names its stream."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.objects.workload import PODS
from jupyter_autotrain.backends.transfer.channels import PATIENCE_S, TailBuffer, no_answer
from jupyter_autotrain.errors import AutotrainError, BackendError, BackendUnavailableError

T = TypeVar("T")

_STDIN = 0
_STDOUT = 1
_STDERR = 2
_ERROR = 3  # how it ended, as JSON
_CLOSE = 255
_PIECE_BYTES = 32_000  # of one message, as other clients send them
_READ_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class ExecResult:
    """The output of a command, and its exit code."""

    stdout: bytes
    stderr: bytes
    exit_code: int


@dataclass(frozen=True, slots=True)
class PodAddress:
    """A container of a pod.

    Attributes:
        namespace, pod, container: Their names.
        python: The interpreter in it.
    """

    namespace: str
    pod: str
    container: str
    python: str


class _Streams:
    """The streams of one command, over its WebSocket."""

    def __init__(self, socket: Any) -> None:  # noqa: ANN401 - of aiohttp, which is an extra
        self._socket = socket

    async def send(self, data: bytes) -> None:
        for begin in range(0, len(data), _PIECE_BYTES):
            await self._socket.send_bytes(bytes([_STDIN]) + data[begin : begin + _PIECE_BYTES])

    async def finish(self) -> None:
        """Close standard input, where the protocol can."""
        if str(self._socket.protocol).startswith("v5"):
            await self._socket.send_bytes(bytes([_CLOSE, _STDIN]))

    async def next(self) -> tuple[int, bytes] | None:
        """Wait for the next piece that it prints, and return its stream; None at the end."""
        async for message in self._socket:
            data = message.data.encode() if isinstance(message.data, str) else message.data
            if isinstance(data, bytes) and len(data) > 1 and data[0] in {_STDOUT, _STDERR, _ERROR}:
                return data[0], data[1:]  # servers begin each stream with an empty piece
        return None


def _opened(
    api: KubernetesApi, at: PodAddress, command: Sequence[str], *, has_input: bool
) -> AbstractAsyncContextManager[Any]:
    query = [("container", at.container), ("stdout", "true"), ("stderr", "true")]
    query += [("stdin", "true")] if has_input else []
    query += [("command", part) for part in command]
    return api.websocket(f"{PODS.path(at.namespace, at.pod)}/exec", query)


async def run(api: KubernetesApi, at: PodAddress, command: Sequence[str], stdin: bytes = b"") -> ExecResult:
    """Run a command in a container.

    Raises:
        ApiRefusedError: The cluster refuses.
        BackendUnavailableError: The connection does not come about, or is cut off.
    """
    printed = {_STDOUT: bytearray(), _STDERR: bytearray(), _ERROR: bytearray()}
    async with _opened(api, at, command, has_input=bool(stdin)) as socket:
        streams = _Streams(socket)
        if stdin:
            await streams.send(stdin)
            await streams.finish()
        while (piece := await streams.next()) is not None:
            printed[piece[0]] += piece[1]
    return ExecResult(bytes(printed[_STDOUT]), bytes(printed[_STDERR]), _exit_code(bytes(printed[_ERROR]), at))


async def follow(
    api: KubernetesApi, at: PodAddress, command: Sequence[str], on_output: Callable[[bytes], object]
) -> None:
    """Run a command in a container, and pass on what it prints as it comes; its standard input ends with this call.

    Raises:
        ApiRefusedError: The cluster refuses.
        BackendUnavailableError: The connection does not come about, or is cut off.
    """
    async with _opened(api, at, command, has_input=True) as socket:
        streams = _Streams(socket)
        while (piece := await streams.next()) is not None:
            if piece[0] == _STDOUT:
                on_output(piece[1])


class ExecChannel:
    """A command in a container as the other end of a `Channel`.

    Args:
        api: The cluster.
        at: The container.
        command: The command.
        name: The place that it works for, in messages.

    Raises:
        ApiRefusedError: The cluster refuses.
        BackendUnavailableError: The connection does not come about.
    """

    def __init__(self, api: KubernetesApi, at: PodAddress, command: Sequence[str], name: str) -> None:
        self._loop = api.loop
        self._at = at
        self._name = name
        self._context = _opened(api, at, command, has_input=True)
        self._streams = _Streams(api.loop.call(self._context.__aenter__()))
        self._tail = TailBuffer()
        self._status = b""

    def send(self, data: bytes, within_s: float = PATIENCE_S) -> None:
        """Do the same as `Channel.send`."""
        try:
            self._wait(self._streams.send(data), within_s)
        except ConnectionError as error:
            raise BrokenPipeError(str(error)) from error

    def finish(self) -> None:
        """Do the same as `Channel.finish`, where the protocol can."""
        self._wait(self._streams.finish(), PATIENCE_S)

    def receive(self, within_s: float = PATIENCE_S) -> bytes:
        """Do the same as `Channel.receive`."""
        while (piece := self._wait(self._streams.next(), within_s)) is not None:
            stream, data = piece
            if stream == _STDOUT:
                return data
            if stream == _STDERR:
                self._tail.add(data)
            else:
                self._status += data
        return b""

    def _wait(self, work: Coroutine[Any, Any, T], within_s: float) -> T:
        waiting = self._loop.start(work)
        try:
            return waiting.result(within_s)
        except TimeoutError:
            waiting.cancel()
            raise no_answer(self._name, within_s) from None

    def stderr(self) -> bytes:
        """Do the same as `Channel.stderr`."""
        return self._tail.bytes()

    def exit_code(self, within_s: float = PATIENCE_S) -> int:
        """Do the same as `Channel.exit_code`; what it still prints is dropped."""
        while self.receive(within_s):
            pass
        return _exit_code(self._status, self._at)

    def close(self) -> None:
        """Do the same as `Channel.close`."""
        with contextlib.suppress(AutotrainError):  # it was cut off
            self._loop.call(self._closed(), PATIENCE_S)

    async def _closed(self) -> None:
        await self._context.__aexit__(None, None, None)


def _exit_code(status: bytes, at: PodAddress) -> int:
    """Return the exit code, as the last message says it; without that message the connection was cut off."""
    try:
        found = json.loads(status)
    except ValueError:
        raise BackendUnavailableError(
            f"The connection to pod {at.pod} was cut off.", "", "It is tried again."
        ) from None
    if found.get("status") == "Success":
        return 0
    for cause in (found.get("details") or {}).get("causes") or []:
        if cause.get("reason") == "ExitCode":
            return int(cause["message"])
    raise BackendError(f"A command cannot be run in pod {at.pod}: {found.get('message')}.")


async def request(api: KubernetesApi, at: PodAddress, do: str, **content: object) -> JsonValue:
    """Have our program in a pod answer a request; see `agent.pods.requests`.

    Raises:
        BackendError: It cannot.
    """
    asked = json.dumps({"do": do, **content}).encode() + b"\n"
    done = await run(api, at, [at.python, "-I", "-S", places.START_REQUEST, "request"], asked)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise _refusal(at, lines[-1] if lines else f"exit code {done.exit_code}") from None
    if "failure" in answer:
        found, expected, action = answer["failure"]
        raise _refusal(at, found.rstrip("."), expected, action)
    return cast("JsonValue", answer["ok"])


def _refusal(at: PodAddress, why: str, expected: str = "", action: str = "") -> BackendError:
    return BackendError(f"Pod {at.pod} cannot do that: {why}.", expected, action)


async def put(api: KubernetesApi, at: PodAddress, path: str, data: bytes) -> None:
    """Write a file into the trial directory of a pod; errors as `request`."""
    await request(api, at, "put", path=path, data=base64.b64encode(data).decode())


async def read(api: KubernetesApi, at: PodAddress, path: str, begin: int, end: int) -> bytes:
    """Read a part of a file of the trial directory; errors as `request`."""
    found = bytearray()
    while begin + len(found) < end:
        offset = begin + len(found)
        asked = {"path": path, "offset": offset, "most_bytes": min(_READ_BYTES, end - offset)}
        piece = base64.b64decode(str(await request(api, at, "get", **asked)))
        if not piece:
            break
        found += piece
    return bytes(found)


async def sizes(api: KubernetesApi, at: PodAddress) -> dict[str, int]:
    """Return all regular files of the trial directory; errors as `request`."""
    found = cast("dict[str, int]", await request(api, at, "list", path="."))
    return {name: size for name, size in found.items() if size >= 0}

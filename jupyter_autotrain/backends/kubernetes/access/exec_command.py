"""Commands in running pods, over a WebSocket as `kubectl exec` uses it: a message's first byte names its stream."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.objects.object_types import PODS
from jupyter_autotrain.backends.kubernetes_pod import places
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

_STDIN = 0
_STDOUT = 1
_STDERR = 2
_ERROR = 3  # how it ended, as JSON
_CLOSE = 255
_PIECE_BYTES = 64 << 10  # of an argument, which a kernel takes up to 128 KiB of
_READ_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class ExecResult:
    """What a command has printed, and how it ended."""

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


async def run(
    api: KubernetesApi, at: PodAddress, command: Sequence[str], stdin: Iterable[bytes] | None = None
) -> ExecResult:
    """Run a command in a container.

    Raises:
        ApiRefusedError: The cluster refuses.
        BackendUnavailableError: The connection does not come about, or is cut off.
    """
    query = [("container", at.container), ("stdout", "true"), ("stderr", "true")]
    query += [("stdin", "true")] if stdin is not None else []
    query += [("command", part) for part in command]
    printed = {_STDOUT: bytearray(), _STDERR: bytearray(), _ERROR: bytearray()}
    async with api.websocket(f"{PODS.path(at.namespace, at.pod)}/exec", query) as socket:
        for piece in stdin or ():
            await socket.send_bytes(bytes([_STDIN]) + piece)
        if stdin is not None and str(socket.protocol).startswith("v5"):
            await socket.send_bytes(bytes([_CLOSE, _STDIN]))
        async for message in socket:
            data = message.data.encode() if isinstance(message.data, str) else message.data
            if isinstance(data, bytes) and data and data[0] in printed:
                printed[data[0]] += data[1:]
    return ExecResult(bytes(printed[_STDOUT]), bytes(printed[_STDERR]), _exit_code(bytes(printed[_ERROR]), at))


def _exit_code(status: bytes, at: PodAddress) -> int:
    """The exit code, as the last message says it; without that message the connection was cut off."""
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


async def request(api: KubernetesApi, at: PodAddress, *arguments: str) -> bytes:
    """Have our program in a pod answer a request.

    Raises:
        BackendError: It cannot.
    """
    done = await run(api, at, [at.python, "-I", "-S", places.START_REQUEST, *arguments])
    if done.exit_code:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise BackendError(f"Pod {at.pod} cannot do that: {lines[-1] if lines else f'exit code {done.exit_code}'}.")
    return done.stdout


async def put(api: KubernetesApi, at: PodAddress, path: str, data: bytes) -> None:
    """Write a file into the trial directory of a pod; errors as `request`."""
    pieces = [data[begin : begin + _PIECE_BYTES] for begin in range(0, len(data), _PIECE_BYTES)] or [b""]
    for piece in pieces[:-1]:
        await request(api, at, "append", path, base64.b64encode(piece).decode())
    await request(api, at, "put", path, base64.b64encode(pieces[-1]).decode())


async def read(api: KubernetesApi, at: PodAddress, path: str, begin: int, end: int) -> bytes:
    """Read a part of a file of the trial directory; errors as `request`."""
    found = bytearray()
    while begin + len(found) < end:
        offset = begin + len(found)
        piece = await request(api, at, "read", path, str(offset), str(min(_READ_BYTES, end - offset)))
        if not piece:
            break
        found += piece
    return bytes(found)


async def sizes(api: KubernetesApi, at: PodAddress) -> dict[str, int]:
    """All regular files of the trial directory; errors as `request`."""
    return cast("dict[str, int]", json.loads(await request(api, at, "list")))

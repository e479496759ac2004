"""Work on a volume of the cluster: a pod that mounts it receives what is sent over `exec`, and removes what is there.

The pod lives as long as one archive is sent; one that a killed manager left ends by its deadline, and `clean` finds it
by its labels.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, cast

from jupyter_autotrain.backends.kubernetes.access import exec_command
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.exec_command import PodAddress
from jupyter_autotrain.backends.kubernetes.manifests import volumes
from jupyter_autotrain.backends.kubernetes.objects.object_types import PODS
from jupyter_autotrain.backends.kubernetes.objects.pod_containers import unexpanded
from jupyter_autotrain.backends.kubernetes.objects.workload import CONTAINER
from jupyter_autotrain.backends.kubernetes.options.security import security_contexts
from jupyter_autotrain.backends.kubernetes.storage.code_objects import volume
from jupyter_autotrain.backends.kubernetes.storage.tar_stream import TarStream
from jupyter_autotrain.backends.kubernetes_pod import layout, places, storage_use
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import BackendError

_CODE = "code"
_AGENT = "agent"  # unpacked: the image's own folders may be read-only
_LIFE_S = 6 * 3600
_REQUESTS: Final = {"cpu": "100m", "memory": "128Mi"}
_LIMITS: Final = {"cpu": "1", "memory": "512Mi"}  # named for namespaces whose quota asks for it; enough for any volume
_LOOK_AGAIN_S = 0.2
_PIECE_BYTES = 32_000  # of one message, as other clients send them
_STDIN, _STDOUT, _STDERR, _STATUS = range(4)  # channels of `exec`
_SLEEP = "import signal, time; signal.signal(15, lambda *_: exit()); time.sleep({seconds})"
_RECEIVE = (
    f"import sys, tempfile; archive = '{places.CODE}/{places.AGENT_ARCHIVE}'; sys.path.insert(0, archive); "
    f"import unpack; folder = tempfile.TemporaryDirectory(dir='{places.AGENT}'); unpack.unpack(archive, folder.name); "
    "sys.path[0] = folder.name; from jupyter_autotrain.backends.kubernetes_pod import archives; "
    f"archives.receive('{layout.STORAGE}', *sys.argv[1:3], int(sys.argv[3]))"
)
_ANSWER = "import sys\nmain({storage!r}, sys.argv[1:])\n"


def manifest(options: JsonObject, image: str, metadata: JsonObject, config_maps: Mapping[str, str]) -> JsonObject:
    """The pod: the storage's volume, the agent's code, and nothing that runs by itself. Its user is that of trials.

    Args:
        options: Of the profile, with a storage that is a volume.
        image: Any with a Python.
        metadata: Name, namespace and labels.
        config_maps: The ConfigMap of `agent.zip`; none where it only answers.
    """
    python = str(options.get("python") or "python3")
    storage = volumes.storage_volume(options)
    mounts = [volumes.storage_mount(options, layout.STORAGE)]
    code: list[JsonObject] = []
    if config_maps:
        code = [volume(_CODE, config_maps), {"name": _AGENT, "emptyDir": {}}]
        mounts += [{"name": _CODE, "mountPath": places.CODE}, {"name": _AGENT, "mountPath": places.AGENT}]
    container: dict[str, Any] = {
        "name": CONTAINER, "image": image, "command": [unexpanded(python), "-c", _SLEEP.format(seconds=_LIFE_S)],
        "volumeMounts": mounts, "resources": {"requests": _REQUESTS, "limits": _LIMITS},
    }  # fmt: skip
    spec: dict[str, Any] = {
        "restartPolicy": "Never", "activeDeadlineSeconds": _LIFE_S, "automountServiceAccountToken": False,
        "containers": [container], "volumes": [storage, *code],
    }  # fmt: skip
    given = {
        "nodeSelector": "node_selector", "tolerations": "tolerations", "affinity": "affinity",
        "serviceAccountName": "service_account",
    }  # fmt: skip
    spec.update({name: options[key] for name, key in given.items() if options.get(key)})
    of_pod, of_container = security_contexts(options)
    spec["securityContext"] = of_pod
    container["securityContext"] = of_container
    secrets = cast("list[str]", options.get("image_pull_secrets") or [])
    if secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in secrets]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@contextlib.contextmanager
def running(api: KubernetesApi, pod: JsonObject, python: str, timeout_s: float) -> Iterator[PodAddress]:
    """A pod that runs meanwhile.

    Raises:
        BackendError: It does not begin.
    """
    metadata = cast("Mapping[str, str]", pod["metadata"])
    namespace = metadata["namespace"]
    name = metadata["name"]
    api.create(PODS, namespace, pod)
    try:
        _wait(api, namespace, name, timeout_s)
        yield PodAddress(namespace, name, CONTAINER, python)
    finally:
        api.delete(PODS, namespace, name, grace_s=0)


def send(api: KubernetesApi, at: PodAddress, stream: TarStream, sha256: str, user: str) -> None:
    """Have an archive unpacked on the volume of a running pod, unless it is there.

    Args:
        api: The cluster.
        at: The pod.
        stream: The archive.
        sha256: Its digest.
        user: The experiment that uses it.

    Raises:
        BackendError: It cannot be sent.
        DataError: A file of it was changed meanwhile.
    """
    arguments = (user, sha256, str(stream.size_bytes))
    command = [("command", part) for part in (at.python, "-c", _RECEIVE, *arguments)]
    flags = [("container", CONTAINER), ("stdin", "true"), ("stdout", "true"), ("stderr", "true")]
    path = f"{PODS.path(at.namespace, at.pod)}/exec"
    api.loop.call(_exchange(api.websocket(path, [*command, *flags]), stream))


def ask(api: KubernetesApi, at: PodAddress, *arguments: str) -> bytes:
    """Have a running pod answer, as `storage_use.main` does; gives what it prints. It needs no `agent.zip`.

    Raises:
        BackendError: It cannot.
    """
    program = Path(storage_use.__file__).read_text(encoding="utf-8") + _ANSWER.format(storage=layout.STORAGE)
    done = api.loop.call(exec_command.run(api, at, [at.python, "-c", program, *arguments]))
    if done.exit_code:
        said = _last_line(done.stderr.decode(errors="replace"))
        raise BackendError(
            f"The storage of the profile cannot do that: {said}.",
            "A volume whose files the user of the image may remove.",
            "Look at the volume of `storage:`, then retry.",
        )
    return done.stdout


def _wait(api: KubernetesApi, namespace: str, name: str, timeout_s: float) -> None:
    deadline_s = time.monotonic() + timeout_s
    while True:
        status = cast("JsonObject", api.get(PODS, namespace, name).get("status") or {})
        if status.get("phase") == "Running":
            return
        if status.get("phase") in {"Failed", "Succeeded"} or time.monotonic() > deadline_s:
            raise BackendError(
                f"The pod that writes to the storage does not begin: {_why(status) or status.get('phase')}.",
                "A pod with the image of the profile, which mounts the volume of `storage:`.",
                "Correct `storage:` or `image:`; or set `local_path:`, where this machine has the folder mounted.",
            )
        time.sleep(_LOOK_AGAIN_S)


def _why(status: JsonObject) -> str:
    """What the cluster says about a pod that does not begin."""
    for container in cast("list[JsonObject]", status.get("containerStatuses") or []):
        waiting = cast("JsonObject", cast("JsonObject", container.get("state") or {}).get("waiting") or {})
        if waiting.get("message") or waiting.get("reason"):
            return str(waiting.get("message") or waiting["reason"]).rstrip(".")
    conditions = cast("list[JsonObject]", status.get("conditions") or [])
    told = [str(one["message"]) for one in conditions if one.get("status") == "False" and one.get("message")]
    return told[0].rstrip(".") if told else ""


async def _exchange(connection: AbstractAsyncContextManager[Any], stream: TarStream) -> None:
    """Send an archive when the other side is ready, and wait for its end."""
    async with connection as socket:
        answers = _answers(socket)
        if (first := await anext(answers, "")) == "there":
            return
        if first == "ready":
            with contextlib.suppress(ConnectionError):  # the other side has ended: what it said last tells why
                await _send_blocks(socket, stream)
            first = await anext(answers, "")
        if first != "done":
            raise BackendError(
                f"The storage of the profile did not take it: {first or 'the connection ended'}.",
                "A volume with room, which can be written.",
                "Look at the volume of `storage:`, then retry.",
            )


async def _send_blocks(socket: Any, stream: TarStream) -> None:  # noqa: ANN401 - of aiohttp, which is an extra
    blocks = stream.blocks()
    loop = asyncio.get_running_loop()
    while block := await loop.run_in_executor(None, next, blocks, b""):
        for begin in range(0, len(block), _PIECE_BYTES):
            await socket.send_bytes(bytes([_STDIN]) + block[begin : begin + _PIECE_BYTES])


async def _answers(socket: Any) -> AsyncIterator[str]:  # noqa: ANN401 - of aiohttp, which is an extra
    """The lines that the other side prints, and at its bad end what it said last."""
    lines = ""
    said = ""
    async for message in socket:
        data = message.data if isinstance(message.data, bytes) else str(message.data).encode()
        channel = data[0]
        text = data[1:].decode(errors="replace")
        if channel == _STDERR:
            said = (said + text)[-1000:]
        elif channel == _STATUS:
            if json.loads(text or "{}").get("status") != "Success":
                yield _last_line(said) or text
            return
        elif channel == _STDOUT:
            lines += text
            *whole, lines = lines.split("\n")
            for line in whole:
                yield line


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""

"""Archives on the volume of the profile's `storage:`; pods find them unpacked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.options.option_defaults import IMAGE, PYTHON, START_TIMEOUT_S
from jupyter_autotrain.backends.kubernetes.storage import loader_pod
from jupyter_autotrain.backends.kubernetes.storage.tar_stream import TarStream
from jupyter_autotrain.backends.kubernetes_pod import archives
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import BackendError, DataError

_DATA = "data"  # of `layout.DATA`, on the volume


class VolumeStorage:
    """Writes by a loader pod.

    Args:
        api: The cluster.
        options: Of the profile.
        metadata: Gives namespace and labels of the pod.
        agent: Gives the ConfigMap of `agent.zip`.
    """

    def __init__(
        self,
        api: KubernetesApi,
        options: JsonObject,
        metadata: Callable[[], JsonObject],
        agent: Callable[[], str],
    ) -> None:
        self._api = api
        self._options = options
        self._metadata = metadata
        self._agent = agent
        self._lock = threading.Lock()
        self._sent: set[str] = set()

    def entry(self, sha256: str) -> JsonObject:  # noqa: ARG002 - it is named by it
        """Pods find it unpacked where they look first."""
        return {}

    def send(self, stream: TarStream, sha256: str) -> None:
        """Have it unpacked on the volume."""
        with self._lock:  # of trials that begin together one sends it
            if sha256 not in self._sent:
                self._send(stream, sha256)
                self._sent.add(sha256)

    def _send(self, stream: TarStream, sha256: str) -> None:
        name = f"autotrain-loader-{sha256[:12]}"
        pod = loader_pod.manifest(
            self._options, str(self._options.get("image") or IMAGE), {**self._metadata(), "name": name},
            {"agent.zip": self._agent()},
        )  # fmt: skip
        timeout_s = float(cast("float", self._options.get("start_timeout") or START_TIMEOUT_S))
        python = str(self._options.get("python") or PYTHON)
        with loader_pod.running(self._api, pod, timeout_s) as (namespace, running):
            loader_pod.send(self._api, (namespace, running), python, stream, sha256)


class MountedStorage:
    """Writes where this machine has the volume mounted.

    Args:
        local_path: The folder here that is the volume's.
    """

    def __init__(self, local_path: str) -> None:
        self._root = Path(local_path).expanduser()

    def entry(self, sha256: str) -> JsonObject:  # noqa: ARG002 - it is named by it
        """Pods find it unpacked where they look first."""
        return {}

    def send(self, stream: TarStream, sha256: str) -> None:
        """Unpack it there, unless it is."""
        folder = self._root / _DATA
        target = Path(archives.unpacked(str(folder), sha256))
        if not self._root.is_dir():
            raise BackendError(
                f"{self._root} is not there.",
                "`local_path:` of the storage is a folder where this machine has the volume mounted.",
                "Mount it, or leave `local_path:` out: then a pod of the cluster writes to the volume.",
            )
        if not target.is_dir():
            try:
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                archives.unpack(cast("BinaryIO", _Reader(stream.blocks())), sha256, str(target))
            except OSError as error:
                raise DataError(f"{target} cannot be written: {error.strerror}.", "", "Look at the mount.") from error


class _Reader:
    """Blocks as a file that is read once."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._rest) < size:
            block = next(self._blocks, b"")
            if not block:
                break
            self._rest += block
        data = self._rest if size < 0 else self._rest[:size]
        self._rest = self._rest[len(data) :]
        return data

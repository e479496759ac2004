"""Archives on the volume of the profile's `storage:`; pods find them unpacked."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, cast

from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.exec_command import PodAddress
from jupyter_autotrain.backends.kubernetes.options.option_defaults import IMAGE, PYTHON, START_TIMEOUT_S
from jupyter_autotrain.backends.kubernetes.storage import loader_pod
from jupyter_autotrain.backends.kubernetes.storage.tar_stream import TarStream
from jupyter_autotrain.backends.kubernetes_pod import archives, storage_use
from jupyter_autotrain.backends.kubernetes_pod.places import AGENT_ARCHIVE
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import BackendError

_MOST_AT_ONCE = 100  # names stand in the address of a request


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
        self._sent: set[tuple[str, str]] = set()

    def entry(self, sha256: str) -> JsonObject:  # noqa: ARG002 - it is named by it
        """Pods find it unpacked where they look first."""
        return {}

    def send(self, stream: TarStream, sha256: str, user: str) -> None:
        """Have it unpacked on the volume; looked for once for each experiment, as one may be removed with another."""
        with self._lock:  # of trials that begin together one sends it
            if (sha256, user) not in self._sent:
                with self._pod({AGENT_ARCHIVE: self._agent()}) as at:
                    loader_pod.send(self._api, at, stream, sha256, user)
                self._sent.add((sha256, user))

    def experiments(self, home: str) -> Mapping[str, int]:
        """By the folders there."""
        with self._pod({}) as at:
            return cast("dict[str, int]", json.loads(loader_pod.ask(self._api, at, "list", home)))

    def remove(self, home: str, experiments: Sequence[str]) -> None:
        """Their folders, and the archives that are in no other's."""
        with self._pod({}) as at:
            for begin in range(0, len(experiments), _MOST_AT_ONCE):
                loader_pod.ask(self._api, at, "remove", home, *experiments[begin : begin + _MOST_AT_ONCE])

    def _pod(self, config_maps: Mapping[str, str]) -> AbstractContextManager[PodAddress]:
        metadata: JsonObject = {**self._metadata(), "name": f"autotrain-loader-{secrets.token_hex(6)}"}
        pod = loader_pod.manifest(self._options, str(self._options.get("image") or IMAGE), metadata, config_maps)
        timeout_s = float(cast("float", self._options.get("start_timeout") or START_TIMEOUT_S))
        return loader_pod.running(self._api, pod, str(self._options.get("python") or PYTHON), timeout_s)


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

    def send(self, stream: TarStream, sha256: str, user: str) -> None:
        """Unpack it there, unless it is."""
        target = Path(archives.unpacked(f"{self._mounted()}/{archives.DATA}", sha256))
        try:
            storage_use.note(str(self._root), user, sha256)
            if not target.is_dir():
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                archives.unpack(cast("BinaryIO", _Reader(stream.blocks())), sha256, str(target))
        except OSError as error:
            raise BackendError(f"{target} cannot be written: {error.strerror}.", "", "Look at the mount.") from error

    def experiments(self, home: str) -> Mapping[str, int]:
        """By the folders there."""
        return storage_use.experiments(str(self._mounted()), home)

    def remove(self, home: str, experiments: Sequence[str]) -> None:
        """Their folders, and the archives that are in no other's."""
        try:
            storage_use.remove(str(self._mounted()), home, experiments)
        except OSError as error:
            path = error.filename or self._root
            raise BackendError(f"{path} cannot be removed: {error.strerror}.", "", "Look at the mount.") from error

    def _mounted(self) -> Path:
        if not self._root.is_dir():
            raise BackendError(
                f"{self._root} is not there.",
                "`local_path:` of the storage is a folder where this machine has the volume mounted.",
                "Mount it, or leave `local_path:` out: then a pod of the cluster writes to the volume.",
            )
        return self._root


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

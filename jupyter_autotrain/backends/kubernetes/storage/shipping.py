"""The way of a trial's files to its pods: in ConfigMaps while it is small, else by the profile's `storage:`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.backends.kubernetes.storage.code_objects import LIMIT_BYTES, CodeFile
from jupyter_autotrain.backends.transfer.folders import FolderManifest, TarStream
from jupyter_autotrain.errors import BackendError

_PACKED_BYTES = 16 * LIMIT_BYTES  # what is greater is not compressed in the hope that a ConfigMap holds it


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive as its pods get it.

    Attributes:
        entry: How a pod finds it, as `agent.objects.archives.place` takes it.
        file: What a ConfigMap holds of it; None where it lies in the storage.
        folder: Its content.
    """

    entry: JsonObject
    file: CodeFile | None
    folder: FolderManifest


class Storage(Protocol):
    """The storage of archives that are too big for ConfigMaps."""

    def entry(self, folder: FolderManifest) -> JsonObject:
        """Return how pods find a folder there: `sha256`, and what `agent.objects.archives.place` takes besides."""
        ...

    def send(self, folder: FolderManifest, user: str) -> None:
        """Have a folder there. What is there already is not sent again.

        Args:
            folder: The folder.
            user: The experiment that uses it, as HOME/EXPERIMENT.

        Raises:
            BackendError: It cannot be sent.
            DataError: A file of it was changed meanwhile, or the storage does not take it.
        """
        ...

    def experiments(self, home: str) -> Mapping[str, int]:
        """Return the experiments of a home that have something there, with its bytes; none where that cannot be told.

        Raises:
            BackendError: It cannot be asked.
            DataError: It does not answer.
        """
        ...

    def remove(self, home: str, experiments: Sequence[str]) -> None:
        """Remove what experiments of a home have there, and the archives that no other uses; errors as above.

        One that has nothing there is passed over.
        """
        ...


class Shipping:
    """Which way archives go to the pods of one profile; remembers what was read.

    Args:
        storage: The profile's; None where it names none.

    Attributes:
        storage: The same.
    """

    def __init__(self, storage: Storage | None) -> None:
        self.storage = storage
        self._packed: dict[str, CodeFile | None] = {}
        self._folders: dict[str, FolderManifest] = {}

    def archive(self, name: str, key: str, read: Callable[[], FolderManifest]) -> Archive:
        """Return an archive; nothing is sent yet.

        Args:
            name: What it is, such as `data.train`.
            key: The same for the same content.
            read: Gives its content; not called where that is known.

        Raises:
            BackendError: It is too big for the cluster, and the profile names no storage.
            DataError: A file of it was changed meanwhile.
        """
        if key not in self._folders:
            self._folders[key] = read()
        folder = self._folders[key]
        if key not in self._packed:
            self._packed[key] = _packed(TarStream(folder))
        file = self._packed[key]
        if file is not None:
            digest = file.name.partition(".")[0]
            return Archive({"name": name, "sha256": digest, "path": f"{places.CODE}/{file.name}"}, file, folder)
        if self.storage is None:
            raise too_big(name, TarStream(folder).size_bytes)
        return Archive({"name": name, **self.storage.entry(folder)}, None, folder)

    def send(self, archive: Archive, user: str) -> None:
        """Have an archive where its pods find it; the ConfigMap of `file` is not made here.

        Args:
            archive: The archive.
            user: The experiment that uses it, as HOME/EXPERIMENT.

        Raises:
            BackendError: It cannot be sent.
            DataError: A file of it was changed meanwhile, or the storage does not take it.
        """
        if archive.file is None and self.storage is not None:
            self.storage.send(archive.folder, user)


def _packed(stream: TarStream) -> CodeFile | None:
    """Return an archive compressed, where a ConfigMap can hold that."""
    if stream.size_bytes > _PACKED_BYTES:
        return None
    content = stream.compressed()
    file = CodeFile(f"{hashlib.sha256(content).hexdigest()}.tar.gz", content)
    return file if file.fits else None


def too_big(what: str, size_bytes: int) -> BackendError:
    """Return the error of what neither fits into a ConfigMap nor has another way."""
    return BackendError(
        f"{what} has {format_bytes(size_bytes)}.",
        f"Without `storage:` in the profile a cluster takes {format_bytes(LIMIT_BYTES)} of it, compressed.",
        "Add one of `storage: {pvc: NAME}`, `{nfs: SERVER:/PATH}`, `{s3: {bucket: NAME, secret: NAME}}` or "
        "`{http: URL}` to the profile; or name data that is there already by `path:` or `url:`.",
    )


def remote_place(options: JsonObject) -> JsonObject | None:
    """`storage:` of a profile, where it is a server; None where it is a volume, or none is named."""
    storage = options.get("storage")
    if not isinstance(storage, Mapping):
        return None
    kinds: Iterable[str] = ("s3", "http")
    found = {kind: storage[kind] for kind in kinds if storage.get(kind)}
    return cast("JsonObject", found) or None


def remote_secret(options: JsonObject) -> str:
    """Return the name of the Secret with the credentials of the storage; "" where none is named."""
    for place in (remote_place(options) or {}).values():
        if isinstance(place, Mapping):
            return str(place.get("secret") or "")
    return ""

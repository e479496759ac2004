"""How what a trial needs gets to its pods: in ConfigMaps while it is small, else by the profile's `storage:`."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, cast

from jupyter_autotrain.backends.kubernetes.storage.code_objects import LIMIT_BYTES, CodeFile
from jupyter_autotrain.backends.kubernetes.storage.tar_stream import TarStream
from jupyter_autotrain.backends.kubernetes_pod import places
from jupyter_autotrain.backends.kubernetes_pod.remote_files import RemoteFiles
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.errors import BackendError

_MOST_S3_BYTES = 5 << 30  # of one PUT; Amazon S3 API reference, PutObject
_PACKED_BYTES = 16 * LIMIT_BYTES  # what is greater is not compressed in the hope that a ConfigMap holds it


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive as its pods get it.

    Attributes:
        entry: How a pod finds it, as `kubernetes_pod.archives.place` takes it.
        file: What a ConfigMap holds of it; None where it lies in the storage.
        stream: Its content.
    """

    entry: JsonObject
    file: CodeFile | None
    stream: TarStream


class Storage(Protocol):
    """Where archives lie that are too big for ConfigMaps."""

    def entry(self, sha256: str) -> JsonObject:
        """How pods find an archive there."""
        ...

    def send(self, stream: TarStream, sha256: str) -> None:
        """Have an archive there. What is there already is not sent again.

        Args:
            stream: The archive.
            sha256: Its digest, which is known from the first time.

        Raises:
            BackendError: It cannot be sent.
            DataError: A file of it was changed meanwhile, or the storage does not take it.
        """
        ...


class RemoteStorage:
    """A bucket of S3, or a folder of a web server.

    Args:
        place: `storage:` of the profile, as `RemoteFiles` takes it.
        variables: Gives the credentials, by the names of their variables.
    """

    def __init__(self, place: JsonObject, variables: Callable[[], Mapping[str, str]]) -> None:
        self._place = place
        self._variables = variables

    def entry(self, sha256: str) -> JsonObject:
        """The place, and the name of the file there."""
        return {"remote": self._place, "file": _file_name(sha256)}

    def send(self, stream: TarStream, sha256: str) -> None:
        """By PUT, unless a file of this name and size is there.

        Raises:
            BackendError: It is too big for S3.
        """
        if "s3" in self._place and stream.size_bytes > _MOST_S3_BYTES:
            raise BackendError(
                f"What is to be sent to the bucket of `storage:` has {format_bytes(stream.size_bytes)}.",
                f"S3 takes {format_bytes(_MOST_S3_BYTES)} in one piece.",
                "Name several smaller folders in `data:`, data that is there already by `url:`, or a volume as "
                "`storage:`, such as `{pvc: NAME}`.",
            )
        files = RemoteFiles(self._place, self._variables())
        if not files.has(_file_name(sha256), stream.size_bytes):
            files.put(_file_name(sha256), stream.blocks, stream.size_bytes, sha256)


def _file_name(sha256: str) -> str:
    return f"archives/{sha256}.tar"


class Shipping:
    """Which way archives go to the pods of one profile; remembers what was read.

    Args:
        storage: The profile's; None where it names none.
    """

    def __init__(self, storage: Storage | None) -> None:
        self._storage = storage
        self._packed: dict[str, CodeFile | None] = {}
        self._digests: dict[str, str] = {}

    def archive(self, name: str, key: str, stream: TarStream) -> Archive:
        """An archive; nothing is sent yet.

        Args:
            name: What it is, such as `data.train`.
            key: The same for the same content.
            stream: Its content; not read where that is known.

        Raises:
            BackendError: It is too big for the cluster, and the profile names no storage.
            DataError: A file of it was changed meanwhile.
        """
        if key not in self._packed:
            self._packed[key] = _packed(stream)
        file = self._packed[key]
        if file is not None:
            digest = file.name.partition(".")[0]
            return Archive({"name": name, "sha256": digest, "path": f"{places.CODE}/{file.name}"}, file, stream)
        if self._storage is None:
            raise too_big(name, stream.size_bytes)
        if key not in self._digests:
            self._digests[key] = stream.sha256
        sha256 = self._digests[key]
        return Archive({"name": name, "sha256": sha256, **self._storage.entry(sha256)}, None, stream)

    def send(self, archive: Archive) -> None:
        """Have an archive where its pods find it; the ConfigMap of `file` is not made here.

        Raises:
            BackendError: It cannot be sent.
            DataError: A file of it was changed meanwhile, or the storage does not take it.
        """
        if archive.file is None and self._storage is not None:
            self._storage.send(archive.stream, str(archive.entry["sha256"]))


def _packed(stream: TarStream) -> CodeFile | None:
    """An archive compressed, where a ConfigMap can hold that."""
    if stream.size_bytes > _PACKED_BYTES:
        return None
    content = gzip.compress(b"".join(stream.blocks()), mtime=0)
    file = CodeFile(f"{hashlib.sha256(content).hexdigest()}.tar.gz", content)
    return file if file.fits else None


def too_big(what: str, size_bytes: int) -> BackendError:
    """The error of what neither fits into a ConfigMap nor has another way."""
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
    """The name of the Secret with the credentials of the storage; "" where none is named."""
    for place in (remote_place(options) or {}).values():
        if isinstance(place, Mapping):
            return str(place.get("secret") or "")
    return ""

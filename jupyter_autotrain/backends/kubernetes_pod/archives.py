"""Archives that a trial needs: its data, its bundle, the checkpoints of its last attempt.

An archive is a tar file, named by its digest, that lies in a ConfigMap, on a volume or on a server. It is unpacked once
per folder: `FOLDER/archives/NAME/` is one, whole as soon as it is there; `FOLDER/archives/NAME.lock` is locked by the
process that unpacks it, so pods that share a volume wait for the first of them.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, cast

from jupyter_autotrain.backends.kubernetes_pod import storage_use
from jupyter_autotrain.backends.kubernetes_pod.remote_files import BLOCK_BYTES, RemoteFiles
from jupyter_autotrain.errors import DataError

ARCHIVES = "archives"
DATA = "data"  # of `layout.DATA`, on a volume


def place(archives: Sequence[Mapping[str, object]], folder: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Have archives unpacked below a folder; gives where each lies, by its name.

    Args:
        archives: Of each: "name"; "sha256" of the tar file; and "path" of that file, or "remote" (a place as
            `RemoteFiles` takes it) and "file" (its name there). With neither the folder holds it already.
        folder: What is unpacked lies in its folder `archives`.
        variables: Where the credentials are.

    Raises:
        DataError: One is not there, cannot be fetched, is damaged, or does not fit on the disk.
    """
    found = {}
    for archive in archives:
        target = unpacked(folder, str(archive["sha256"]))
        try:
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            with _alone(f"{target}.lock"):
                if not os.path.isdir(target):
                    _bring(archive, target, variables)
        except OSError as error:
            raise _failed(str(archive["name"]), folder, error) from error
        found[str(archive["name"])] = target
    return found


def unpacked(folder: str, sha256: str) -> str:
    """Where the archive of this digest lies, unpacked, below a folder."""
    return f"{folder}/{ARCHIVES}/{sha256}"


def unpack(source: BinaryIO, sha256: str, target: str) -> None:
    """Unpack a tar file that is read once, from its beginning; `target` is there only when all of it is right.

    Raises:
        DataError: It has another digest, or holds what does not belong into an archive.
        OSError: It cannot be read or written.
    """
    part = f"{target}.part-{os.getpid()}"
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part, mode=0o700)
    reader = _Digesting(source)
    try:
        with tarfile.open(fileobj=cast("BinaryIO", reader), mode="r|*") as archive:
            for member in archive:
                _extract(archive, member, part)
        reader.read_rest()
        if reader.sha256 != sha256:
            raise DataError(
                f"What came has the SHA-256 {reader.sha256}.",
                f"{sha256} was sent.",
                "Submit the cell again: the file was changed or damaged on its way.",
            )
        os.rename(part, target)
    except (tarfile.TarError, EOFError) as error:
        raise DataError(f"An archive is damaged: {error}.", "", "Submit the cell again.") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _bring(archive: Mapping[str, object], target: str, variables: Mapping[str, str]) -> None:
    path = str(archive.get("path") or "")
    sha256 = str(archive["sha256"])
    remote = archive.get("remote")
    if isinstance(remote, Mapping):
        path = f"{target}.tar"
        RemoteFiles(remote, variables).get(str(archive["file"]), sha256, path)
    if not path:
        raise DataError(
            f"{archive['name']} is not in {target}.",
            "The storage of the profile holds it since the submission.",
            "Submit the cell again: it is sent anew.",
        )
    try:
        with open(path, "rb") as source:
            unpack(source, sha256, target)
    finally:
        if remote:
            os.unlink(path)


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: str) -> None:
    """A regular file or a folder, readable by its owner alone."""
    path = os.path.normpath(os.path.join(folder, member.name))
    if path != folder and not path.startswith(f"{folder}{os.sep}"):
        raise DataError(f"An archive names a file outside of it: {member.name!r}.", "", "Submit the cell again.")
    if member.isdir():
        os.makedirs(path, mode=0o700, exist_ok=True)
        return
    source = archive.extractfile(member) if member.isreg() else None
    if source is None:
        raise DataError(f"An archive holds something else than files: {member.name!r}.", "", "Submit the cell again.")
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    mode = 0o700 if member.mode & 0o100 else 0o600
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with source, os.fdopen(fd, "wb") as file:
        shutil.copyfileobj(source, file, BLOCK_BYTES)


class _Digesting:
    """A file that is read once; knows the digest of what was read."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._total = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._total.hexdigest()

    def read(self, size: int = -1) -> bytes:
        data = self._source.read(size)
        self._total.update(data)
        return data

    def read_rest(self) -> None:
        """What follows the last member."""
        while self.read(BLOCK_BYTES):
            pass


@contextlib.contextmanager
def _alone(path: str) -> Iterator[None]:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with contextlib.suppress(OSError):  # some network file systems lock nothing: then it is unpacked twice
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _failed(name: str, folder: str, error: OSError) -> DataError:
    return DataError(
        f"{name} cannot be unpacked in {folder}: {error.strerror or error} (on {os.uname().nodename}).",
        "A folder that can be written, with room for it.",
        "Give the pod more room (`volumes:` with an `empty_dir:`, or `storage:`), then retry.",
    )


def receive(storage: str, user: str, sha256: str, size_bytes: int) -> None:
    """Unpack what comes on standard input on a volume, unless it is there; what a loader pod runs.

    Exactly `size_bytes` are read, since an input over a connection may have no end. Prints `ready` before it
    reads, or `there` and reads nothing; at the end `done`.

    Args:
        storage: The root of the volume.
        user: The experiment that uses it, as HOME/EXPERIMENT.
        sha256: The archive.
        size_bytes: Of the tar file.
    """
    storage_use.note(storage, user, sha256)
    target = unpacked(f"{storage}/{DATA}", sha256)
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    with _alone(f"{target}.lock"):
        if os.path.isdir(target):
            print("there", flush=True)  # noqa: T201 - read at the other end of the connection
            return
        print("ready", flush=True)  # noqa: T201 - as above
        unpack(cast("BinaryIO", _Bounded(sys.stdin.buffer, size_bytes)), sha256, target)
    print("done", flush=True)  # noqa: T201 - as above


class _Bounded:
    """The first bytes of a file, as a file of its own."""

    def __init__(self, source: BinaryIO, size_bytes: int) -> None:
        self._source = source
        self._left_bytes = size_bytes

    def read(self, size: int = -1) -> bytes:
        wanted = self._left_bytes if size < 0 else min(size, self._left_bytes)
        data = self._source.read(wanted)
        self._left_bytes -= len(data)
        return data

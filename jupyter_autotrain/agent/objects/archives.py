"""Archives that a trial in a pod needs: its data, its bundle, the checkpoints of its last attempt.

An archive is a tar file, named by its digest, that lies in a ConfigMap or on a server. It is unpacked once per folder:
`FOLDER/archives/SHA256/` is one, whole as soon as it is there; `FOLDER/archives/SHA256.lock` is locked by the process
that unpacks it, so pods that share a volume wait for the first of them. What was sent to a volume as a folder lies in
`FOLDER/archives/DIGEST/DIGEST/`, see `receiving`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from typing import BinaryIO, cast

from jupyter_autotrain.agent import locks
from jupyter_autotrain.agent.errors import DataError

ARCHIVES = "archives"
_BLOCK_BYTES = 1 << 20
DATA = "data"  # of `layout.DATA`, on a volume


def place(archives: Sequence[Mapping[str, object]], folder: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Have archives unpacked below a folder; return the path of each, by its name.

    Args:
        archives: Of each: "name"; "sha256" of the tar file; and "path" of that file, or "remote" (a place as
            `RemoteFiles` takes it) and "file" (its name there). With neither the folder of that digest was sent.
        folder: What is unpacked lies in its folder `archives`.
        variables: Where the credentials are.

    Raises:
        DataError: One is not there, cannot be fetched, is damaged, or does not fit on the disk.
    """
    found = {}
    for archive in archives:
        sha256 = str(archive["sha256"])
        target = unpacked(folder, sha256)
        if not (archive.get("path") or archive.get("remote")):
            found[str(archive["name"])] = _sent(str(archive["name"]), f"{target}/{sha256}")
            continue
        try:
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            with locks.alone(f"{target}.lock"):
                if not os.path.isdir(target):
                    _bring(archive, target, variables)
        except OSError as error:
            raise _failed(str(archive["name"]), folder, error) from error
        found[str(archive["name"])] = target
    return found


def unpacked(folder: str, sha256: str) -> str:
    """Return the path where the archive of this digest lies, unpacked, below a folder."""
    return f"{folder}/{ARCHIVES}/{sha256}"


def kind(sha256: str) -> str:
    """Return the kind of a folder that is sent to a volume, for `receiving`: all of it lies below one folder."""
    return f"{ARCHIVES}/{sha256}"


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


def _sent(name: str, folder: str) -> str:
    """Return a folder that was sent here."""
    if not os.path.isdir(folder):
        raise DataError(
            f"{name} is not in {folder}.",
            "The storage of the profile holds it since the submission.",
            "Submit the cell again: it is sent anew.",
        )
    return folder


def _bring(archive: Mapping[str, object], target: str, variables: Mapping[str, str]) -> None:
    path = str(archive.get("path") or "")
    sha256 = str(archive["sha256"])
    remote = archive.get("remote")
    if isinstance(remote, Mapping):
        from jupyter_autotrain.agent.objects.remote_files import RemoteFiles  # noqa: PLC0415 - HTTP takes 40 ms

        path = f"{target}.tar"
        RemoteFiles(remote, variables).get(str(archive["file"]), sha256, path)
    try:
        with open(path, "rb") as source:
            unpack(source, sha256, target)
    finally:
        if remote:
            os.unlink(path)


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: str) -> None:
    """Extract a regular file or a folder, readable by its owner alone."""
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
        shutil.copyfileobj(source, file, _BLOCK_BYTES)


class _Digesting:
    """A file that is read once, and knows the digest of what was read."""

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
        """Read the bytes that follow the last member."""
        while self.read(_BLOCK_BYTES):
            pass


def _failed(name: str, folder: str, error: OSError) -> DataError:
    return DataError(
        f"{name} cannot be unpacked in {folder}: {error.strerror or error} (on {os.uname().nodename}).",
        "A folder that can be written, with room for it.",
        "Give the pod more room (`volumes:` with an `empty_dir:`, or `storage:`), then retry.",
    )

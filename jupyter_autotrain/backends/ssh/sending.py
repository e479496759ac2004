"""Sending folders to a host: each once per digest, verified there, resumed after a cut, only what changed.

The other end is `receiving`, whose head describes the messages.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tarfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from jupyter_autotrain.backends.ssh import receiving
from jupyter_autotrain.backends.ssh.transport import Channel, LinkLostError, Transport, start
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import BackendError

_PIECE_BYTES = 1 << 18
_CHECK_VERSION = """
if sys.version_info < (3, 9):
    sys.exit("it is Python %d.%d" % sys.version_info[:2])
"""
RECEIVE_AND_END = "main()"

ProgressCallback = Callable[[int, int], None]  # bytes sent, bytes to send


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file of a folder: its path in it, size, digest, where it lies here, and whether it may be executed."""

    path: str
    size_bytes: int
    sha256: str
    source: Path
    is_executable: bool


@dataclass(frozen=True, slots=True)
class FolderManifest:
    """What a folder holds; `digest` is that of paths, contents and modes together."""

    files: tuple[SentFile, ...]
    folders: tuple[str, ...]

    @property
    def size_bytes(self) -> int:
        """How large its files are together."""
        return sum(file.size_bytes for file in self.files)

    @property
    def digest(self) -> str:
        """The SHA-256 of everything in it."""
        lines = [f"{file.path}\0{file.sha256}\0{int(file.is_executable)}\n" for file in self.files]
        return hashlib.sha256("".join([*lines, *self.folders]).encode()).hexdigest()


def scan_folder(root: Path, paths: Iterable[Path] | None = None) -> FolderManifest:
    """Read what a folder holds.

    Args:
        root: The folder.
        paths: Which files of it; all when not given.
    """
    inside = sorted(root.rglob("*") if paths is None else paths)
    folders = tuple(str(path.relative_to(root)) for path in inside if path.is_dir() and not path.is_symlink())
    with ThreadPoolExecutor() as pool:  # digests are made without Python's lock
        files = pool.map(partial(_scan_file, root), [path for path in inside if path.is_file()])
        return FolderManifest(tuple(files), folders)


def _scan_file(root: Path, path: Path) -> SentFile:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        status = os.fstat(file.fileno())
    is_executable = bool(status.st_mode & stat.S_IXUSR)
    return SentFile(str(path.relative_to(root)), status.st_size, sha256, path, is_executable)


class Receiver:
    """The program at the other end of a channel that receives folders.

    Args:
        transport: The connection.
        python: The interpreter there.
        name: The host, for messages.
        then: What the program does after it has defined `main`, as one line of Python.
    """

    def __init__(self, transport: Transport, python: str, name: str, then: str = RECEIVE_AND_END) -> None:
        self._name = name
        self._python = python
        self._rest = bytearray()
        text = f"{Path(str(receiving.__file__)).read_text(encoding='utf-8')}\n{then}\n"
        self.channel = start(
            transport, [python, "-I", "-S", "-c", "import sys; exec(sys.stdin.buffer.readline())"], name
        )
        self._send(f"exec({_CHECK_VERSION!r}); exec({text!r})\n".encode())

    def send(self, folder: FolderManifest, root: str, kind: str, progress: ProgressCallback | None = None) -> str:
        """Send a folder, unless it is there; gives its path there.

        Raises:
            LinkLostError: The connection is gone; what has arrived stays there for the next attempt.
            BackendError: The host cannot take it, or has no such Python.
        """
        self._say({"root": root, "kind": kind, "digest": folder.digest})
        answer = self.line()
        if not answer.get("is_complete"):
            self._say({
                "files": [[one.path, one.size_bytes, one.sha256, one.is_executable] for one in folder.files],
                "folders": list(folder.folders),
            })  # fmt: skip
            needed = cast("dict[str, int]", self.line()["needed"])
            _Sending(self.channel, progress, _size_of_archive(folder, needed)).send(folder, needed)
            answer = self.line()
        return str(answer["path"])

    def _say(self, content: Mapping[str, object]) -> None:
        self._send(json.dumps(content).encode() + b"\n")

    def _send(self, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # the program there has ended, and `line` says why
            self.channel.send(data)

    def line(self) -> JsonObject:
        """Wait for the next answer.

        Raises:
            LinkLostError: The connection is gone.
            BackendError: The program there has ended, or says why it cannot go on.
        """
        while b"\n" not in self._rest:
            piece = self.channel.receive()
            if not piece:
                raise self._ended()
            self._rest += piece
        line, _, rest = bytes(self._rest).partition(b"\n")
        self._rest = bytearray(rest)
        answer = cast("JsonObject", json.loads(line))
        if "error" in answer:
            raise BackendError(
                f"{self._name} cannot take the files: {answer['error']}.",
                "A folder there that can be written, and room on its disk.",
                f"Look at the disk of {self._name}, then retry.",
            )
        return answer

    def _ended(self) -> BackendError:
        with contextlib.suppress(LinkLostError):
            self.channel.exit_code()  # all that it has printed comes before
        last = self.channel.stderr().decode(errors="replace").strip().splitlines()
        why = last[-1][:300] if last else "without a word"
        return BackendError(
            f"{self._python} on {self._name} ended: {why}",
            "A Python of at least 3.9.",
            "Name one in the profile: `python: /path/to/python3`.",
        )


def _size_of_archive(folder: FolderManifest, needed: Mapping[str, int]) -> int:
    sizes = {file.sha256: file.size_bytes for file in folder.files}
    return sum(sizes[sha256] - offset for sha256, offset in needed.items())


class _Sending:
    """Sends files as a tar stream, in large pieces; tells of the progress."""

    def __init__(self, channel: Channel, progress: ProgressCallback | None, total_bytes: int) -> None:
        self._channel = channel
        self._progress = progress
        self._total_bytes = total_bytes
        self._sent_bytes = 0
        self._piece = bytearray()

    def send(self, folder: FolderManifest, needed: Mapping[str, int]) -> None:
        """Send the needed files from their offsets on, each content once."""
        sources = {file.sha256: file for file in folder.files}
        try:
            for sha256, offset in needed.items():
                self._send_file(sources[sha256], offset)
            self._write(bytes(2 * tarfile.BLOCKSIZE))
            self._flush()
        except BrokenPipeError:
            return  # the other end has said why

    def _send_file(self, file: SentFile, offset: int) -> None:
        member = tarfile.TarInfo(f"{file.sha256}@{offset}")
        member.size = file.size_bytes - offset
        self._write(member.tobuf(tarfile.GNU_FORMAT))
        with file.source.open("rb", buffering=0) as source:
            source.seek(offset)
            left = member.size
            while left:
                block = source.read(min(left, _PIECE_BYTES))
                if not block:
                    raise OSError(f"{file.source} has become shorter while it was sent")
                self._write(block)
                left -= len(block)
        self._write(bytes(-member.size % tarfile.BLOCKSIZE))

    def _write(self, data: bytes) -> None:
        self._piece += data
        if len(self._piece) >= _PIECE_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._channel.send(bytes(self._piece))
        self._sent_bytes += len(self._piece)
        self._piece.clear()
        if self._progress is not None:
            self._progress(min(self._sent_bytes, self._total_bytes), self._total_bytes)


def send_folder(
    receiver: Receiver, folder: FolderManifest, root: str, kind: str, progress: ProgressCallback | None = None
) -> str:
    """Send a folder to a receiver that is only for it; arguments and errors as `Receiver.send`."""
    try:
        return receiver.send(folder, root, kind, progress)
    finally:
        receiver.channel.close()

"""Sending folders to a host: each once per digest, verified there, resumed after a cut, only what changed.

The other end is `receiving`, whose head describes the messages; it and `received_files` are sent there as text.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import cast

from jupyter_autotrain.backends.ssh import received_files, receiving
from jupyter_autotrain.backends.ssh.archive_stream import ArchiveStream, ProgressCallback, SentFile
from jupyter_autotrain.backends.ssh.transport import LinkLostError, Transport, start
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

_CHECK_VERSION = """
if sys.version_info < (3, 9):
    sys.exit("it is Python %d.%d" % sys.version_info[:2])
"""
_DEFINE_MODULE = "import types; exec({text!r}, sys.modules.setdefault({name!r}, types.ModuleType({name!r})).__dict__)"
RECEIVE_AND_END = "main()"


class DamagedFileError(BackendError):
    """A file that a host had kept was changed there; it is sent again the next time.

    Args:
        found: What was found.
        expected: What was expected.
        action: What to do next.
    """


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
        files = _DEFINE_MODULE.format(name=received_files.__name__, text=_text(received_files))
        program = f"{_text(receiving)}\n{then}\n"
        self.channel = start(
            transport, [python, "-I", "-S", "-c", "import sys; exec(sys.stdin.buffer.readline())"], name
        )
        self._send(f"exec({_CHECK_VERSION!r}); {files}; exec({program!r})\n".encode())

    def send(self, folder: FolderManifest, root: str, kind: str, progress: ProgressCallback | None = None) -> str:
        """Send a folder, unless it is there; gives its path there.

        Raises:
            LinkLostError: The connection is gone; what has arrived stays there for the next attempt.
            DamagedFileError: A file that the host had kept was changed there; the next attempt sends it.
            BackendUnavailableError: The disk there is full; likewise.
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
            ArchiveStream(self.channel, progress).send({file.sha256: file for file in folder.files}, needed)
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
        try:
            answer = cast("JsonObject", json.loads(line))
        except ValueError:
            raise self._strange(line) from None
        if "error" in answer:
            raise _refusal(self._name, answer)
        return answer

    def _strange(self, line: bytes) -> BackendError:
        return BackendError(
            f"{self._python} on {self._name} printed {line.decode(errors='replace').strip()[:100]!r}.",
            "A Python of at least 3.9 that prints nothing by itself.",
            "Name one in the profile: `python: /path/to/python3`.",
        )

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


def _refusal(name: str, answer: JsonObject) -> BackendError | BackendUnavailableError:
    found = f"{name} cannot take the files: {answer['error']}."
    if answer.get("kind") == "full":
        advice = f"Free some room on the disk of {name}; it is tried again, and what has arrived is not sent again."
        return BackendUnavailableError(found, "Room on its disk for what is sent.", advice)
    kind = DamagedFileError if answer.get("kind") == "damaged" else BackendError
    return kind(found, "A folder there that can be written.", f"Look at the disk of {name}, then retry.")


def _text(module: ModuleType) -> str:
    return Path(str(module.__file__)).read_text(encoding="utf-8")


def send_folder(
    receiver: Receiver, folder: FolderManifest, root: str, kind: str, progress: ProgressCallback | None = None
) -> str:
    """Send a folder to a receiver that is only for it; arguments and errors as `Receiver.send`."""
    try:
        return receiver.send(folder, root, kind, progress)
    finally:
        receiver.channel.close()

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
from jupyter_autotrain.backends.ssh.remote_command import start
from jupyter_autotrain.backends.ssh.transport import (
    PATIENCE_S,
    Deadline,
    LinkLostError,
    NoAnswerError,
    Transport,
    no_answer,
)
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

_CHECK_VERSION = """
if sys.version_info < (3, 9):
    sys.exit("it is Python %d.%d" % sys.version_info[:2])
"""
_DEFINE_MODULE = "import types; exec({text!r}, sys.modules.setdefault({name!r}, types.ModuleType({name!r})).__dict__)"
RECEIVE_AND_END = "main()"
_START_S = 60.0  # of an interpreter, whose files may lie on a server
_LEAST_RATE = 20e6  # bytes per second that a slow disk there copies, reads and checks
_MOST_FIRST_BYTES = 1 << 20  # of an interpreter that is not known to be one yet
_MOST_LINE_BYTES = 1 << 28
_TOO_OLD_FOR_OPTIONS = b"Unknown option: -I"


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
        self._most_bytes = _MOST_FIRST_BYTES
        files = _DEFINE_MODULE.format(name=received_files.__name__, text=_text(received_files))
        program = f"{_text(receiving)}\n{then}\n"
        self.channel = start(
            transport, [python, "-I", "-S", "-c", "import sys; exec(sys.stdin.buffer.readline())"], name
        )
        try:
            self._send(f"exec({_CHECK_VERSION!r}); {files}; exec({program!r})\n".encode())
        except BaseException:
            self.channel.close()
            raise

    def send(self, folder: FolderManifest, root: str, kind: str, progress: ProgressCallback | None = None) -> str:
        """Send a folder, unless it is there; gives its path there.

        Raises:
            LinkLostError: The connection is gone; what has arrived stays there for the next attempt.
            DamagedFileError: A file that the host had kept was changed there; the next attempt sends it.
            BackendUnavailableError: The disk there is full; likewise.
            BackendError: The host cannot take it, or has no such Python.
        """
        self._say({"root": root, "kind": kind, "digest": folder.digest})
        answer = self.answer("is_complete", _START_S)
        if not answer["is_complete"]:
            self._say({
                "files": [[one.path, one.size_bytes, one.sha256, one.is_executable] for one in folder.files],
                "folders": list(folder.folders),
            })  # fmt: skip
            disk_s = PATIENCE_S + folder.size_bytes / _LEAST_RATE
            needed = cast("dict[str, int]", self.answer("needed", disk_s)["needed"])
            ArchiveStream(self.channel, progress, disk_s).send({file.sha256: file for file in folder.files}, needed)
            answer = self.answer("path", disk_s)
        return str(answer["path"])

    def _say(self, content: Mapping[str, object]) -> None:
        self._send(json.dumps(content).encode() + b"\n")

    def _send(self, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # the program there has ended, and `line` says why
            self.channel.send(data)

    def answer(self, key: str, within_s: float = PATIENCE_S) -> JsonObject:
        """Wait for the next answer, which has this key. Errors as `line`."""
        try:
            answer = self.line(within_s, Deadline(within_s))
        except NoAnswerError:
            raise no_answer(f"{self._python} on {self._name}", within_s) from None
        if key not in answer:
            raise self._strange(json.dumps(answer).encode())
        return answer

    def line(self, silence_s: float, deadline: Deadline | None = None) -> JsonObject:
        """Wait for the next line.

        Args:
            silence_s: How long nothing of it may come.
            deadline: When all of it has to be there; None: that does not matter.

        Raises:
            NoAnswerError: It does not come.
            LinkLostError: The connection is gone.
            BackendError: The program there has ended, says why it cannot go on, or prints what is no answer.
        """
        looked = 0
        while (end := self._rest.find(b"\n", looked)) < 0:
            looked = len(self._rest)
            if looked > self._most_bytes:
                raise self._strange(self._rest)
            piece = self.channel.receive(silence_s if deadline is None else min(silence_s, deadline.left_s))
            if not piece:
                raise self._ended()
            self._rest += piece
            if deadline is not None and not deadline.left_s and b"\n" not in piece:
                raise no_answer(self._name, deadline.within_s)
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return self._parsed(line)

    def _parsed(self, line: bytes) -> JsonObject:
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            raise self._strange(line) from None
        if not isinstance(answer, dict):
            raise self._strange(line)
        if "error" in answer:
            raise _refusal(self._name, answer)
        self._most_bytes = _MOST_LINE_BYTES
        return answer

    def _strange(self, line: bytes | bytearray) -> BackendError:
        return BackendError(
            f"{self._python} on {self._name} printed {line[:400].decode(errors='replace').strip()[:100]!r}.",
            "A Python of at least 3.9 that prints nothing by itself.",
            "Name one in the profile: `python: /path/to/python3`.",
        )

    def _ended(self) -> BackendError:
        with contextlib.suppress(LinkLostError):
            self.channel.exit_code()  # all that it has printed comes before
        said = self.channel.stderr()
        last = said.decode(errors="replace").strip().splitlines()
        why = last[-1][:300] if last else "without a word"
        if _TOO_OLD_FOR_OPTIONS in said:
            why = "it is older than Python 3.4"
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

"""Sending folders to a place: each once per digest, verified there, resumed after a cut, only what changed.

The other end is `receiving`, whose head describes the messages; it and what it needs are sent there as text.
"""

from __future__ import annotations

import base64
import contextlib
import json
import sys
import tarfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import cast

from jupyter_autotrain.agent import locks
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.objects import agent_archive, received_files, receiving
from jupyter_autotrain.backends.transfer.channels import (
    PATIENCE_S,
    Channel,
    Deadline,
    LinkLostError,
    NoAnswerError,
    ProcessChannel,
    no_answer,
)
from jupyter_autotrain.backends.transfer.folders import FolderManifest, SentFile
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

_CHECK_VERSION = """
if sys.version_info < (3, 9):
    sys.exit("it is Python %d.%d" % sys.version_info[:2])
"""
_DEFINE_MODULE = "exec({text!r}, sys.modules.setdefault({name!r}, types.ModuleType({name!r})).__dict__)\n"
RECEIVE_AND_END = "main()"
_PIECE_BYTES = 1 << 18

StartProgram = Callable[[Sequence[str]], Channel]
ProgressCallback = Callable[[int, int], None]  # bytes sent, bytes to send
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


class Receiver:
    """The program at the other end of a channel that receives folders.

    Args:
        start: Starts a program with its arguments, and gives the channel to it.
        python: The interpreter there.
        name: The place, for messages.
        then: What the program does after it has defined `main`, as one line of Python.
    """

    def __init__(self, start: StartProgram, python: str, name: str, then: str = RECEIVE_AND_END) -> None:
        self._name = name
        self._python = python
        self._rest = bytearray()
        self._most_bytes = _MOST_FIRST_BYTES
        self.channel = start([python, "-I", "-S", "-c", "import sys; exec(sys.stdin.buffer.readline())"])
        try:
            self._send(_program(then))
        except BaseException:
            self.channel.close()
            raise

    def send(self, folder: FolderManifest, root: str, kind: str, progress: ProgressCallback | None = None) -> str:
        """Send a folder, unless it is there, and return its path there.

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
            _ArchiveStream(self.channel, progress, disk_s).send({file.sha256: file for file in folder.files}, needed)
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


def _program(then: str) -> bytes:
    """Return the program that receives, as one line of Python."""
    text = "import types\n"
    for module in (locks, agent_archive, received_files):
        text += _DEFINE_MODULE.format(name=module.__name__, text=_text(module))
    text += f"exec({_text(receiving)!r})\n{then}\n"
    packed = base64.b64encode(zlib.compress(text.encode(), 9))
    return b"exec(%a); import base64, zlib; exec(zlib.decompress(base64.b64decode(%a)))\n" % (_CHECK_VERSION, packed)


def _text(module: ModuleType) -> str:
    return Path(str(module.__file__)).read_text(encoding="utf-8")


class _ArchiveStream:
    """A tar stream that sends files in large pieces, and tells of the progress.

    Args:
        channel: Takes the stream.
        progress: Called after each piece.
        silence_s: How long the other end may take nothing: it first reads what is there of a file.
    """

    def __init__(self, channel: Channel, progress: ProgressCallback | None, silence_s: float) -> None:
        self._channel = channel
        self._progress = progress
        self._silence_s = silence_s
        self._total_bytes = 0
        self._sent_bytes = 0
        self._piece = bytearray()

    def send(self, sources: Mapping[str, SentFile], needed: Mapping[str, int]) -> None:
        """Send the needed files from their offsets on, each content once.

        Args:
            sources: Files, by digest.
            needed: The digests of those to send, and how much of each is there.

        Raises:
            LinkLostError: The connection is gone.
            OSError: A file here cannot be read.
            DataError: A file here has become shorter.
        """
        self._total_bytes = sum(sources[sha256].size_bytes - offset for sha256, offset in needed.items())
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
        for block in file.blocks(offset):
            self._write(block)

    def _write(self, data: bytes) -> None:
        self._piece += data
        if len(self._piece) >= _PIECE_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._channel.send(bytes(self._piece), self._silence_s)
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


def send_here(folder: FolderManifest, root: str, kind: str) -> str:
    """Have a folder below one of this machine; arguments and errors as `Receiver.send`."""
    goal = Path(root, kind, folder.digest)
    if not goal.is_dir():
        receiver = Receiver(lambda argv: ProcessChannel(argv, root), sys.executable, root)
        send_folder(receiver, folder, root, kind)
    return str(goal)

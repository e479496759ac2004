r"""Frames: the pieces in which the files of a trial travel in the log of its pod.

A frame is one line, `autotrain:["stdout", 0, "epoch 1\n"]`: a path, the offset in bytes, and the text that lies there;
`[path, offset, base64, "base64"]` where it is no UTF-8. Since each says where its bytes belong, a frame that is read
twice changes nothing, and one that is missing leaves a gap that is seen. Lines of the log without the mark are passed
over. Runs on both sides, in the pod with Python 3.9.

`Relay` writes the files of a trial into the log of its pod. Everything that grows is read from where the last look
ended; what lies there at the trial's end comes then, small files first, as far as they fit. The log of a pod is
rotated, so a pod that has written much waits until all is collected.
"""

from __future__ import annotations

import base64
import json
import os
import stat
import time
from collections.abc import Callable, Iterator

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.pods import places

MARK = "autotrain:"
LONGEST_LINE_BYTES = 15_500  # container runtimes split lines at 16 KiB, and a time goes between the parts
_PIECE_BYTES = 11_000  # fits into a line also in base64
MOST_FILE_BYTES = 4 << 20  # of the files that a trial leaves, all together
SAFE_LOG_BYTES = 5 << 20  # half of what a node keeps of a log before it rotates it
_READ_BYTES = 1 << 20
_NAME_AGAIN_BYTES = 1 << 20
_STREAMS = frozenset({wire.STDOUT, wire.STDERR, wire.METRICS, wire.USAGE, wire.STACKS, wire.DEBUG, wire.LAUNCHER_LOG})
_FOLDERS = (wire.OUTPUTS, wire.WORK, wire.CHECKPOINTS)


class Frame:
    """Bytes of a file of the trial.

    Args:
        path: The file.
        offset: Where its bytes begin.
        data: The bytes.
    """

    __slots__ = ("data", "offset", "path")

    def __init__(self, path: str, offset: int, data: bytes) -> None:
        self.path = path
        self.offset = offset
        self.data = data

    def goes_on_in(self, other: Frame) -> bool:
        """Tell whether another frame has the bytes that follow in the same file."""
        return self.path == other.path and self.offset + len(self.data) == other.offset


def encode(path: str, offset: int, data: bytes) -> Iterator[str]:
    """Yield the lines for bytes of a file, each with its newline."""
    while data:
        piece = _whole_characters(data[:_PIECE_BYTES])
        yield _line(path, offset, piece)
        data = data[len(piece) :]
        offset += len(piece)


def _whole_characters(piece: bytes) -> bytes:
    """Return the piece without the beginning of a character at its end."""
    for cut in range(min(4, len(piece))):
        kept = piece[: len(piece) - cut]
        try:
            kept.decode()
        except UnicodeDecodeError:
            continue
        return kept
    return piece


def _line(path: str, offset: int, piece: bytes) -> str:
    try:
        line = MARK + json.dumps([path, offset, piece.decode()], ensure_ascii=False)
        if len(line.encode()) < LONGEST_LINE_BYTES:
            return line + "\n"
    except UnicodeDecodeError:
        pass  # then in base64
    return MARK + json.dumps([path, offset, base64.b64encode(piece).decode(), "base64"]) + "\n"


def decode(line: str) -> Frame | None:
    """Return the frame of a line of the log; None where it is none."""
    if not line.startswith(MARK):
        return None
    try:
        path, offset, text, *encoding = json.loads(line[len(MARK) :])
        data = base64.b64decode(text) if encoding else text.encode()
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    if not isinstance(path, str) or type(offset) is not int or offset < 0:
        return None
    return Frame(path, offset, data)


class Relay:
    """The files of a trial, on their way into the log.

    Args:
        run: The folder of everything in the pod.
        write: Writes lines to the log.
        node: Which node of the trial this is.
        job: Which trial, where the log is that of several.

    Attributes:
        written_bytes: How much was written to the log.
        left: The files that are not in the log.
    """

    def __init__(self, run: str, write: Callable[[str], None], node: int = 0, job: str = "") -> None:
        self.written_bytes = 0
        self._node = node
        self._job = job
        self._named_at_bytes = -_NAME_AGAIN_BYTES
        self.left: list[str] = []
        self._run = run
        self._directory = f"{run}/{places.TRIAL}"
        self._write = write
        self._offsets: dict[str, int] = {}
        self._status = b""

    def look(self) -> bool:
        """Send all that is new; return True where there was something."""
        before = self.written_bytes
        for name in self._streams():
            self._send_growing(self._directory, name)
        self._note_status()
        self._send_growing(self._run, places.STATES)
        return self.written_bytes > before

    def _streams(self) -> list[str]:
        try:
            names = os.listdir(self._directory)
        except OSError:
            return []
        return sorted(name for name in names if wire.base_of_stream(name) in _STREAMS)

    def _send_growing(self, folder: str, name: str) -> None:
        while True:
            offset = self._offsets.get(name, 0)
            try:
                data = files.read(folder, name, _READ_BYTES, offset)
            except OSError:
                return  # nothing that can be read lies there
            if not data:
                return
            self._send(name, offset, data)
            self._offsets[name] = offset + len(data)

    def _send(self, path: str, offset: int, data: bytes) -> None:
        if self.written_bytes - self._named_at_bytes >= _NAME_AGAIN_BYTES:  # a rotated log says it, too
            self._named_at_bytes = self.written_bytes
            if self._job:
                self._send(places.JOB, 0, self._job.encode())
            self._send(places.NODE, 0, str(self._node).encode())
        for line in encode(path, offset, data):
            self._write(line)
            self.written_bytes += len(line)

    def _note_status(self) -> None:
        """Keep each content of the status file, in a file that grows."""
        try:
            data = files.read(self._directory, wire.STATUS_FILE, files.MOST_JSON_BYTES)
        except OSError:
            return
        if data and data != self._status:
            self._status = data
            with open(f"{self._run}/{places.STATES}", "ab") as file:
                file.write(data.replace(b"\n", b" ") + b"\n")

    def finish(self) -> None:
        """Send the rest, the files that the trial has left, and last their list, as the trial has ended."""
        self.look()
        sizes = self._sizes()
        room_bytes = MOST_FILE_BYTES
        for path in sorted(sizes, key=lambda one: sizes[one]):
            room_bytes -= sizes[path]
            if room_bytes < 0:
                self.left.append(path)
            else:
                self._send_growing(self._directory, path)
        for name in self._streams():
            sizes[name] = self._offsets.get(name, 0)
        listing = json.dumps({"sizes": sizes, "left": self.left, "time_s": time.time()}).encode() + b"\n"
        self._send(places.FILES, 0, listing)

    def _sizes(self) -> dict[str, int]:
        """Return the sizes of the regular files of the trial's folders."""
        found = {}
        for folder in _FOLDERS:
            try:
                inside = list(files.walk(f"{self._directory}/{folder}"))
                for name, kind in inside:
                    if kind == stat.S_IFREG:
                        path = f"{folder}/{name}"
                        found[path] = os.lstat(f"{self._directory}/{path}").st_size
            except OSError:
                continue  # it is not there
        return found

    @property
    def fits_into_log(self) -> bool:
        """True where the log surely holds everything."""
        return not self.left and self.written_bytes < SAFE_LOG_BYTES

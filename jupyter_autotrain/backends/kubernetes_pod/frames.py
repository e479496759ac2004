r"""Frames: how the files of a trial travel in the log of its pod.

A frame is one line, `autotrain:["stdout", 0, "epoch 1\n"]`: a path, the offset in bytes, and the text that lies there;
`[path, offset, base64, "base64"]` where it is no UTF-8. Since each says where its bytes belong, a frame that is read
twice changes nothing, and one that is missing leaves a gap that is seen. Lines of the log without the mark are passed
over. Runs on both sides, in the pod with Python 3.9.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

MARK = "autotrain:"
LONGEST_LINE_BYTES = 15_500  # container runtimes split lines at 16 KiB, and a time goes between the parts
_PIECE_BYTES = 11_000  # fits into a line also in base64


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
        """Whether another one has what follows in the same file."""
        return self.path == other.path and self.offset + len(self.data) == other.offset


def encode(path: str, offset: int, data: bytes) -> Iterator[str]:
    """The lines for bytes of a file, each with its newline."""
    while data:
        piece = _whole_characters(data[:_PIECE_BYTES])
        yield _line(path, offset, piece)
        data = data[len(piece) :]
        offset += len(piece)


def _whole_characters(piece: bytes) -> bytes:
    """Without the beginning of a character at its end."""
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
    """The frame of a line of the log; None where it is none."""
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

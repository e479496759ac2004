"""A part of what a trial has printed, by byte offsets: what a follower asks for again and again."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from jupyter_autotrain.agent import files
from jupyter_autotrain.agent.json import JsonObject

MOST_BYTES: Final = 1 << 20
_LONGEST_CHARACTER_BYTES: Final = 4
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9_.@-]+")


def log_json(directory: Path, stream: str, begin_bytes: int | None, most_bytes: int) -> JsonObject:
    """Return the text of a stream from an offset on, whole characters only.

    Args:
        directory: The directory of the trial's attempt.
        stream: The name of the stream; checked by the caller.
        begin_bytes: The offset; None gives the end of the stream, from the begin of a line where there is one.
        most_bytes: At most so many bytes.

    Returns:
        `text`, `begin_bytes`, `end_bytes` (where the next request begins) and `size_bytes` of the stream now. A begin
        beyond the end is the end.

    Raises:
        OSError: Something lies there that is no regular file.
    """
    try:
        file = files.open_regular(directory, stream)
    except OSError as error:
        if files.is_absent(error):
            return {"text": "", "begin_bytes": 0, "end_bytes": 0, "size_bytes": 0}
        raise
    with file:
        size_bytes = file.seek(0, os.SEEK_END)
        begin = max(size_bytes - most_bytes, 0) if begin_bytes is None else min(begin_bytes, size_bytes)
        file.seek(begin)
        data = file.read(most_bytes)
    if begin_bytes is None and begin:
        data = _from_line_begin(data)
        begin = size_bytes - len(data)
    data = _whole_characters(data)
    text = data.decode("utf-8", errors="replace")
    return {"text": text, "begin_bytes": begin, "end_bytes": begin + len(data), "size_bytes": size_bytes}


def file_name(label: str, trial: int, attempt: int, stream: str) -> str:
    """Return the file name of a whole log: `digits-trial-3-stdout.txt`."""
    again = f"-attempt-{attempt}" if attempt > 1 else ""
    return f"{_NOT_IN_A_NAME.sub('_', label)}-trial-{trial}{again}-{stream}.txt"


def _from_line_begin(data: bytes) -> bytes:
    newline = data.find(b"\n")
    return data[newline + 1 :] if 0 <= newline < len(data) - 1 else data


def _whole_characters(data: bytes) -> bytes:
    """Return the data up to its last whole character.

    The rest of a character at its end has not been written or read yet.
    """
    for length in range(1, min(_LONGEST_CHARACTER_BYTES, len(data) + 1)):
        last = data[-length]
        if last < 0x80:
            return data
        if last >= 0xC0:
            needed = 2 + (last >= 0xE0) + (last >= 0xF0)
            return data if length >= needed or length == len(data) else data[:-length]
    return data

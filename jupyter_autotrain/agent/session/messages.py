"""The messages of a session in its trial directory.

```
session/requests/NAME   one message to the kernel, as JSON; taken in the order of the names, then removed
session/frames.NUMBER   messages of the kernel, one JSON object per line; a long stream ends with `continued`, and is
                        followed by the next one
```

A message is that of Jupyter's protocol: `{"channel": "shell", "header": {...}, "parent_header": {...},
"metadata": {...}, "content": {...}, "buffers": [base64]}`. Besides shell, control, stdin and iopub there is the channel
`session`, of the session itself: `close` and `restart` are asked for, `ready`, `restarted`, `continued` and `closed`
are told.
"""

from __future__ import annotations

import base64
import json
import os
import uuid
from typing import Any

from jupyter_autotrain.agent import files

FOLDER = "session"
REQUESTS = "session/requests"
FRAMES = "session/frames"
SESSION = "session"  # the channel
LONGEST_BYTES = 16 << 20  # of a request
_STREAM_BYTES = 128 << 20  # after which the next one begins
_SHOWN_BYTES = 32 << 20  # by one cell
_SHOWS = frozenset({"stream", "display_data", "update_display_data", "execute_result"})
_LEFT_OUT = "\nThis cell has shown {} MB; the rest is left out here. The session's log has all that it prints.\n"
_DRAFT = ".draft"

Message = dict[str, Any]


def message(channel: str, kind: str, content: dict[str, Any], parent: Message | None = None) -> Message:
    """Return a message of ours, complete."""
    header = {"msg_id": uuid.uuid4().hex, "msg_type": kind, "username": "", "session": "autotrain", "version": "5.3"}
    parent_header = parent["header"] if parent else {}
    return {
        "channel": channel,
        "header": header,
        "parent_header": parent_header,
        "metadata": {},
        "content": content,
        "buffers": [],
    }


def encode(one: Message) -> bytes:
    """Return a message as one line; its buffers become text, and what JSON has no form for, as dates, too."""
    buffers = [base64.b64encode(buffer).decode() for buffer in one.get("buffers") or ()]
    return json.dumps({**one, "buffers": buffers}, default=str).encode() + b"\n"


def decode(line: bytes) -> Message | None:
    """Return the message of a line; None where it is none."""
    try:
        one = files.parse_json(line)
        if not isinstance(one, dict) or not isinstance(one.get("header"), dict):
            return None
        one["buffers"] = list(map(base64.b64decode, one.get("buffers") or ()))
    except (ValueError, TypeError):
        return None
    one["msg_id"] = one["header"].get("msg_id", "")
    one["msg_type"] = one["header"].get("msg_type", "")
    return {"parent_header": {}, "metadata": {}, "content": {}, "channel": "", **one}


class Requests:
    """The requests that lie in a trial directory.

    Args:
        directory: The trial directory.
    """

    def __init__(self, directory: str) -> None:
        self._folder = f"{directory}/{REQUESTS}"
        self._taken: set[str] = set()
        os.makedirs(self._folder, mode=0o700, exist_ok=True)

    def take(self) -> list[Message]:
        """Return the messages that are new, each once: a link that was cut may bring one again."""
        names = sorted(name for name in os.listdir(self._folder) if not name.endswith(_DRAFT))
        found = []
        for name in names:
            data = files.read(self._folder, name, LONGEST_BYTES)
            os.unlink(f"{self._folder}/{name}")
            one = None if name in self._taken else decode(data)
            self._taken.add(name)
            if one is not None:
                found.append(one)
        return found


class Frames:
    """The streams of what the kernel says, of which the last two are kept.

    Args:
        directory: The trial directory.
        stream_bytes: The length after which the next stream begins, with a cell; without one after twice as much.
        shown_bytes: How much of the output of one cell is kept.
    """

    def __init__(self, directory: str, stream_bytes: int = _STREAM_BYTES, shown_bytes: int = _SHOWN_BYTES) -> None:
        os.makedirs(f"{directory}/{FOLDER}", mode=0o700, exist_ok=True)
        self._directory = directory
        self._stream_bytes = stream_bytes
        self._most_shown_bytes = shown_bytes
        self._number = 0
        self._open()

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(f"{self._directory}/{FRAMES}.{self._number}", flags, 0o600)
        self._written_bytes = 0
        self._shown_bytes = 0

    def write(self, one: Message) -> None:
        """Append a message; what a cell shows beyond the limit is left out, which is told once."""
        kind = one["header"]["msg_type"]
        is_cell = kind == "execute_input"
        if self._written_bytes > self._stream_bytes * (1 if is_cell else 2):
            self._continue()
        data = encode(one)
        shown_bytes = 0 if is_cell else self._shown_bytes
        self._shown_bytes = shown_bytes + len(data) * (kind in _SHOWS)
        if kind not in _SHOWS or self._shown_bytes <= self._most_shown_bytes:
            self._append(data)
        elif shown_bytes <= self._most_shown_bytes:
            notice = {"name": "stderr", "text": _LEFT_OUT.format(self._most_shown_bytes >> 20)}
            self._append(encode({**message("iopub", "stream", notice), "parent_header": one["parent_header"]}))

    def _append(self, data: bytes) -> None:
        self._written_bytes += len(data)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def _continue(self) -> None:
        """Begin the next stream, and say so at the end of the present one."""
        ended = self._fd
        shown_bytes = self._shown_bytes
        self._number += 1
        self._open()
        self._shown_bytes = shown_bytes
        os.write(ended, encode(message(SESSION, "continued", {})))
        os.close(ended)
        if self._number > 1:
            os.unlink(f"{self._directory}/{FRAMES}.{self._number - 2}")

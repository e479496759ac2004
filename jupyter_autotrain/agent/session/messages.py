"""The messages of a session in its trial directory.

```
session/requests/NAME   one message to the kernel, as JSON; taken in the order of the names, then removed
session/frames          messages of the kernel, one JSON object per line
```

A message is that of Jupyter's protocol: `{"channel": "shell", "header": {...}, "parent_header": {...},
"metadata": {...}, "content": {...}, "buffers": [base64]}`. Besides shell, control, stdin and iopub there is the channel
`session`, of the session itself: `close` and `restart` are asked for, `ready`, `restarted` and `closed` are told.
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
    """The stream of what the kernel says.

    Args:
        directory: The trial directory.
    """

    def __init__(self, directory: str) -> None:
        os.makedirs(f"{directory}/{FOLDER}", mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(f"{directory}/{FRAMES}", flags, 0o600)

    def write(self, one: Message) -> None:
        """Append a message."""
        data = memoryview(encode(one))
        while data:
            data = data[os.write(self._fd, data) :]

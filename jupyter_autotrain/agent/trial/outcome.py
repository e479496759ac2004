"""The end of the cell, sent by the worker to its supervisor through memory, so that no full disk can prevent it.

The channel is an anonymous file, in memory on Linux, that the supervisor makes and the worker inherits. The worker
writes one line when its interpreter has come up, and one at its end:
`{"state": TrialState, "reason": str, "kind": str, "traceback": str, "cell_line": str, "at_s": float}`, the time on the
clock of `time.monotonic`, which all processes of a machine share: so it is known which of several workers failed first.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping

from jupyter_autotrain.agent import files, system

_MOST_BYTES = 1 << 20
_MOST_CHARACTERS = 65_536  # of one text


def open_channel() -> int:
    """Open a channel of one worker.

    The worker inherits it only where its side makes the descriptor inheritable.
    """
    return system.anonymous_file()


def write_started(fd: int) -> None:
    """Write, in the worker, that it has come up; its children do not inherit the channel."""
    os.set_inheritable(fd, False)
    write(fd, {})


def write(fd: int, outcome: Mapping[str, str]) -> None:
    """Write, in the worker, the outcome of the cell.

    The end of a long text is kept, where an error's message stands.
    """
    content: dict[str, object] = {key: text[-_MOST_CHARACTERS:] for key, text in outcome.items()}
    if outcome:
        content["at_s"] = time.monotonic()
    os.write(fd, json.dumps(content).encode() + b"\n")


def read(fd: int) -> tuple[bool, dict[str, object]]:
    """Return whether the worker's interpreter came up, and the outcome that it wrote; empty when it wrote none."""
    begun = False
    outcome = dict[str, object]()
    for line in os.pread(fd, min(_MOST_BYTES, os.fstat(fd).st_size), 0).splitlines():
        try:
            found = files.parse_json(line)
        except ValueError:
            continue  # a line that its writer did not live to finish
        begun = True
        outcome = found if isinstance(found, dict) and found else outcome
    return begun, outcome

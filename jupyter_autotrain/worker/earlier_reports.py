"""What an earlier run of a trial has reported in the same directory, where a scheduler begins it again."""

from __future__ import annotations

import json
import os

_TAIL_BYTES = 1 << 16


def last_step(path: str) -> tuple[bool, int, frozenset[str]]:
    """The end of a file of metrics.

    Returns:
        Whether its last line is a part of one; the last step that was reported, -1 for none; the metrics reported then.

    Raises:
        OSError: It cannot be read.
    """
    with open(path, "rb") as file:
        file.seek(-min(_TAIL_BYTES, os.fstat(file.fileno()).st_size), os.SEEK_END)
        data = file.read()
    step = -1
    names: set[str] = set()
    for line in data.splitlines():
        found = _report(line)
        if found is None or found[0] < step:
            continue
        if found[0] > step:
            names.clear()
        step = found[0]
        names |= found[1]
    return not data.endswith(b"\n"), step, frozenset(names)


def _report(line: bytes) -> tuple[int, set[str]] | None:
    """Step and metrics of a line; None for another one."""
    try:
        frame = json.loads(line)
    except ValueError:
        return None
    if not isinstance(frame, list) or len(frame) < 4 or frame[0] not in {"m", "r"}:
        return None
    return (frame[1], set(frame[3])) if isinstance(frame[1], int) and isinstance(frame[3], dict) else None

"""What an earlier run of a trial has reported in the same directory, where a scheduler begins it again."""

from __future__ import annotations

import json


def last_steps(path: str) -> tuple[bool, dict[str, int]]:
    """Read to the end of a file of metrics; O(its lines).

    Returns:
        Whether its last line is a part of one; the last step of each metric.

    Raises:
        OSError: It cannot be read.
    """
    steps: dict[str, int] = {}
    line = b"\n"
    with open(path, "rb") as file:
        for line in file:
            found = _report(line)
            if found is not None:
                step, names = found
                steps.update((name, step) for name in names if step > steps.get(name, -1))
    return not line.endswith(b"\n"), steps


def _report(line: bytes) -> tuple[int, set[str]] | None:
    """Step and metrics of a line; None for another one."""
    try:
        frame = json.loads(line)
    except ValueError:
        return None
    if not isinstance(frame, list) or len(frame) < 4 or frame[0] not in {"m", "r"}:
        return None
    return (frame[1], set(frame[3])) if isinstance(frame[1], int) and isinstance(frame[3], dict) else None

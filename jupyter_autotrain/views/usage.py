"""Curves of what a trial uses of its node, from the files `usage` of its attempts (`agent.wire`)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeGuard

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.records import TrialRecord

_MOST_BYTES: Final = 1 << 20  # five times what a supervisor writes in a year
_COLUMNS: Final = ("seconds", "cpu_percent", "memory_bytes", "gpu_percent", "gpu_memory_bytes")
_GPU_FROM: Final = 3  # the columns that may be null
_MOST: Final = 1 << 62


def usage_json(home: Home, trial: TrialRecord) -> JsonObject:
    """Return CPU, memory and GPUs of a trial over time.

    Returns:
        `attempts`: of each that has samples its `attempt` and columns of one length: `seconds` since it began,
        `cpu_percent` (100 is one CPU), `memory_bytes`, `gpu_percent` (the mean of its GPUs) and `gpu_memory_bytes`;
        a column of the GPUs is null where nothing of them is known. Of a trial on several nodes they are those of the
        first one.
    """
    attempts: list[JsonValue] = []
    for attempt in range(1, trial.attempt + 1):
        rows = list(_rows(home.trial(trial.experiment_id, trial.number, attempt)))
        if rows:
            attempts.append({"attempt": attempt, **_columns(rows)})
    return {"attempts": attempts}


def _columns(rows: list[list[float]]) -> JsonObject:
    columns: dict[str, JsonValue] = {}
    for name, values in zip(_COLUMNS, zip(*rows, strict=True), strict=True):
        columns[name] = None if set(values) == {None} else list(values)
    return columns


def _rows(directory: Path) -> Iterator[list[float]]:
    """Yield the samples of an attempt in order of time.

    One whose supervisor was started again goes on from where it was.
    """
    earlier_s = last_s = 0.0
    for seconds, *others in _samples(directory):
        earlier_s += last_s if seconds < last_s else 0.0
        last_s = seconds
        yield [earlier_s + seconds, *others]


def _samples(directory: Path) -> Iterator[list[float]]:
    """Yield the samples that a supervisor has written.

    A trial can write anything there, which is passed over.
    """
    try:
        data = files.read(directory, wire.USAGE, _MOST_BYTES)
    except OSError:
        return
    for line in data.split(b"\n")[:-1]:
        with contextlib.suppress(ValueError):
            found = files.parse_json(line)
            if _is_sample(found):
                yield found


def _is_sample(found: object) -> TypeGuard[list[float]]:
    if not isinstance(found, list) or len(found) != len(_COLUMNS):
        return False
    is_known = all(map(_is_amount, found[:_GPU_FROM]))
    return is_known and all(value is None or _is_amount(value) for value in found[_GPU_FROM:])


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST

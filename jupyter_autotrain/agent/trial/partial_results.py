"""The reports of a trial as files hold them: partial results of ranks at one step, the last steps of an earlier run.

Partial results of disjoint sets of ranks merge into that of all of them, in any order and grouping; so each node can
reduce its own ranks, and the first node the nodes. Sums of floats agree with one sum over all ranks to rounding.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence

_FIELDS = 4


class PartialResult:
    """The values of some ranks at one step.

    Args:
        count: How many values.
        total: Their sum; None where one of them is NaN, or the sum is out of range.
        least: The least; None where one of them is NaN.
        most: The greatest; likewise.
    """

    def __init__(self, count: int, total: float | None, least: float | None, most: float | None) -> None:
        self.count = count
        self.total = total
        self.least = least
        self.most = most

    @classmethod
    def of(cls, value: float | None) -> PartialResult:
        """Return the result of one rank; None stands for NaN."""
        return cls(1, value, value, value)

    @classmethod
    def from_json(cls, told: object) -> PartialResult | None:
        """Read the value that `to_json` gave; return None where it is anything else."""
        if not isinstance(told, list) or len(told) != _FIELDS or not isinstance(told[0], int) or told[0] < 1:
            return None
        if any(value is not None and not isinstance(value, (int, float)) for value in told[1:]):
            return None
        return cls(told[0], told[1], told[2], told[3])

    def to_json(self) -> list[float | None]:
        """Return the result as in a stream of partial results; see `agent.wire`."""
        return [self.count, self.total, self.least, self.most]

    def mean(self) -> float | None:
        """Return the mean; None for NaN."""
        return None if self.total is None else self.total / self.count


REDUCTIONS: Mapping[str, Callable[[PartialResult], float | None]] = {
    "mean": PartialResult.mean,
    "sum": lambda result: result.total,
    "min": lambda result: result.least,
    "max": lambda result: result.most,
}


def merge(parts: Sequence[PartialResult]) -> PartialResult:
    """Return the partial result of the ranks of all these parts."""
    count = sum(part.count for part in parts)
    least = _all_of([part.least for part in parts])
    most = _all_of([part.most for part in parts])
    totals = _all_of([part.total for part in parts])
    total = sum(totals) if totals else None
    is_out_of_range = isinstance(total, float) and not math.isfinite(total)
    return PartialResult(
        count, None if is_out_of_range else total, min(least) if least else None, max(most) if most else None
    )


def _all_of(values: Sequence[float | None]) -> list[float]:
    """Return the values; none at all where one of them is NaN."""
    numbers = [value for value in values if value is not None]
    return numbers if len(numbers) == len(values) else []


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
    """Return the step and metrics of a line; None for another one."""
    try:
        frame = json.loads(line)
    except ValueError:
        return None
    if not isinstance(frame, list) or len(frame) < 4 or frame[0] not in {"m", "r"}:
        return None
    return (frame[1], set(frame[3])) if isinstance(frame[1], int) and isinstance(frame[3], dict) else None

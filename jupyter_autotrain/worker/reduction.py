"""`report(..., all_ranks=True)`: one value from those of all ranks, by the supervisor, from the files of the ranks.

A step is reduced when each rank has reported it. A rank that has reported a later one, or has ended, is not waited for:
then the value is that of the others, and a note says so. Where a rank is started again, what it repeats is ignored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence

from jupyter_autotrain.core import files, wire
from jupyter_autotrain.worker import fields

_READ_BYTES = 1 << 20
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


REDUCTIONS: Mapping[str, Callable[[Sequence[float]], float]] = {"mean": _mean, "sum": sum, "min": min, "max": max}


class _Series:
    """The values of one metric by step and rank; None stands for NaN."""

    def __init__(self) -> None:
        self.values: dict[int, dict[int, float | None]] = {}
        self.newest: dict[int, int] = {}  # of each rank its last step
        self.reduced_to = -1
        self.is_incomplete = False  # noted

    def add(self, rank: int, step: int, value: float | None) -> None:
        self.newest[rank] = max(step, self.newest.get(rank, -1))
        if step > self.reduced_to:
            self.values.setdefault(step, {})[rank] = value

    def due(self, ranks: int, *, is_last: bool) -> list[int]:
        """The steps that can be reduced, in order."""
        found = []
        for step in sorted(self.values):
            missing = [rank for rank in range(ranks) if rank not in self.values[step]]
            if not is_last and any(self.newest.get(rank, -1) <= step for rank in missing):
                break
            found.append(step)
        return found


class RankReduction:
    """Reduces what the ranks of one trial report together.

    Args:
        ranks: How many there are on this host.
        now_s: Gives the seconds since the epoch.
        world_size: How many there are on all hosts; those of other hosts do not count, which a note says.
    """

    def __init__(self, ranks: int, now_s: Callable[[], float], world_size: int = 0) -> None:
        self._ranks = ranks
        self._now_s = now_s
        self._untold = (
            f"all_ranks= counts ranks 0 to {ranks - 1}, those of the first host" if world_size > ranks else ""
        )
        self._offsets = dict.fromkeys(range(ranks), 0)
        self._series: dict[tuple[str, str], _Series] = {}

    @property
    def is_used(self) -> bool:
        """True once a rank has reported so."""
        return bool(self._series)

    def update(self, *, is_last: bool = False) -> None:
        """Read what is new, and write what can be reduced; all that is left when it is the last time."""
        for rank in range(self._ranks):
            self._read(rank)
        lines = []
        if self._untold and self.is_used:
            lines.append(json.dumps(["n", round(self._now_s(), 6), "warning", self._untold]) + "\n")
            self._untold = ""
        for (name, how), series in self._series.items():
            for step in series.due(self._ranks, is_last=is_last):
                lines += self._reduced(name, how, series, step)
        if lines:
            fd = os.open(wire.METRICS, _APPEND, 0o600)
            try:
                os.write(fd, "".join(lines).encode())
            finally:
                os.close(fd)

    def _read(self, rank: int) -> None:
        name = wire.stream_of_rank(wire.METRICS, rank)
        while True:
            try:
                data = files.read(".", name, _READ_BYTES, self._offsets[rank])
            except OSError:
                return  # it is not there yet
            whole = data[: data.rfind(b"\n") + 1]
            if not whole:
                return
            self._offsets[rank] += len(whole)
            for line in whole.splitlines():
                if line.startswith(b'["r"'):
                    self._take(rank, line)

    def _take(self, rank: int, line: bytes) -> None:
        try:
            frame = files.parse_json(line)
        except ValueError:
            return
        if not isinstance(frame, list) or len(frame) != 5:
            return
        step = frame[1]
        for name, value in fields.mapping(frame[3]).items():
            if isinstance(step, int) and (value is None or isinstance(value, (int, float))):
                self._series.setdefault((name, str(frame[4])), _Series()).add(rank, step, value)

    def _reduced(self, name: str, how: str, series: _Series, step: int) -> list[str]:
        found = series.values.pop(step)
        series.reduced_to = step
        values = [value for value in found.values() if value is not None]
        is_nan = len(values) < len(found) or how not in REDUCTIONS
        value = None if is_nan else REDUCTIONS[how](values)
        now_s = round(self._now_s(), 6)
        lines = [json.dumps(["m", step, now_s, {name: value}]) + "\n"]
        missing = [rank for rank in range(self._ranks) if rank not in found]
        if missing and not series.is_incomplete:
            series.is_incomplete = True
            who = ", ".join(map(str, missing))
            text = f"{name} was not reported by rank {who} at step {step}; there it is the {how} of the other ranks"
            lines.append(json.dumps(["n", now_s, "warning", text]) + "\n")
        return lines

"""`report(..., all_ranks=True)`: one value from those of all ranks, by the supervisors, from the files of the ranks.

A step is reduced when each rank has reported it. A rank that has reported a later one, or has ended, is not waited for:
then the value is that of the others, and a note says so. Where a rank is started again, what it repeats is ignored.

On several nodes the supervisor of node N > 0 reduces the steps of its own ranks to partial results, and tells them to
that of node 0, in lines `["p", step, name, "mean", [count, sum, least, greatest], [rank, ...]]` with the ranks of that
node not in it. The supervisor of node 0 takes its own ranks and the other nodes alike: each is a source that gives at
most one value per metric and step, in the order of steps. With S(step) the values that have come from sources,

    due(step) = every source not in S(step) has given a later step, or has ended
    value(step) = merge(S(step)), once due(step) and all earlier steps of this metric are reduced

So what is written depends on what the sources say, and not on when it arrives. The one that reads metrics reads only
`metrics` of node 0, by its cursor; and node 0 does not end before the other nodes have, so what it leaves is complete.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Sequence

from jupyter_autotrain.agent import fields, files, wire
from jupyter_autotrain.agent.trial.partial_results import REDUCTIONS, PartialResult, merge
from jupyter_autotrain.agent.trial.rank_layout import RankLayout

_READ_BYTES = 1 << 20
_MOST_LINES = 1000  # at once
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class _Source:
    """The partial results of all ranks of another node."""

    def __init__(self, ranks: Sequence[int]) -> None:
        self.ranks = ranks
        self.has_ended = False


class _RankSource(_Source):
    """The stream with the reports of one rank, but for the lines that are there already."""

    def __init__(self, rank: int, directory: str) -> None:
        super().__init__([rank])
        self.stream = wire.stream_of_rank(wire.METRICS, rank)
        self.offset = 0
        with contextlib.suppress(OSError):  # no earlier run of the trial has reported; no rank has begun in this one
            self.offset = os.lstat(f"{directory}/{self.stream}").st_size

    def lines(self, directory: str) -> list[bytes]:
        """Return the whole lines that are new."""
        try:
            data = files.read(directory, self.stream, _READ_BYTES, self.offset)
        except OSError:
            return []  # it is not there yet
        whole = data[: data.rfind(b"\n") + 1]
        self.offset += len(whole)
        return whole.splitlines()


class _Series:
    """The values of one metric by step and source."""

    def __init__(self) -> None:
        self.values: dict[int, dict[_Source, PartialResult]] = {}
        self.missing: dict[int, list[int]] = {}  # the ranks that other nodes miss, by step
        self.newest: dict[_Source, int] = {}
        self.reduced_to = -1
        self.is_incomplete = False  # noted

    def add(self, source: _Source, step: int, value: PartialResult, missing: Sequence[int] = ()) -> None:
        self.newest[source] = max(step, self.newest.get(source, -1))
        if step > self.reduced_to:
            self.values.setdefault(step, {})[source] = value
            self.missing.setdefault(step, []).extend(missing)

    def due(self, sources: Sequence[_Source], *, is_last: bool) -> list[int]:
        """Return the steps that can be reduced, in order."""
        found = []
        for step in sorted(self.values):
            awaited = [one for one in sources if one not in self.values[step] and not one.has_ended]
            if not is_last and any(self.newest.get(one, -1) <= step for one in awaited):
                break
            found.append(step)
        return found

    def take(self, sources: Sequence[_Source], step: int) -> tuple[PartialResult, list[int]]:
        """Return the value of a step, and the ranks that are not in it."""
        self.reduced_to = step
        found = self.values.pop(step)
        missing = self.missing.pop(step)
        for source in sources:
            if source not in found:
                missing += source.ranks
        return merge([found[source] for source in sources if source in found]), sorted(missing)


class RankReduction:
    """The reduction of the values that the ranks of one trial report together.

    Args:
        layout: The ranks.
        now_s: Gives the seconds since the epoch.
        is_elastic: Whether other nodes may be lost, and so take no part; a note says so where there are any.
        tell: On another node than the first, tells node 0 of partial results.
        directory: The trial directory.
    """

    def __init__(
        self,
        layout: RankLayout,
        now_s: Callable[[], float],
        *,
        is_elastic: bool = False,
        tell: Callable[[str], None] | None = None,
        directory: str = ".",
    ) -> None:
        workers = layout.workers_per_node
        self._now_s = now_s
        self._directory = directory
        self._tell = tell
        self._ranks = [_RankSource(layout.rank(local), directory) for local in range(workers)]
        self._nodes: dict[int, _Source] = {}
        for node in range(1, layout.nodes) if tell is None and not is_elastic else ():
            self._nodes[node] = _Source(range(node * workers, (node + 1) * workers))
        self._sources = [*self._ranks, *self._nodes.values()]
        self._untold = ""
        if is_elastic and layout.nodes > 1:
            self._untold = f"all_ranks= counts ranks 0 to {workers - 1}, those of the first host"
        self._series: dict[tuple[str, str], _Series] = {}

    def take(self, node: int, lines: Sequence[str] | None) -> None:
        """Take the partial results of another node; None when it gives no more."""
        source = self._nodes.get(node)
        if source is None:
            return
        source.has_ended = lines is None
        for line in lines or ():
            frame = files.parse_json(line.encode())
            if isinstance(frame, list) and len(frame) == 6:
                self._take_partial(source, frame)

    def update(self, *, is_last: bool = False) -> None:
        """Read all that is new, and write the steps that can be reduced; the last time, all that is left.

        Raises:
            OSError: It cannot be written.
        """
        for source in self._ranks:
            while lines := source.lines(self._directory):
                for line in lines:
                    self._take_line(source, line)
        written = self._news()
        for (name, how), series in self._series.items():
            for step in series.due(self._sources, is_last=is_last):
                written += self._reduced(name, how, series, step)
        for begin in range(0, len(written), _MOST_LINES):
            (self._tell or self._append)("".join(written[begin : begin + _MOST_LINES]))

    def _news(self) -> list[str]:
        if not self._untold or not self._series:
            return []
        text = self._untold
        self._untold = ""
        return [self._note(text)]

    def _append(self, text: str) -> None:
        fd = os.open(f"{self._directory}/{wire.METRICS}", _APPEND, 0o600)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)

    def _take_line(self, source: _Source, line: bytes) -> None:
        if not line.startswith(b'["r"'):
            return
        with contextlib.suppress(ValueError):
            frame = files.parse_json(line)
            if isinstance(frame, list) and len(frame) == 5:
                self._take_report(source, frame)

    def _take_report(self, source: _Source, frame: list[object]) -> None:
        _, step, _, metrics, how = frame
        for name, value in fields.mapping(metrics).items():
            if isinstance(step, int) and (value is None or isinstance(value, (int, float))):
                self._of(name, how).add(source, step, PartialResult.of(value))

    def _take_partial(self, source: _Source, frame: list[object]) -> None:
        _, step, name, how, told, missing = frame
        value = PartialResult.from_json(told)
        if isinstance(step, int) and value is not None:
            left_out = [rank for rank in source.ranks if isinstance(missing, list) and rank in missing]
            self._of(str(name), how).add(source, step, value, left_out)

    def _of(self, name: str, how: object) -> _Series:
        return self._series.setdefault((name, str(how)), _Series())

    def _reduced(self, name: str, how: str, series: _Series, step: int) -> list[str]:
        value, missing = series.take(self._sources, step)
        if self._tell is not None:
            return [json.dumps(["p", step, name, how, value.to_json(), missing]) + "\n"]
        result = REDUCTIONS[how](value) if how in REDUCTIONS else None
        lines = [json.dumps(["m", step, round(self._now_s(), 6), {name: result}]) + "\n"]
        if missing and not series.is_incomplete:
            series.is_incomplete = True
            who = ", ".join(map(str, missing))
            text = f"{name} was not reported by rank {who} at step {step}; there it is the {how} of the other ranks"
            lines.append(self._note(text))
        return lines

    def _note(self, text: str) -> str:
        return json.dumps(["n", round(self._now_s(), 6), "warning", text]) + "\n"

"""`report(..., all_ranks=True)`: one value from those of all ranks, by the supervisors, from the files of the ranks.

A step is reduced when each rank has reported it. A rank that has reported a later one, or has ended, is not waited for:
then the value is that of the others, and a note says so. Where a rank is started again, what it repeats is ignored.

On several nodes the supervisor of node N > 0 reduces the steps of its own ranks to partial results, and appends them to
its stream `partials-N`; its last line there is `["e"]`. The supervisor of node 0 reads its own ranks and these streams
alike: each is a source that gives at most one value per metric and step, in the order of steps. With S(step) the values
that have come from sources,

    due(step) = every source not in S(step) has given a later step, or has ended
    value(step) = merge(S(step)), once due(step) and all earlier steps of this metric are reduced

So what is written depends on what the sources say, and not on when it arrives. Whoever brings `partials-N` to node 0
(a shared folder does; over SSH the backend carries it) has to bring each byte once and in order, which the size of the
file at node 0 tells. The one that reads metrics reads only `metrics` of node 0, by its cursor; and node 0 does not end
before the other nodes' streams have (`awaits_other_nodes`), so what it leaves is complete.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Sequence

from jupyter_autotrain.core import files, wire
from jupyter_autotrain.worker import fields
from jupyter_autotrain.worker.partial_results import REDUCTIONS, PartialResult, merge

_READ_BYTES = 1 << 20
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class _Source:
    """A stream with the reports of one rank, or the partial results of all ranks of another node."""

    def __init__(self, stream: str, ranks: Sequence[int]) -> None:
        self.stream = stream
        self.ranks = ranks
        self.offset = 0
        self.has_ended = False

    def skip(self, directory: str) -> None:
        """Leave out what is there already."""
        with contextlib.suppress(OSError):  # nothing is
            self.offset = os.lstat(f"{directory}/{self.stream}").st_size

    def lines(self, directory: str) -> list[bytes]:
        """The whole lines that are new."""
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
        """The steps that can be reduced, in order."""
        found = []
        for step in sorted(self.values):
            awaited = [one for one in sources if one not in self.values[step] and not one.has_ended]
            if not is_last and any(self.newest.get(one, -1) <= step for one in awaited):
                break
            found.append(step)
        return found

    def take(self, sources: Sequence[_Source], step: int) -> tuple[PartialResult, list[int]]:
        """The value of a step, and the ranks that are not in it."""
        self.reduced_to = step
        found = self.values.pop(step)
        missing = self.missing.pop(step)
        for source in sources:
            if source not in found:
                missing += source.ranks
        return merge([found[source] for source in sources if source in found]), sorted(missing)


class RankReduction:
    """Reduces what the ranks of one trial report together.

    Args:
        workers: How many ranks a node has.
        now_s: Gives the seconds since the epoch.
        nodes: How many nodes take part.
        node_rank: Which of them this is.
        left_out: How many ranks there are on nodes that take no part, which a note says.
        directory: The trial directory.
    """

    def __init__(
        self,
        workers: int,
        now_s: Callable[[], float],
        nodes: int = 1,
        node_rank: int = 0,
        left_out: int = 0,
        directory: str = ".",
    ) -> None:
        self._now_s = now_s
        self._directory = directory
        self._is_first = node_rank == 0
        self._to = wire.stream_of_rank(wire.METRICS if self._is_first else wire.PARTIALS, node_rank)
        own = range(node_rank * workers, (node_rank + 1) * workers)
        self._ranks = [_Source(wire.stream_of_rank(wire.METRICS, rank), [rank]) for rank in own]
        for source in self._ranks:
            source.skip(directory)  # an earlier run of the trial has reported it; no rank has begun in this one
        self._nodes: list[_Source] = []
        for node in range(1, nodes) if self._is_first else ():
            ranks = range(node * workers, (node + 1) * workers)
            self._nodes.append(_Source(wire.stream_of_rank(wire.PARTIALS, node), ranks))
        self._sources = [*self._ranks, *self._nodes]
        self._untold = f"all_ranks= counts ranks 0 to {workers - 1}, those of the first host" if left_out else ""
        self._series: dict[tuple[str, str], _Series] = {}

    @property
    def is_used(self) -> bool:
        """True once a rank has reported so."""
        return bool(self._series)

    @property
    def awaits_other_nodes(self) -> bool:
        """True while partial results of another node may come that count."""
        return self.is_used and not all(source.has_ended for source in self._nodes)

    def update(self, *, is_last: bool = False) -> None:
        """Read what is new, and write what can be reduced; all that is left when it is the last time.

        Raises:
            OSError: It cannot be written.
        """
        for source in self._sources:
            while lines := source.lines(self._directory):
                for line in lines:
                    self._take(source, line)
        written = self._news()
        for (name, how), series in self._series.items():
            for step in series.due(self._sources, is_last=is_last):
                written += self._reduced(name, how, series, step)
        end = wire.PARTIALS_END if is_last and not self._is_first else ""
        if written or end:
            self._append("".join(written) + end)

    def _news(self) -> list[str]:
        if not self._untold or not self.is_used:
            return []
        text = self._untold
        self._untold = ""
        return [self._note(text)]

    def _append(self, text: str) -> None:
        fd = os.open(f"{self._directory}/{self._to}", _APPEND, 0o600)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)

    def _take(self, source: _Source, line: bytes) -> None:
        kind = line[:4]
        if kind not in {b'["r"', b'["p"', b'["e"'}:
            return
        try:
            frame = files.parse_json(line)
        except ValueError:
            return
        if not isinstance(frame, list):
            return
        if source in self._ranks and kind == b'["r"' and len(frame) == 5:
            self._take_report(source, frame)
        elif source in self._nodes and kind == b'["p"' and len(frame) == 6:
            self._take_partial(source, frame)
        elif source in self._nodes and kind == b'["e"':
            source.has_ended = True

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
        if not self._is_first:
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

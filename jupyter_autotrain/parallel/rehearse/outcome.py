"""The findings of a rehearsal: the first thing that depends on the rank, uneven splits, memory of each rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from jupyter_autotrain.agent.sizes import format_memory
from jupyter_autotrain.errors import PlanError

SEND: Final = "send"
RECV: Final = "recv"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One exchange of a rank with others.

    Attributes:
        kind: The collective, or `SEND` or `RECV`.
        tensors: What it exchanges.
        line: The line of the user's code that leads to it.
        ranks: Those of the collective; the other one of what is sent or received.
    """

    kind: str
    tensors: tuple[str, ...]
    line: str
    ranks: tuple[int, ...]

    @property
    def form(self) -> tuple[object, ...]:
        """Return what has to be the same on all ranks that take part."""
        return self.tensors if self.kind in {SEND, RECV} else (self.kind, self.tensors, self.ranks)


@dataclass(slots=True)
class Recording:
    """One rank's run.

    Attributes:
        rank: Its number.
        exchanges: What it exchanges, in order.
        inputs: Shapes of what each call of the model gets.
        steps: Steps that it made.
        peak_bytes: Most bytes that it held in the last of them; 0 where there was none.
        error: What it raised, in a line; "" for nothing.
        line: Where, in the user's code.
    """

    rank: int
    exchanges: list[Exchange] = field(default_factory=list)
    inputs: list[tuple[tuple[int, ...], ...]] = field(default_factory=list)
    steps: int = 0
    peak_bytes: int = 0
    error: str = ""
    line: str = ""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The outcome of a rehearsal.

    Attributes:
        ranks: Number of ranks.
        rehearsed: Those that ran.
        faults: What would fail or hang, in sentences; the first is the one that comes first.
        uneven: Splits that work, but leave ranks idle, in sentences.
        peak_bytes: Rank → the most bytes that it held in a step on this machine, where it came so far.
        exchanges: Collectives of a rank.
    """

    ranks: int
    rehearsed: tuple[int, ...]
    faults: tuple[str, ...] = ()
    uneven: tuple[str, ...] = ()
    peak_bytes: Mapping[int, int] = field(default_factory=dict)
    exchanges: int = 0

    def __str__(self) -> str:
        numbers = ", ".join(map(str, self.rehearsed))
        lines = [f"Rehearsed ranks {numbers} of {self.ranks}: " + ("faults." if self.faults else "no fault.")]
        lines += [f"  fault   {fault}" for fault in self.faults]
        lines += [f"  uneven  {found}" for found in self.uneven]
        if self.peak_bytes:
            most = max(self.peak_bytes, key=lambda rank: self.peak_bytes[rank])
            held = format_memory(self.peak_bytes[most])
            lines.append(f"  memory  at most {held} (rank {most}), {self.exchanges} collectives in two steps")
        return "\n".join(lines)

    @classmethod
    def of(cls, ranks: int, recordings: Sequence[Recording]) -> Rehearsal:
        """Compare what some of the ranks did."""
        return cls(
            ranks=ranks,
            rehearsed=tuple(one.rank for one in recordings),
            faults=tuple(_faults(recordings)),
            uneven=tuple(_uneven(recordings)),
            peak_bytes={one.rank: one.peak_bytes for one in recordings if one.peak_bytes},
            exchanges=len(recordings[0].exchanges),
        )

    def check(self) -> None:
        """Refuse a loop with faults.

        Raises:
            PlanError: With the first of them.
        """
        if self.faults:
            raise PlanError(
                f"The rehearsal with {self.ranks} ranks found: {self.faults[0]}",
                "The same collectives in the same order on all ranks, and no error on any.",
                "Correct it, and rehearse again.",
            )


def _faults(recordings: Sequence[Recording]) -> Iterator[str]:
    failed = [one for one in recordings if one.error]
    if failed and len(failed) == len(recordings):
        yield f"Every rank fails{_at(failed[0].line)}: {failed[0].error}"
        return
    for one in failed[:1]:
        well = next(other.rank for other in recordings if not other.error)
        yield f"Rank {one.rank} fails{_at(one.line)}, rank {well} does not: {one.error}"
    whole = [one for one in recordings if not one.error]
    found = next(filter(None, (_difference(one, other) for one, other in combinations(whole, 2))), "")
    if found:
        yield found
    elif not whole[0].steps:
        yield "The loop ends without a step of an optimizer."


def _difference(one: Recording, other: Recording) -> str:
    """Return where two ranks first do not exchange the same with each other."""
    for mine, theirs in ((None, None), (SEND, RECV), (RECV, SEND)):
        found = _first_unlike(one, _with(one, other, mine), other, _with(other, one, theirs))
        if found:
            return f"{found}: they would wait for ever."
    return ""


def _with(one: Recording, other: Recording, kind: str | None) -> list[Exchange]:
    """Return what one rank sends to another, or receives from it; None: the collectives in which both take part."""
    kinds = {exchange.kind for exchange in one.exchanges} - {SEND, RECV} if kind is None else {kind}
    return [exchange for exchange in one.exchanges if exchange.kind in kinds and other.rank in exchange.ranks]


def _first_unlike(one: Recording, mine: list[Exchange], other: Recording, theirs: list[Exchange]) -> str:
    for a, b in zip(mine, theirs, strict=False):
        if a.form != b.form:
            return f"{_does(one, a)}, while {_does(other, b).replace('Rank', 'rank')}"
    more = mine[len(theirs) :] or theirs[len(mine) :]
    if not more:
        return ""
    longer, shorter = (one, other) if len(mine) > len(theirs) else (other, one)
    return f"{_does(longer, more[0])}, while rank {shorter.rank} has no more to exchange"


def _does(one: Recording, exchange: Exchange) -> str:
    tensors = f" of {' and '.join(exchange.tensors)}" if exchange.tensors else ""
    way = {SEND: " to", RECV: " from"}.get(exchange.kind)
    peer = f"{way} rank {exchange.ranks[0]}" if way else ""
    return f"Rank {one.rank} does {exchange.kind}{tensors}{peer}{_at(exchange.line)}"


def _uneven(recordings: Sequence[Recording]) -> Iterator[str]:
    """Yield that ranks compute on inputs of other shapes, by the first call of the model that differs."""
    well = [one for one in recordings if one.inputs]
    for one in well[1:]:
        for number, (a, b) in enumerate(zip(well[0].inputs, one.inputs, strict=False), start=1):
            if a and b and a != b:  # a part of a pipeline finds its batch itself
                yield f"Call {number} of the model gets {a[0]} on rank {well[0].rank} and {b[0]} on rank {one.rank}."
                return


def _at(line: str) -> str:
    return f" at {line}" if line else ""

"""A solved candidate: its stages with their decisions, and the time of a step.

What holds for every plan, checked wherever one is made: each op in one stage, each block in one stage. A plan that
breaks it is a fault of the search, not of the request; it is never returned. Time linear in the ops.

The plan of a stage comes in pieces that are decoded from chain tables: head, blocks, tail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf

from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.errors import InvariantError
from jupyter_autotrain.parallel.cost.memory import Recompute
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.cost.pipeline import pipeline_s
from jupyter_autotrain.parallel.graph.graph import RepeatedBlocks
from jupyter_autotrain.parallel.search.factors.factors import CostBreakdown, OpChoice, choices_of, cost_breakdown_of
from jupyter_autotrain.parallel.search.factors.problem import Rank, rank
from jupyter_autotrain.parallel.search.request.request import Candidate
from jupyter_autotrain.parallel.search.stage.folding import ChainTables


@dataclass(frozen=True, slots=True)
class ChainPiece:
    """Head (with block 0), a later block, or tail: its ops' choices and what they cost; block ids are block 1's."""

    choices: Mapping[int, OpChoice]
    breakdown: CostBreakdown


@dataclass(frozen=True, slots=True)
class StagePlan:
    """Decisions of one stage.

    Attributes:
        pieces: In order; the head piece first on the first stage, the tail piece last on the last one.
        states: (shared, end) after each piece but a tail.
        tables: Tables that the plan was read from.
    """

    pieces: tuple[ChainPiece, ...]
    states: tuple[tuple[int, int], ...]
    tables: ChainTables

    def choices(self, run: RepeatedBlocks, first_block: int) -> dict[int, OpChoice]:
        """Choices by the graph's own op ids, the stage's first block being the run's `first_block`."""
        found: dict[int, OpChoice] = {}
        for index, piece in enumerate(self.pieces):
            first = min(piece.choices, default=0)
            is_block = run.start + run.length <= first < run.start + 2 * run.length
            shift = (first_block + index - 1) * run.length if is_block else 0
            found.update({op + shift: choice for op, choice in piece.choices.items()})
        return found

    @property
    def breakdown(self) -> CostBreakdown:
        """Sum over the pieces."""
        total = CostBreakdown()
        for piece in self.pieces:
            total = total + piece.breakdown
        return total


@dataclass(frozen=True, slots=True)
class _BlockAt:
    """A later block between two states."""

    tables: ChainTables
    shared: int
    before: int
    after: int


def head_piece(tables: ChainTables, shared: int, end: int) -> ChainPiece:
    """Decode head and block 0."""
    head, mode, first = tables.decode_head(shared, end)
    chosen = choices_of(tables.model, head, Recompute.NONE, tables.weights)
    chosen |= choices_of(tables.model, first, mode, tables.weights)
    ops = (*tables.chain.head, *tables.chain.block(0))
    return ChainPiece(chosen, cost_breakdown_of(tables.model, chosen, ops))


def block_piece(tables: ChainTables, shared: int, before: int, after: int) -> ChainPiece:
    """Decode a later block; once between any two states."""

    def decode() -> ChainPiece:
        mode, rows = tables.decode_block(shared, before, after)
        chosen = choices_of(tables.model, rows, mode, tables.weights)
        return _piece_between(tables, chosen, tables.end_assignment(shared, before), tables.chain.block(1))

    return tables.cache.get(ChainPiece, _BlockAt(tables, shared, before, after), decode)


def tail_piece(tables: ChainTables, shared: int, end: int) -> ChainPiece:
    """Decode the ops after the blocks."""
    chosen = choices_of(tables.model, tables.decode_tail(shared, end), Recompute.NONE, tables.weights)
    return _piece_between(tables, chosen, tables.last_end_assignment(shared, end), tables.chain.tail)


def _piece_between(
    tables: ChainTables, chosen: dict[int, OpChoice], neighbours: Mapping[int, int], ops: Sequence[int]
) -> ChainPiece:
    """Return ops with what they cost beside the strategies of their neighbours."""
    any_sharding = tables.model.settings.state_shardings[0]
    around = {op: OpChoice(row, any_sharding) for op, row in neighbours.items()}
    return ChainPiece(chosen, cost_breakdown_of(tables.model, around | chosen, ops))


SHOWN = 3  # names in a message


def check_cover(stages: Iterable[Collection[object]], everything: Collection[object]) -> None:
    """Refuse stages that do not hold everything exactly once.

    Args:
        stages: What each stage holds.
        everything: What there is to hold; no duplicates.

    Raises:
        InvariantError: Naming some of what is missing, held twice or unknown.
    """
    held = list(stages)
    if sum(map(len, held)) == len(everything) and set(chain.from_iterable(held)) == set(everything):
        return
    counts = Counter(chain.from_iterable(held))
    missing = [str(item) for item in everything if item not in counts]
    twice = [str(item) for item, count in counts.items() if count > 1]
    strange = list(map(str, counts.keys() - set(everything)))
    raise _broken(
        f"The stages hold {sum(counts.values())} of {len(everything)} ops: {len(missing)} in no stage, {len(twice)} in "
        f"several, {len(strange)} unknown, such as {', '.join(map(repr, (missing + twice + strange)[:SHOWN]))}."
    )


def check_blocks(blocks: Sequence[range], count: int) -> None:
    """Refuse stages whose blocks are not `count` blocks in order, none left out, none twice, at least one per stage.

    Raises:
        InvariantError: With the blocks of each stage.
    """
    ends = [0, *(held.stop for held in blocks)]
    follows = all(held.start == end for held, end in zip(blocks, ends, strict=False))
    if not follows or ends[-1] != count or (count and not all(map(len, blocks))):
        shares = ", ".join(f"{held.start} to {held.stop}" for held in blocks)
        raise _broken(f"The stages hold blocks {shares} where there are {count} blocks.")


def _broken(found: str) -> InvariantError:
    return InvariantError(
        found,
        "Every op and every block lies in exactly one pipeline stage.",
        "This is a fault of the search, not of the model: no plan is given. Report it, and pin other stages.",
    )


@dataclass(frozen=True, slots=True)
class Stage:
    """A solved stage: its blocks, its choices, what it costs, and how many microbatches it holds."""

    blocks: range
    choices: Mapping[int, OpChoice]
    breakdown: CostBreakdown
    send_s: float
    in_flight: float
    device: Device

    @property
    def micro_s(self) -> float:
        """One microbatch with its messages."""
        return self.breakdown.micro_s + self.send_s

    @property
    def bytes(self) -> float:
        """Peak memory of a rank."""
        return self.breakdown.bytes(self.in_flight)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A candidate with its stages and what the step takes; no plan of this candidate is faster than `bound_s`.

    Strategies are rows of the tables of `models`, one per stage. `multiplier` is what one more byte of memory would
    save, where known [s/byte].

    Raises:
        InvariantError: Some op is in no stage, or in two.
    """

    candidate: Candidate
    stages: tuple[Stage, ...]
    bound_s: float
    models: tuple[CostModel, ...]
    multiplier: float = 0.0

    def __post_init__(self) -> None:
        check_cover([stage.choices for stage in self.stages], range(len(self.models[0].graph.ops)))

    def choices(self) -> list[OpChoice]:
        """Return what was decided for each op, stage by stage."""
        return list(chain.from_iterable(stage.choices.values() for stage in self.stages))

    @property
    def step_s(self) -> float:
        """Predicted seconds of one step."""
        times = [stage.micro_s for stage in self.stages]
        once = max(stage.breakdown.step_s for stage in self.stages)
        return pipeline_s(times, self.candidate.microbatches, self.candidate.chunks) + once

    @property
    def bytes(self) -> float:
        """Peak memory of the fullest rank."""
        return max(stage.bytes for stage in self.stages)

    @property
    def rank(self) -> Rank:
        """The order of plans."""
        return rank(self.step_s, self.bytes)


@dataclass(frozen=True, slots=True)
class CandidateResult:
    """The result of solving a candidate.

    Attributes:
        outcome: A plan that fits, when one was found.
        bound_s: No plan of the candidate is faster; infinite where none fits or can win.
        least_bytes: Memory that would do where nothing fits, where that is known.
    """

    outcome: Outcome | None
    bound_s: float
    least_bytes: float = inf

"""Chain tables at some weights, and the pieces of a plan that are decoded from them: head, blocks, tail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jupyter_autotrain.parallel.cost.memory import Recompute
from jupyter_autotrain.parallel.graph.graph import RepeatedBlocks
from jupyter_autotrain.parallel.search.factors.factors import CostBreakdown, OpChoice, choices_of, cost_breakdown_of
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
    tables: StageTables

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


@dataclass(eq=False)
class StageTables:
    """Chain tables at some weights, with the pieces decoded from them so far; an entry of the table cache."""

    chain_tables: ChainTables
    pieces: dict[tuple[int, int, int], ChainPiece] = field(default_factory=dict, repr=False)

    def head(self, shared: int, end: int) -> ChainPiece:
        """Head and block 0."""
        tables = self.chain_tables
        head, mode, first = tables.decode_head(shared, end)
        chosen = choices_of(tables.model, head, Recompute.NONE, tables.weights)
        chosen |= choices_of(tables.model, first, mode, tables.weights)
        ops = (*tables.chain.head, *tables.chain.block(0))
        return ChainPiece(chosen, cost_breakdown_of(tables.model, chosen, ops))

    def block(self, shared: int, before: int, after: int) -> ChainPiece:
        """A later block."""
        tables = self.chain_tables
        key = (shared, before, after)
        if key not in self.pieces:
            mode, rows = tables.decode_block(shared, before, after)
            chosen = choices_of(tables.model, rows, mode, tables.weights)
            any_sharding = tables.model.settings.state_shardings[0]
            around = {op: OpChoice(row, any_sharding) for op, row in tables.end_assignment(shared, before).items()}
            breakdown = cost_breakdown_of(tables.model, around | chosen, tables.chain.block(1))
            self.pieces[key] = ChainPiece(chosen, breakdown)
        return self.pieces[key]

    def tail(self, shared: int, end: int) -> ChainPiece:
        """Ops after the blocks."""
        tables = self.chain_tables
        chosen = choices_of(tables.model, tables.decode_tail(shared, end), Recompute.NONE, tables.weights)
        any_sharding = tables.model.settings.state_shardings[0]
        around = {op: OpChoice(row, any_sharding) for op, row in tables.last_end_assignment(shared, end).items()}
        return ChainPiece(chosen, cost_breakdown_of(tables.model, around | chosen, tables.chain.tail))

"""The plan of one stage, in pieces that are decoded from chain tables: head, blocks, tail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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

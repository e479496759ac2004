"""Chain tables at some weights, and the pieces of a plan that are decoded from them: head, blocks, tail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jupyter_autotrain.parallel.cost.memory import Recompute
from jupyter_autotrain.parallel.graph.graph import RepeatedBlocks
from jupyter_autotrain.parallel.search.factors.factors import Load, OpChoice, choices_of, load_of
from jupyter_autotrain.parallel.search.stage.folding import ChainTables


@dataclass(frozen=True, slots=True)
class ChainPiece:
    """Head (with block 0), a later block, or tail: its ops' choices and what they cost; block ids are block 1's."""

    choices: Mapping[int, OpChoice]
    load: Load


@dataclass(frozen=True, slots=True)
class StagePlan:
    """Decisions of one stage.

    Attributes:
        pieces: In order; the head piece first on the first stage, the tail piece last on the last one.
        states: (shared, end) after each piece but a tail.
        source: Tables that the plan was read from.
    """

    pieces: tuple[ChainPiece, ...]
    states: tuple[tuple[int, int], ...]
    source: StageTables

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
    def load(self) -> Load:
        """Sum over the pieces."""
        total = Load()
        for piece in self.pieces:
            total = total + piece.load
        return total


@dataclass(eq=False)
class StageTables:
    """Chain tables at some weights, with the pieces decoded from them so far; an entry of the table cache."""

    of: ChainTables
    pieces: dict[tuple[int, int, int], ChainPiece] = field(default_factory=dict, repr=False)

    def head(self, shared: int, end: int) -> ChainPiece:
        """Head and block 0."""
        head, mode, first = self.of.decode_head(shared, end)
        chosen = choices_of(self.of.model, head, Recompute.NONE, self.of.weights)
        chosen |= choices_of(self.of.model, first, mode, self.of.weights)
        return ChainPiece(chosen, load_of(self.of.model, chosen, (*self.of.chain.head, *self.of.chain.block(0))))

    def block(self, shared: int, before: int, after: int) -> ChainPiece:
        """A later block."""
        key = (shared, before, after)
        if key not in self.pieces:
            mode, rows = self.of.decode_block(shared, before, after)
            chosen = choices_of(self.of.model, rows, mode, self.of.weights)
            any_sharding = self.of.model.settings.state_shardings[0]
            around = {op: OpChoice(row, any_sharding) for op, row in self.of.ends(shared, before).items()}
            load = load_of(self.of.model, around | chosen, self.of.chain.block(1))
            self.pieces[key] = ChainPiece(chosen, load)
        return self.pieces[key]

    def tail(self, shared: int, end: int) -> ChainPiece:
        """Ops after the blocks."""
        chosen = choices_of(self.of.model, self.of.decode_tail(shared, end), Recompute.NONE, self.of.weights)
        any_sharding = self.of.model.settings.state_shardings[0]
        around = {op: OpChoice(row, any_sharding) for op, row in self.of.last_ends(shared, end).items()}
        return ChainPiece(chosen, load_of(self.of.model, around | chosen, self.of.chain.tail))

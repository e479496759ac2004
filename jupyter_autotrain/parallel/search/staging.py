"""How a pipeline's stages share the blocks: a bound over all partitions, and the partition that it speaks for.

Recurrence: of the stages' times t, T = m max t + (sum t - max t)/v + once-per-step work, so for any one stage

    T >= m t_i + once_i + (least compute of all other stages)/v

With n blocks stage i takes at least f_i(n): the least path over so many blocks whatever lies at their ends, and within
its memory L, at any price y of a byte and with a_i microbatches alive,

    f_i(n) >= min over paths of (m micro_s + step_s + y (state_bytes + a_i act_bytes)) - y L

As a minimum of lines in a_i this is concave, so two numbers alive bound all between. The bound is the least T at which
the stages can hold all blocks together. Time: one reduction of a block per price and number alive, rows of its min-plus
power, and a bisection.

Source: the time of a pipeline as in `cost.pipeline`; weak duality as in `dual`; the counting is elementary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from operator import add

import numpy as np

from jupyter_autotrain.parallel.cost.collectives import Floats
from jupyter_autotrain.parallel.cost.layout import Ints
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.search.folding import step_back, step_forward
from jupyter_autotrain.parallel.search.loads import Price
from jupyter_autotrain.parallel.search.space import Candidate
from jupyter_autotrain.parallel.search.stage import LIGHTEST, StageProblem

ROOM = 1.5  # blocks that a stage is thought of with, over its even share


@dataclass(frozen=True)
class Staging:
    """The partitions of a candidate whose stages are on equal devices.

    Attributes:
        whole: The chain on one stage's devices.
        candidate: Outer choices, with several stages.
        alive: Microbatches alive at the peak, by stage.
        limit_bytes: Memory of a rank.
    """

    whole: StageProblem
    candidate: Candidate
    alive: tuple[float, ...]
    limit_bytes: float
    _rows: dict[Price, Floats] = field(default_factory=dict, repr=False)

    def bound_s(self, byte_s: float = 0.0) -> float:
        """No plan of this candidate is faster; `byte_s` is what a byte is worth, 0 when memory is free."""
        return self._level(self._times(byte_s))

    def partition(self, byte_s: float = 0.0) -> list[int]:
        """Blocks per stage behind that bound."""
        times = self._times(byte_s)
        return self._shared(times, self._level(times))

    def fitting(self, byte_s: float = 0.0) -> list[int] | None:
        """The same, no stage with more blocks than its lightest plan seems to have room for; None: nothing fits."""
        held = self._lightest
        if self._level(held) > self.limit_bytes:
            return None
        times = np.where(held <= self.limit_bytes, self._times(byte_s), np.inf)
        return self._shared(times, self._level(times))

    def lightest(self) -> list[int]:
        """Blocks per stage where the fullest stage is as light as can be."""
        return self._shared(self._lightest, self._level(self._lightest))

    @cached_property
    def _lightest(self) -> Floats:
        """(stages, blocks) bytes at least."""
        return self._between(Price(LIGHTEST.per_byte, LIGHTEST.per_second))

    @property
    def _blocks(self) -> int:
        return self.whole.chain.run.count

    @property
    def _counted(self) -> int:
        """Most blocks of a stage that are looked at."""
        stages = self.candidate.stages
        return min(self._blocks - stages + 1, ceil(ROOM * self._blocks / stages) + 1)

    def _times(self, byte_s: float) -> Floats:
        """(stages, blocks) seconds of a step at least, if a stage holds so many blocks."""
        least = self._paths(Price(rounds=float(self.candidate.microbatches)))
        if byte_s:
            price = Price(byte_s, rounds=float(self.candidate.microbatches))
            least = np.maximum(least, self._between(price) - byte_s * self.limit_bytes)
        return least + self._others_s

    def _between(self, price: Price) -> Floats:
        """(stages, blocks) least value at a price, each stage with its own number alive."""
        few, many = min(self.alive), max(self.alive)
        low = self._paths(Price(price.per_byte, price.per_second, few, price.rounds))
        if many == few:
            return low
        high = self._paths(Price(price.per_byte, price.per_second, many, price.rounds))
        share = (np.array(self.alive) - few) / (many - few)
        return np.asarray(low + share[:, None] * (high - low))

    def _paths(self, price: Price) -> Floats:
        """(stages, blocks) least value of a path, the head before the first stage and the tail behind the last."""
        if price not in self._rows:
            tables = self.whole.tables(price).of
            first, middle, last = tables.head, np.zeros_like(tables.tail), tables.tail
            found = [(0.0, 0.0, 0.0)]
            for count in range(self._counted):
                first = step_forward(first, tables.step) if count else first
                middle, last = step_forward(middle, tables.step), step_back(tables.step, last)
                found.append((float(first.min()), float(middle.min()), float(last.min())))
            rows = np.array(found).T
            self._rows[price] = np.stack([rows[0], *[rows[1]] * (self.candidate.stages - 2), rows[2]])
        return self._rows[price]

    @cached_property
    def _others_s(self) -> Floats:
        """(stages, blocks) compute of all other stages that is not hidden behind this one."""
        chain, model, stages = self.whole.chain, self.whole.model, self.candidate.stages
        blocks = (self._blocks - np.arange(self._counted + 1)) * computing_s(model, chain.block(0))
        ends = np.full(stages, computing_s(model, chain.head) + computing_s(model, chain.tail))
        ends[0] -= computing_s(model, chain.head)
        ends[-1] -= computing_s(model, chain.tail)
        return np.asarray((ends[:, None] + blocks[None, :]) / self.candidate.chunks)

    def _level(self, values: Floats) -> float:
        """The least value up to which the stages hold all blocks; infinite when they never do."""
        if self.candidate.chunks > 1:
            return float(values[:, self._blocks // self.candidate.stages].max())
        levels = np.unique(values)
        low, high = 0, len(levels) - 1
        while low < high:
            middle = (low + high) // 2
            counts = self._most(values, levels[middle])
            low, high = (low, middle) if counts.all() and counts.sum() >= self._blocks else (middle + 1, high)
        return float(levels[low])

    def _shared(self, values: Floats, level: float) -> list[int]:
        """What the stages can hold up to a level, less what is too much, from the fullest stage first."""
        if self.candidate.chunks > 1:
            return [self._blocks // self.candidate.stages] * self.candidate.stages
        counts = np.minimum(self._most(values, level), self._counted).tolist()
        while sum(counts) > self._blocks:
            counts[max((values[i, n], i) for i, n in enumerate(counts) if n > 1)[1]] -= 1
        return [int(n) for n in counts]

    def _most(self, values: Floats, level: float) -> Ints:
        """Most blocks of each stage with a value up to the level; all of them where its row ends below it."""
        most = np.where(values <= level, np.arange(self._counted + 1), 0).max(axis=1)
        return np.asarray(np.where(most == self._counted, self._blocks, most))


def by_speed(block_s: Sequence[float], beside_s: Sequence[float], blocks: int) -> list[int]:
    """Blocks per stage, each given to the stage that would end earliest with it, which is best for equal blocks.

    Args:
        block_s: Seconds of a block, by stage.
        beside_s: Seconds of what a stage holds beside blocks.
        blocks: To share out, at least one to a stage.
    """
    counts, ends_s = [1] * len(block_s), list(map(add, block_s, beside_s))
    for _ in range(blocks - len(counts)):
        index = min(range(len(counts)), key=lambda i: (ends_s[i] + block_s[i], -i))
        counts[index] += 1
        ends_s[index] += block_s[index]
    return counts


def computing_s(model: CostModel, ops: Iterable[int]) -> float:
    """Seconds of one microbatch on the fastest strategy of each op, nothing else counted."""
    tables = [model.op(op) for op in ops]
    return sum(float((table.forward_s + table.backward_s).min()) for table in tables)

"""What a pipeline loses because its last stage holds more than blocks: a bound over all partitions.

Recurrence: of the stages' times t, T = m max t + (sum t - max t)/v + once-per-step work, so for any one stage

    T >= m t_i + once_i + (least compute of all other stages)/v

With k blocks the last stage takes at least L(k), some other one at least M(ceil((B-k)/(p-1))), both the least path over
so many blocks whatever lies at their ends; the bound is the least over k of the larger. Time: one reduction of a block
and two rows of its min-plus power.

Source: the time of a pipeline as in `cost.pipeline`; the counting is elementary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

import numpy as np

from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.search.folding import ChainTables, step_back, step_forward
from jupyter_autotrain.parallel.search.loads import Price
from jupyter_autotrain.parallel.search.space import Candidate
from jupyter_autotrain.parallel.search.stage import StageProblem


def imbalance_bound_s(whole: StageProblem, candidate: Candidate) -> float:
    """No plan of this candidate is faster, its stages all on devices as `whole` has; memory free."""
    chain, stages, chunks = whole.chain, candidate.stages, candidate.chunks
    blocks = chain.run.count
    block_s = _compute_s(whole.model, chain.block(0))
    head_s, tail_s = _compute_s(whole.model, chain.head), _compute_s(whole.model, chain.tail)
    last, middle = _least_paths(whole.tables(Price(rounds=float(candidate.microbatches))).of, blocks)

    def bound(held: int) -> float:
        other = ceil((blocks - held) / (stages - 1))
        of_last = last[held] + ((blocks - held) * block_s + head_s) / chunks
        return max(of_last, middle[other] + ((blocks - other) * block_s + head_s + tail_s) / chunks)

    return min(map(bound, [blocks // stages] if chunks > 1 else range(1, blocks - stages + 2)))


def _least_paths(tables: ChainTables, most: int) -> tuple[Sequence[float], Sequence[float]]:
    """By the number of blocks: with the tail behind them, and alone."""
    backward, forward = tables.tail, np.zeros_like(tables.tail)
    last, middle = [float(backward.min())], [0.0]
    for _ in range(most):
        backward = step_back(tables.step, backward)
        forward = step_forward(forward, tables.step)
        last.append(float(backward.min()))
        middle.append(float(forward.min()))
    return last, middle


def _compute_s(model: CostModel, ops: Iterable[int]) -> float:
    """Seconds of one microbatch on the fastest strategy of each op, nothing else counted."""
    tables = [model.op(op) for op in ops]
    return sum(float((table.forward_s + table.backward_s).min()) for table in tables)

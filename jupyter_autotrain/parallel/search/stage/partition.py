"""Partition of blocks over pipeline stages: minimax of a separable resource.

Variables: n_i, the blocks of stage i.
Objective: minimise max_i v_i(n_i), in seconds or bytes, v_i rising in n.
Constraints: sum_i n_i = blocks, every n_i >= 1.
Recurrence: with n_i(l) = max {n : v_i(n) <= l},

    level = min {l : sum_i n_i(l) >= blocks, every n_i(l) >= 1}

    by bisection over the values; blocks too many are then taken from the fullest stage one by one.
Complexity: O(log(stages x counts)) looks at the table, then one step per block too many.
Source: minimax sharing of a separable resource (Ibaraki and Katoh 1988, section 5).
Oracle: tests/oracle/test_search_partition.py::test_the_least_level_of_a_table_is_that_of_every_partition_looked_at
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isinf
from operator import add

import numpy as np

from jupyter_autotrain.parallel.arrays import Floats, Ints


def minimax_level(values: Floats, blocks: int, tail_capacity: int = 0) -> float:
    """Return the least level up to which the stages hold all blocks, each at least one; infinite when they never do.

    Args:
        values: (stages, counts) by the number of blocks, from none on; rising along each row.
        blocks: To partition.
        tail_capacity: What a stage may hold that is below the level at the end of its row; for tables that end early,
            of which only a bound is wanted. No more than the row has when 0.
    """
    levels = np.unique(values)
    low = 0
    high = len(levels)
    while low < high:
        middle = (low + high) // 2
        enough = _hold_all(_most(values, levels[middle], tail_capacity), blocks)
        low, high = (low, middle) if enough else (middle + 1, high)
    return float(levels[low]) if low < len(levels) else inf


def minimax_partition(values: Floats, blocks: int) -> list[int] | None:
    """Blocks per stage, all of them together, where the greatest value is least; None when the stages cannot hold them.

    Args:
        values: (stages, counts) by the number of blocks, from none on; rising along each row, infinite where a stage
            cannot hold so many.
        blocks: To partition.
    """
    level = minimax_level(values, blocks)
    if isinf(level):
        return None
    counts = _most(values, level, 0).tolist()
    while sum(counts) > blocks:
        counts[max((values[i, n], i) for i, n in enumerate(counts) if n > 1)[1]] -= 1
    return list(map(int, counts))


def greedy_partition(block_s: Sequence[float], beside_s: Sequence[float], blocks: int) -> list[int]:
    """Blocks per stage, each given to the stage that would end earliest with it, which is best for equal blocks.

    Args:
        block_s: Seconds of a block, by stage.
        beside_s: Seconds of the other ops of a stage.
        blocks: To partition, at least one to a stage.
    """
    counts = [1] * len(block_s)
    ends_s = list(map(add, block_s, beside_s))
    for _ in range(blocks - len(counts)):
        index = min(range(len(counts)), key=lambda i: (ends_s[i] + block_s[i], -i))
        counts[index] += 1
        ends_s[index] += block_s[index]
    return counts


def _most(values: Floats, level: float, tail_capacity: int) -> Ints:
    """Most blocks of each stage with a value up to the level."""
    last = values.shape[1] - 1
    most = np.where(values <= level, np.arange(last + 1), 0).max(axis=1)
    return np.asarray(np.where(most == last, max(last, tail_capacity), most))


def _hold_all(counts: Ints, blocks: int) -> bool:
    return bool(counts.all() and counts.sum() >= blocks)

"""Time of a pipelined step from the times of its stages."""

from __future__ import annotations

from collections.abc import Sequence


def pipeline_s(stage_s: Sequence[float], microbatches: int, chunks: int = 1) -> float:
    """Seconds of all microbatches through all stages.

    T = m max_i t_i + (sum_i t_i - max_i t_i) / v. With equal stages this is m t (1 + (p-1)/(v m)): the bubble of GPipe
    and 1F1B (v = 1, Huang et al. 2019, Narayanan et al. 2019) and of the interleaved schedule with v chunks
    (Narayanan et al. 2021, section 2.2.2).

    Args:
        stage_s: Time of one microbatch on each stage, forward and backward.
        microbatches: m.
        chunks: v, chunks of layers per device.
    """
    slowest = max(stage_s)
    return microbatches * slowest + (sum(stage_s) - slowest) / chunks


def bubble_s(stage_s: Sequence[float], microbatches: int, chunks: int = 1) -> float:
    """Idle seconds of the slowest stage: the part of `pipeline_s` in which it computes nothing."""
    return pipeline_s(stage_s, microbatches, chunks) - microbatches * max(stage_s)

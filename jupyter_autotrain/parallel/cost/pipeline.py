"""Time of a pipelined step from the times of its stages, and of the messages between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from jupyter_autotrain.core.cluster import LinkGroup
from jupyter_autotrain.parallel.cost.collectives import gather_s, send_s
from jupyter_autotrain.parallel.cost.layout import REPLICATE, output_layouts, shard_counts
from jupyter_autotrain.parallel.cost.model import CostModel


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


def p2p_s(model: CostModel, span: tuple[LinkGroup, ...], rows: Mapping[int, int]) -> float:
    """Return what a stage sends its neighbour in one microbatch, forward or back; seconds.

    Of what several ranks hold replicas, each sends a slice, gathered on the receiving stage (Narayanan et al. 2021,
    section 4.1).

    Args:
        model: Costs on the stage's devices.
        span: From a rank to its neighbour's.
        rows: Strategies of the ops whose outputs cross the border.
    """
    total = 0.0
    for op, row in rows.items():
        table = model.op(op)
        for out in table.op.outputs:
            placed = output_layouts(table.op, out, table.table)[row]
            held = model.tensor_bytes(out.tensor) / float(shard_counts(placed[None], model.axes)[0])
            alike = [axis for axis, code in zip(model.axes, placed.tolist(), strict=True) if code == REPLICATE]
            sliced = send_s(span, held / prod(axis.size for axis in alike))
            sliced += sum(float(gather_s(axis, held)) for axis in alike)
            total += min(send_s(span, held), sliced)
    return total

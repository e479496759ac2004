"""How much of a model's work is in ops without a rule: where it is more than a little, no gap is proved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import inf

from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.graph.graph import DTYPE_BYTES, Family, Op, OpGraph

MOST_UNSUPPORTED_SHARE = 0.01
"""Of the estimated work, for a plan that is still called proved."""
BACKWARD_PRODUCTS = 2.0


def unsupported_shares(graph: OpGraph, device: Device) -> Mapping[str, float]:
    """Kind of op without a rule → its share of the estimated work of a step, greatest first. Linear in the graph."""
    spent_s: dict[str, float] = defaultdict(float)
    total_s = 0.0
    for op in graph.ops:
        op_s = _seconds(graph, op, device)
        total_s += op_s
        if op.family is Family.UNKNOWN and op_s > 0:
            spent_s[op.kind] += op_s
    kinds = sorted(spent_s, key=lambda kind: -spent_s[kind])
    return {kind: spent_s[kind] / total_s for kind in kinds}


def reported_gap(gap: float, unsupported_work: Mapping[str, float]) -> float:
    """The gap of a plan; infinite where more work is in such ops than a proof may leave out."""
    return gap if sum(unsupported_work.values()) <= MOST_UNSUPPORTED_SHARE else inf


def _seconds(graph: OpGraph, op: Op, device: Device) -> float:
    """The least time of an op on one device: compute, or memory traffic."""
    flops = op.flops_forward + op.flops_backward
    if op.family is Family.UNKNOWN and not flops:
        flops = _guessed_flops(graph, op)
    half = bool(op.outputs) and DTYPE_BYTES[graph.tensors[op.outputs[0].tensor].dtype] <= 2
    rate = device.matrix_flops_per_s if half else device.matrix32_flops_per_s
    return max(flops / rate, (op.bytes_forward + op.bytes_backward) / device.memory_bytes_per_s)


def _guessed_flops(graph: OpGraph, op: Op) -> float:
    """An estimate for an op without a formula: a product along the longest dim of its inputs."""
    made = sum(graph.tensors[out.tensor].numel for out in op.outputs)
    longest = max((size for operand in op.inputs for size in graph.tensors[operand.tensor].shape), default=1)
    return 2.0 * made * longest * (1 + BACKWARD_PRODUCTS)

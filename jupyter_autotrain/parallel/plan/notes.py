"""Sentences that a reader needs to use a plan, and the share of work in ops without a rule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import inf

from jupyter_autotrain.agent.sizes import format_memory
from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.choices import beyond, is_batch_norm
from jupyter_autotrain.parallel.graph.graph import DTYPE_BYTES, Family, LoopRole, Op, OpGraph, TensorKind
from jupyter_autotrain.parallel.graph.roles import roles_along
from jupyter_autotrain.parallel.plan.formatting import ms
from jupyter_autotrain.parallel.search import Solution
from jupyter_autotrain.parallel.search.factors.lagrangian import relative_gap
from jupyter_autotrain.parallel.search.outer.device_subset_search import idle_devices

MOST_UNSUPPORTED_SHARE = 0.01
"""Of the estimated work, for a plan that is still called proved."""
BACKWARD_PRODUCTS = 2.0
MOST_NAMED = 3
LEAST_GAIN = 5e-4  # of a faster plan, to be told


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
    """Return the gap of a plan; infinite where more work is in such ops than a proof may leave out."""
    return gap if sum(unsupported_work.values()) <= MOST_UNSUPPORTED_SHARE else inf


def _seconds(graph: OpGraph, op: Op, device: Device) -> float:
    """Return the least time of an op on one device: compute, or memory traffic."""
    flops = op.flops_forward + op.flops_backward
    if op.family is Family.UNKNOWN and not flops:
        flops = _guessed_flops(graph, op)
    half = bool(op.outputs) and DTYPE_BYTES[graph.tensors[op.outputs[0].tensor].dtype] <= 2
    rate = device.matrix_flops_per_s if half else device.matrix32_flops_per_s
    return max(flops / rate, (op.bytes_forward + op.bytes_backward) / device.memory_bytes_per_s)


def _guessed_flops(graph: OpGraph, op: Op) -> float:
    """Return an estimate for an op without a formula: a product along the longest dim of its inputs."""
    made = sum(graph.tensors[out.tensor].numel for out in op.outputs)
    longest = max((size for operand in op.inputs for size in graph.tensors[operand.tensor].shape), default=1)
    return 2.0 * made * longest * (1 + BACKWARD_PRODUCTS)


def notes_of(graph: OpGraph, solution: Solution) -> tuple[str, ...]:
    """Sentences about a plan, most important first; none where there is nothing to say."""
    cut = _cut(graph) if solution.decision.microbatches > 1 else ()
    return (*_exported(solution), *_best(solution), *_idle(solution), *_traced(graph), *_batch(graph), *cut)


def _exported(solution: Solution) -> Iterator[str]:
    """Yield why a plan does not run, and where it is of use."""
    if solution.none_runs:
        yield solution.none_runs
    words = beyond(solution.graph, solution.decision)
    if len(solution.decision.stages) > 1 and not words:
        yield "Stages run by train = plan.parallelize(model, loss_fn, optimizer=optimizer), then train.step(batch)."
    if words:
        rest = len(words) - MOST_NAMED
        more = f" and {rest} more" if rest > 0 else ""
        yield f"Exported only: to_code() has it, apply() does not run {', '.join(words[:MOST_NAMED])}{more}."


def _best(solution: Solution) -> Iterator[str]:
    """Yield what the best plan would gain, where the answer is a simpler one."""
    if solution.best is None or solution.best.cost is None:
        return
    best = solution.best.cost
    is_proved = solution.complete and relative_gap(best.step_s, solution.bound_s) == 0
    is_proved &= reported_gap(0.0, unsupported_shares(solution.graph, solution.cluster.device)) == 0
    proved = "proved best" if is_proved else "best plan found"
    gain = 1 - best.step_s / solution.cost.step_s
    if gain < LEAST_GAIN:
        return
    memory = format_memory(best.peak_memory_bytes)
    yield f"The {proved}, {solution.best.what}, would gain {gain:.1%} ({ms(best.step_s)}) and takes {memory} per rank."


def _idle(solution: Solution) -> Iterator[str]:
    """Which devices are not used, and why."""
    if solution.full_cluster is None:
        return
    idle = " and ".join(f"{count}x{name}" for name, count in idle_devices(solution.full_cluster, solution.cluster))
    step = ms(solution.cost.step_s)
    used = solution.cluster.devices
    whole = f"with all {solution.full_cluster.devices} devices of {solution.full_cluster}"
    if solution.all_devices_s is None:
        yield f"Left out: {idle}. No plan was found {whole}; with these {used} a step takes {step}."
        return
    gain = 1 - solution.all_devices_s / solution.cost.step_s
    gained = f"they would gain {gain:.1%}" if gain > 0 else "they would gain nothing"
    best = ms(solution.all_devices_s)
    yield f"Left out: {idle}, {gained}. The best plan found {whole} takes {best}, with these {used} {step}."


def _traced(graph: OpGraph) -> Iterator[str]:
    """Yield what of the model was left out of the trace."""
    if graph.meta.get("note"):
        yield graph.meta["note"]


def _batch(graph: OpGraph) -> Iterator[str]:
    reason = graph.unsplittable_reason
    if reason:
        yield f"The batch is not cut into microbatches, which could change the mathematics: {reason}."
        if any(map(is_batch_norm, graph.ops)):
            yield (
                "Split along the batch, each rank takes its own batch statistics, as DDP does; SyncBatchNorm "
                "(torch.nn.SyncBatchNorm.convert_sync_batchnorm) takes those of all ranks."
            )
        else:
            yield "Split along the batch, devices must exchange what samples compare: DTensor does, plain DDP does not."


def _cut(graph: OpGraph) -> Iterator[str]:
    """Along which dims inputs are cut, where that is not the first, torch's default."""
    found: dict[str, int] = {}
    for op in graph.ops:
        for x in op.inputs:
            tensor = graph.tensors[x.tensor]
            roles = roles_along(op.loops, x)
            if tensor.kind is TensorKind.INPUT and LoopRole.BATCH in roles:
                found.setdefault(tensor.name, roles.index(LoopRole.BATCH))
    later = [f"dim {dim} of {name}" for name, dim in found.items() if dim]
    if later:
        yield f"Microbatches are cut along {' and '.join(later)}, where samples lie (args_chunk_spec of a Schedule)."

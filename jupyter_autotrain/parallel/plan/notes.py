"""What a reader must know to use a plan, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from jupyter_autotrain.parallel.graph.graph import LoopRole, OpGraph, TensorKind
from jupyter_autotrain.parallel.plan.formatting import ms
from jupyter_autotrain.parallel.search import Solution
from jupyter_autotrain.parallel.search.outer.device_subset_search import idle_devices


def notes_of(graph: OpGraph, solution: Solution) -> tuple[str, ...]:
    """Sentences about a plan, most important first; none where there is nothing to say."""
    cut = _cut(graph) if solution.decision.microbatches > 1 else ()
    return (*_idle(solution), *_traced(graph), *_batch(graph), *cut)


def _idle(solution: Solution) -> Iterator[str]:
    """Which devices are not used, and why."""
    if solution.full_cluster is None:
        return
    idle = " and ".join(f"{count}x{name}" for name, count in idle_devices(solution.full_cluster, solution.cluster))
    step = ms(solution.cost.step_s)
    used = solution.cluster.devices
    whole = f"with all {solution.full_cluster.devices} devices of {solution.full_cluster}"
    if solution.all_devices_s is None:
        yield f"Idle: {idle}. No plan was found {whole}; with these {used} a step takes {step}."
    else:
        yield f"Idle: {idle}. The best plan found {whole} takes {ms(solution.all_devices_s)}, with these {used} {step}."


def _traced(graph: OpGraph) -> Iterator[str]:
    """What of the model was left out of the trace."""
    if graph.meta.get("note"):
        yield graph.meta["note"]


def _batch(graph: OpGraph) -> Iterator[str]:
    reason = graph.unsplittable_reason
    if reason:
        yield f"The batch is not cut into microbatches, which could change the mathematics: {reason}."
        yield (
            "Split along the batch, devices must exchange what samples compare: DTensor does; plain DDP does not, and "
            "BatchNorm does as SyncBatchNorm only."
        )


def _cut(graph: OpGraph) -> Iterator[str]:
    """Along which dims inputs are cut, where that is not the first, torch's default."""
    inputs = {t.id: t.name for t in graph.tensors if t.kind is TensorKind.INPUT}
    found: dict[str, int] = {}
    for op in graph.ops:
        for x in op.inputs:
            roles = [LoopRole.OTHER if loop is None else op.loops[loop].role for loop in x.loops]
            if x.tensor in inputs and LoopRole.BATCH in roles:
                found.setdefault(inputs[x.tensor], roles.index(LoopRole.BATCH))
    later = [f"dim {dim} of {name}" for name, dim in found.items() if dim]
    if later:
        yield f"Microbatches are cut along {' and '.join(later)}, where samples lie (args_chunk_spec of a Schedule)."

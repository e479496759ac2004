"""The choices of a plan, and which of them `Plan.apply` runs: one table, with a row per kind of choice.

Everything that asks "does this run" reads it: `apply` refuses what a plan has beyond the executed rows, before
anything of it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

from jupyter_autotrain.parallel.cost.memory import Recompute, Schedule, ZeroLevel
from jupyter_autotrain.parallel.decision import Decision
from jupyter_autotrain.parallel.expert_axis import expert_axis, wholly_split, why_not_exchanged
from jupyter_autotrain.parallel.graph.graph import LoopRole, Op, OpGraph, TensorKind
from jupyter_autotrain.parallel.pipeline_axis import pipeline_recipe, why_not_staged
from jupyter_autotrain.parallel.tensor_axis import roles_of_axes, tensor_axis, why_not_executed

BATCH_STATISTICS: Final = ("batch_norm", "native_batch_norm", "_batch_norm_with_update")


class Support(StrEnum):
    """The extent to which a choice is supported."""

    EXECUTED = "executed"
    EXPORTED = "exported only"
    NOT_OFFERED = "not offered"


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision for a graph, with what several rows ask of it.

    Attributes:
        graph: The graph.
        decision: The decision.
        roles: Roles of the loops that each axis splits.
        tensor_axis: The axis over which layers are split.
        why_not_shared: Why that axis is not executed; "" where it is, or where there is none.
        why_not_staged: Why the stages are not executed; "" where they are, or where there is one.
        why_not_exchanged: Why the expert axis is not executed; "" where it is, or where there is none.
    """

    graph: OpGraph
    decision: Decision
    roles: tuple[set[LoopRole], ...]
    tensor_axis: int | None
    why_not_shared: str
    why_not_staged: str
    why_not_exchanged: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A kind of choice.

    Attributes:
        name: For people.
        support: How far it goes.
        found: What of it a plan has, in words; "" for nothing.
    """

    name: str
    support: Support
    found: Callable[[Decided], str]


def choices_in(graph: OpGraph, decision: Decision) -> Iterator[tuple[Choice, str]]:
    """Yield the rows that a plan uses, each with what it has of it."""
    return _used(CHOICES, graph, decision)


def _used(rows: Iterable[Choice], graph: OpGraph, decision: Decision) -> Iterator[tuple[Choice, str]]:
    roles = roles_of_axes(graph, decision)
    reasons = (function(graph, decision) for function in (why_not_executed, why_not_staged, why_not_exchanged))
    decided = Decided(graph, decision, roles, tensor_axis(graph, decision), *reasons)
    for choice in rows:
        words = choice.found(decided)
        if words:
            yield choice, words


def beyond(graph: OpGraph, decision: Decision) -> tuple[str, ...]:
    """Return what a plan has that is not executed, in words."""
    return tuple(words for _, words in _used(_other_rows(), graph, decision))


def runs(graph: OpGraph, decision: Decision) -> bool:
    """Return whether a plan has executed choices only; the first other one answers that."""
    return next(_used(_other_rows(), graph, decision), None) is None


def _other_rows() -> Iterator[Choice]:
    return (choice for choice in CHOICES if choice.support is not Support.EXECUTED)


def executed() -> tuple[str, ...]:
    """Return the names of the executed rows."""
    return tuple(choice.name for choice in CHOICES if choice.support is Support.EXECUTED)


def _axis(role: LoopRole, what: str, plan: Decided) -> str:
    """Return the axes that split loops of a role, but for the tensor axis, which has rows of its own."""
    names = plan.decision.mesh.axes
    axes = [names[axis] for axis, roles in enumerate(plan.roles) if axis != plan.tensor_axis and role in roles]
    return f"{what} over the axis {' and '.join(axes)}" if axes else ""


def _layers(plan: Decided) -> str:
    """Return the tensor axis over which layers are split, whatever lies between them."""
    if plan.tensor_axis is None or plan.why_not_shared:
        return ""
    return f"layers split over the axis {plan.decision.mesh.axes[plan.tensor_axis]}"


def _positions(plan: Decided) -> str:
    """Return the tensor axis that splits positions within layers."""
    axis = plan.tensor_axis
    if axis is None or LoopRole.SEQUENCE not in plan.roles[axis] or plan.why_not_shared:
        return ""
    return f"positions within layers split over the axis {plan.decision.mesh.axes[axis]}"


def _odd_layers(plan: Decided) -> str:
    """Return why a tensor axis is not executed."""
    reason = plan.why_not_shared
    axis = plan.decision.mesh.axes[plan.tensor_axis or 0] if reason else ""
    return f"layers split over the axis {axis}, where {reason}" if reason else ""


def _experts(plan: Decided) -> str:
    """Return the expert axis over which mixtures are shared out."""
    axis = expert_axis(plan.graph, plan.decision)
    if axis is None or plan.why_not_exchanged:
        return ""
    return f"experts split over the axis {plan.decision.mesh.axes[axis]}"


def _odd_experts(role: LoopRole, plan: Decided) -> str:
    """Return why the split of a loop of experts is not executed."""
    names = "" if _experts(plan) else _axis(role, "experts split", plan)
    return f"{names}, where {plan.why_not_exchanged}" if names and plan.why_not_exchanged else names


def _experts_beside_layers(plan: Decided) -> str:
    """Return the expert axis that stands beside a tensor axis, with what runs in its place."""
    axis = expert_axis(plan.graph, plan.decision)
    if axis is None or plan.tensor_axis in {None, axis}:
        return ""
    return (
        "experts split over one axis and layers over another, where experts run beside samples alone "
        "(mesh={'dp': ..., 'ep': ...})"
    )


def _idle_axis(plan: Decided) -> str:
    axes = [name for name, roles in zip(plan.decision.mesh.axes, plan.roles, strict=True) if not roles]
    return f"the same work on all ranks of the axis {' and '.join(axes)}" if axes else ""


def _stages(plan: Decided, *, equal: bool) -> str:
    stages = len(plan.decision.stages)
    if stages == 1 or plan.why_not_staged:
        return ""
    recipe = pipeline_recipe(plan.graph, plan.decision)
    assert recipe is not None
    sizes = {len(recipe.layers_of(part)) for part in range(recipe.parts)}
    return f"{stages} pipeline stages" if (len(sizes) == 1) is equal else ""


def _shared_stages(plan: Decided) -> str:
    shared = _layers(plan) if len(plan.decision.stages) > 1 else ""
    return f"{shared} in each stage" if shared else ""


def _odd_stages(plan: Decided) -> str:
    """Return why pipeline stages are not executed."""
    stages = len(plan.decision.stages)
    if stages == 1:
        return ""
    reason = plan.why_not_staged
    if not reason and any(map(is_batch_norm, plan.graph.ops)):
        reason = "batch statistics are of whole batches"
    return f"{stages} pipeline stages, where {reason}" if reason else ""


def _schedule(schedule: Schedule, plan: Decided) -> str:
    return f"the schedule {schedule}" if len(plan.decision.stages) > 1 and plan.decision.schedule is schedule else ""


def _accumulation(plan: Decided) -> str:
    alone = len(plan.decision.stages) == 1
    return f"{plan.decision.microbatches} microbatches, accumulated" if alone and plan.decision.microbatches > 1 else ""


def _zero(level: ZeroLevel, what: str, plan: Decided) -> str:
    used = any(op.states.zero is level for op in plan.decision.ops.values())
    return what if used and plan.decision.mesh.devices > 1 else ""


def _levels(plan: Decided) -> str:
    parameters = {t.id for t in plan.graph.tensors if t.kind is TensorKind.PARAMETER and t.trainable}
    alone = wholly_split(plan.graph, plan.decision)
    levels = set[ZeroLevel]()
    for op in plan.graph.ops:
        if op.id not in alone and not parameters.isdisjoint(x.tensor for x in op.inputs):
            levels.add(plan.decision.ops[op.name].states.zero)
    several = len(levels) > 1 and plan.decision.mesh.devices > 1
    return f"some weights at ZeRO level {min(levels):d}, others at {max(levels):d}" if several else ""


def _hybrid(plan: Decided) -> str:
    return "weights shared out within groups" if any(op.states.inner for op in plan.decision.ops.values()) else ""


def _recompute(mode: Recompute, plan: Decided) -> str:
    return f"recompute {mode}" if any(op.recompute is mode for op in plan.decision.ops.values()) else ""


def _host(what: str, states: str, plan: Decided) -> str:
    return (
        f"{what} in the host's memory" if any(getattr(op.states, states) for op in plan.decision.ops.values()) else ""
    )


def _joined_samples(plan: Decided) -> str:
    """Return why ranks may not have samples of their own; batch statistics may be of a rank's own samples."""
    reason = plan.graph.unsplittable_reason
    if not reason or not any(LoopRole.BATCH in roles for roles in plan.roles) or _batch_statistics(plan):
        return ""
    return f"samples of its own on each rank, although {reason}"


def _batch_statistics(plan: Decided) -> str:
    if plan.decision.mesh.devices > 1 and any(is_batch_norm(op) for op in plan.graph.ops):
        return "batch statistics"
    return ""


def _half_precision(plan: Decided) -> str:
    trained = (t for t in plan.graph.tensors if t.kind is TensorKind.PARAMETER and t.trainable)
    return "float16 weights, whose gradients need scaling" if any(t.dtype == "float16" for t in trained) else ""


def is_batch_norm(op: Op) -> bool:
    """Return whether an op takes statistics over the batch."""
    words = " ".join([op.kind, *(member.name for member in op.members)])
    return any(name in words for name in BATCH_STATISTICS)


_EXECUTED, _EXPORTED, _NOT = Support
_CONTEXT: Final = "positions split (context parallelism, which torch runs on GPUs only)"

CHOICES: Final = (
    Choice("data axis", _EXECUTED, partial(_axis, LoopRole.BATCH, "samples split")),
    Choice("DDP", _EXECUTED, partial(_zero, ZeroLevel.NONE, "replicated weights")),
    Choice("ZeRO-1", _EXECUTED, partial(_zero, ZeroLevel.OPTIMIZER, "optimizer states shared out")),
    Choice("ZeRO-2", _EXECUTED, partial(_zero, ZeroLevel.GRADIENTS, "gradients shared out")),
    Choice("ZeRO-3", _EXECUTED, partial(_zero, ZeroLevel.PARAMETERS, "weights shared out")),
    Choice("expert axis beside a tensor axis", _EXPORTED, _experts_beside_layers),
    Choice("several ZeRO levels", _EXPORTED, _levels),
    Choice("HSDP", _EXECUTED, _hybrid),
    Choice("recompute of whole layers", _EXECUTED, partial(_recompute, Recompute.FULL)),
    Choice("recompute of attention", _EXECUTED, partial(_recompute, Recompute.SELECTIVE)),
    Choice("accumulation", _EXECUTED, _accumulation),
    Choice("batch statistics", _EXECUTED, _batch_statistics),
    Choice("tensor axis", _EXECUTED, _layers),
    Choice("tensor axis with sequence", _EXECUTED, _positions),
    Choice("torch.compile on a tensor axis", _NOT, lambda _: ""),  # a choice of the script, which `apply` refuses
    Choice("start on the meta device", _EXECUTED, lambda _: ""),  # a choice of the script, too
    Choice("tensor axis used otherwise", _EXPORTED, _odd_layers),
    Choice("tensor axis over features", _EXPORTED, partial(_axis, LoopRole.FEATURE, "features split")),
    Choice("tensor axis over heads", _EXPORTED, partial(_axis, LoopRole.HEAD, "heads split")),
    Choice("tensor axis over other loops", _EXPORTED, partial(_axis, LoopRole.OTHER, "a tensor split")),
    Choice("context axis", _EXPORTED, partial(_axis, LoopRole.SEQUENCE, _CONTEXT)),
    Choice("spatial axis", _EXPORTED, partial(_axis, LoopRole.SPATIAL, "height or width split")),
    Choice("expert axis", _EXECUTED, _experts),
    Choice("expert axis used otherwise", _EXPORTED, partial(_odd_experts, LoopRole.EXPERT)),
    Choice("pipeline of equal stages", _EXECUTED, partial(_stages, equal=True)),
    Choice("pipeline of unequal stages", _EXECUTED, partial(_stages, equal=False)),
    Choice("tensor axis in stages", _EXECUTED, _shared_stages),
    Choice("GPipe", _EXECUTED, partial(_schedule, Schedule.GPIPE)),
    Choice("1F1B", _EXECUTED, partial(_schedule, Schedule.ONE_F_ONE_B)),
    Choice("interleaved 1F1B", _EXECUTED, partial(_schedule, Schedule.INTERLEAVED)),
    Choice("pipeline stages used otherwise", _EXPORTED, _odd_stages),
    Choice("optimizer on the host", _EXPORTED, partial(_host, "optimizer states", "offload")),
    Choice("table on the host", _EXPORTED, partial(_host, "embedding tables", "host_table")),
    Choice("idle axis", _NOT, _idle_axis),
    Choice("float16 weights", _NOT, _half_precision),
    Choice("samples that meet", _NOT, _joined_samples),
)

"""Names of plans, as people say them: "FSDP over 16, microbatch 2", "HSDP 2 x 8", "tensor 8 x pipeline 4 x data 2"."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from types import MappingProxyType
from typing import Final

from jupyter_autotrain.core.cluster import TIMES, MeshSpec
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.parallel.cost.memory import Recompute, Schedule, ZeroLevel
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.cost.states import StateSharding
from jupyter_autotrain.parallel.graph.graph import LoopRole, Op
from jupyter_autotrain.parallel.search.request.request import batch_size
from jupyter_autotrain.parallel.search.stage.outcome import Outcome, Stage

DATA: Final = "data"
EXPERT: Final = "expert"
REPLICA: Final = "replica"
INNER_WORDS: Final = ("tensor", EXPERT, "context")
AXIS_WORDS: Final[Mapping[LoopRole, str]] = MappingProxyType(
    {
        LoopRole.BATCH: DATA,
        LoopRole.SEQUENCE: "context",
        LoopRole.FEATURE: "tensor",
        LoopRole.HEAD: "tensor",
        LoopRole.EXPERT: EXPERT,
        LoopRole.SPATIAL: "context",
        LoopRole.OTHER: "tensor",
    }
)
LEVEL_WORDS: Final = MappingProxyType(
    {
        ZeroLevel.NONE: "DDP",
        ZeroLevel.OPTIMIZER: "ZeRO-1",
        ZeroLevel.GRADIENTS: "ZeRO-2",
        ZeroLevel.PARAMETERS: "FSDP",
    }
)


def named_mesh(model: CostModel, stage: Stage) -> MeshSpec:
    """Name each axis by the role that it splits most work along; axes of one name are tiers of one.

    One that splits experts and else samples is named for the experts, however little of the work is theirs.
    """
    weights: list[dict[str, float]] = [defaultdict(float) for _ in model.mesh.axes]
    alike = Counter((model.block_representative(op_id), choice.strategy) for op_id, choice in stage.choices.items())
    for (op_id, row), times in alike.items():
        op = model.graph.ops[op_id]
        for axis, loop in enumerate(model.split_loops(op_id, row)):
            word = REPLICA if loop is None else AXIS_WORDS[op.loops[loop].role]
            weights[axis][word] += times * (1 + op.flops_forward)
    return replace(model.mesh, axes=tuple(map(_axis_name, weights)))


def _axis_name(weights: Mapping[str, float]) -> str:
    if EXPERT in weights and weights.keys() <= {EXPERT, DATA, REPLICA}:
        return EXPERT
    return max(weights, key=lambda word: weights[word], default=REPLICA)


def plan_name(outcome: Outcome) -> str:
    """Return a plan's name in one line that a person can repeat."""
    mesh = named_mesh(outcome.models[0], outcome.stages[0])
    return ", ".join([_degrees(outcome, mesh), *_details(outcome, mesh)])


def axis_sizes(mesh: MeshSpec) -> dict[str, int]:
    """Return the devices along each axis, its tiers taken together."""
    sizes: dict[str, int] = {}
    for word, size in zip(mesh.axes, mesh.shape, strict=True):
        sizes[word] = sizes.get(word, 1) * size
    return sizes


def _degrees(outcome: Outcome, mesh: MeshSpec) -> str:
    sizes = axis_sizes(mesh)
    stages = outcome.candidate.stages
    how = _sharing(outcome)
    if how == "HSDP":
        return f"HSDP {TIMES.join(map(str, mesh.shape))}"
    if sizes.keys() == {DATA} and stages == 1:
        return f"{how} over {sizes[DATA]}{_tiers(outcome, mesh)}"
    words = [f"{word} {size}" for word, size in sizes.items() if word != DATA]
    if stages > 1:
        words.append(f"pipeline {stages}")
    if DATA in sizes:
        words.append(f"{how if how == 'FSDP' else DATA} {sizes[DATA]}{_tiers(outcome, mesh)}")
    is_said = DATA not in sizes or how in {"FSDP", "DDP"}
    return (TIMES.join(words) or "one device") + ("" if is_said else f", {how}")


def _tiers(outcome: Outcome, mesh: MeshSpec) -> str:
    """Return the sizes of the data axis's tiers, where some op does not split them alike."""
    tiers = [str(size) for word, size in zip(mesh.axes, mesh.shape, strict=True) if word == DATA]
    apart = [word for word, _ in different_axes(outcome) if word == DATA]
    return f" ({TIMES.join(tiers)})" if len(apart) > 1 else ""


def different_axes(outcome: Outcome) -> set[tuple[str, tuple[int | None, ...]]]:
    """Return axes by their name and what they split of each op; tiers that every op splits alike are one."""
    mesh = named_mesh(outcome.models[0], outcome.stages[0])
    columns = zip(*(loops for _, loops in split_loops(outcome)), strict=True)
    return set(zip(mesh.axes, columns, strict=True))


def state_shardings(outcome: Outcome) -> set[StateSharding]:
    """Return the ways in which parameters are kept."""
    return {state for stage in outcome.stages for state in _states_of(outcome.models[0], stage)}


def _states_of(model: CostModel, stage: Stage) -> Iterator[StateSharding]:
    charged = model.graph_analysis.charged_parameters
    for op, choice in stage.choices.items():
        if charged[op]:
            yield choice.state_sharding


def _sharing(outcome: Outcome) -> str:
    """Return how parameters are kept, in one word where all are kept alike."""
    found = state_shardings(outcome)
    levels = {sharding.zero for sharding in found}
    if any(sharding.inner for sharding in found):
        return "HSDP"
    if len(levels) > 1:
        return f"ZeRO-{min(levels)} to {max(levels)}"
    return LEVEL_WORDS[max(levels, default=ZeroLevel.NONE)]


def _details(outcome: Outcome, mesh: MeshSpec) -> Iterator[str]:
    candidate = outcome.candidate
    graph = outcome.models[0].graph
    if not graph.unsplittable_reason:
        ranks = prod(axis_sizes(mesh).get(word, 1) for word in (DATA, EXPERT))
        samples = batch_size(graph) / ranks / candidate.microbatches
        times = f"{TIMES}{candidate.microbatches}" if candidate.microbatches > 1 else ""
        yield f"microbatch {samples:.3g}{times}"
    if _splits_sequence(outcome, mesh):
        yield "sequence parallel"
    if candidate.schedule is Schedule.INTERLEAVED:
        yield f"{candidate.chunks} chunks of layers a stage"
    if any(sharding.offload for sharding in state_shardings(outcome)):
        yield "optimizer on host"
    yield from _recompute(outcome)
    yield from _apart(outcome)


def split_loops(outcome: Outcome) -> list[tuple[int, tuple[int | None, ...]]]:
    """Return each op with the loops that it splits along each axis; equal ones of equal layers once."""
    model = outcome.models[0]
    found: set[tuple[int, int]] = set()
    for stage in outcome.stages:
        found.update((model.block_representative(op), choice.strategy) for op, choice in stage.choices.items())
    return [(op, model.split_loops(op, strategy)) for op, strategy in sorted(found)]


def _split_roles(outcome: Outcome) -> Iterator[tuple[Op, list[LoopRole | None]]]:
    for number, loops in split_loops(outcome):
        op = outcome.models[0].graph.ops[number]
        yield op, [None if loop is None else op.loops[loop].role for loop in loops]


def _splits_sequence(outcome: Outcome, mesh: MeshSpec) -> bool:
    """Return whether a tensor axis splits the sequence of some ops."""
    along = [("tensor", LoopRole.SEQUENCE) in zip(mesh.axes, roles, strict=True) for _, roles in _split_roles(outcome)]
    return any(along)


_MEANT: Final[Mapping[str, set[LoopRole | None]]] = MappingProxyType(
    {
        DATA: {LoopRole.BATCH},
        "tensor": {LoopRole.FEATURE, LoopRole.HEAD, LoopRole.OTHER, LoopRole.SEQUENCE, None},
        "context": {LoopRole.SEQUENCE, LoopRole.HEAD, LoopRole.SPATIAL, None},
        EXPERT: {LoopRole.EXPERT, LoopRole.BATCH},
    }
)


def ops_apart(outcome: Outcome) -> list[Op]:
    """Return the ops that some axis splits along something else than it is named for; of equal layers, those of one."""
    axes = named_mesh(outcome.models[0], outcome.stages[0]).axes
    found: dict[int, Op] = {}
    for op, roles in _split_roles(outcome):
        samples = [loop for loop in op.loops if loop.role is LoopRole.BATCH and loop.shardable]
        whole: set[LoopRole | None] = set() if samples else {None}
        if any(role not in _MEANT.get(axis, {role}) | whole for axis, role in zip(axes, roles, strict=True)):
            found[op.id] = op
    return list(found.values())


def _apart(outcome: Outcome) -> Iterator[str]:
    apart = [op.name for op in ops_apart(outcome)]
    if apart:
        more = count(len(apart) - 1, "more op")
        yield f"{apart[0]} and {more} apart" if len(apart) > 1 else f"{apart[0]} apart"


def _recompute(outcome: Outcome) -> Iterator[str]:
    counts = recompute_modes(outcome)
    total = sum(counts.values())
    for mode, layers in counts.items():
        if mode is not Recompute.NONE:
            yield f"{mode} recompute" + (f" in {layers} of {total} layers" if layers < total else "")


def recompute_modes(outcome: Outcome) -> Counter[Recompute]:
    """Return how many layers use each recompute mode."""
    chosen = {op: choice for stage in outcome.stages for op, choice in stage.choices.items()}
    found: Counter[Recompute] = Counter()
    for run in outcome.models[0].graph.repeated_blocks:
        firsts = range(run.start, run.start + run.length * run.count, run.length)
        found.update(chosen[first].mode for first in firsts)
    return found

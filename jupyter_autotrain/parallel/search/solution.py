"""The answer of a search: every decision in words, what it costs, how good it is proved to be."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter

from jupyter_autotrain.core.cluster import ClusterSpec, MeshSpec
from jupyter_autotrain.parallel.cost.layout import as_placements, needed, produced
from jupyter_autotrain.parallel.cost.memory import Recompute, Schedule, Zero
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.graph.graph import LoopRole, Op
from jupyter_autotrain.parallel.placement import Placements
from jupyter_autotrain.parallel.search.factors.factors import Choice
from jupyter_autotrain.parallel.search.factors.lagrangian import relative_gap
from jupyter_autotrain.parallel.search.stage.invariants import check_cover
from jupyter_autotrain.parallel.search.stage.outcome import Outcome, Stage


@dataclass(frozen=True, slots=True)
class Strategy:
    """One op's decision.

    Attributes:
        op: Its name.
        loops: For each mesh axis the split loop's name, or None.
        inputs: Placements in which it reads its inputs.
        outputs: Placements in which it leaves its outputs.
        zero: What replicas of its parameters share out.
        offload: Whether its optimizer states live on the host.
        host_table: Whether the table that it looks up lives there as well.
        recompute: Mode of its block.
        stage: Pipeline stage.
    """

    op: str
    loops: tuple[str | None, ...]
    inputs: tuple[Placements, ...]
    outputs: tuple[Placements, ...]
    zero: Zero = Zero.NOTHING
    offload: bool = False
    host_table: bool = False
    recompute: Recompute = Recompute.NONE
    stage: int = 0


_DECISION = attrgetter(*(item.name for item in fields(Strategy)[1:]))


@dataclass(frozen=True, slots=True)
class StagePart:
    """Which blocks and ops a stage holds, on which device, and one microbatch's time on it."""

    index: int
    device: str
    blocks: int
    ops: tuple[str, ...]
    micro_s: float
    in_flight: float


@dataclass(frozen=True, slots=True)
class RankCost:
    """Peak memory of the ranks of one stage, by kind."""

    stage: int
    ranks: int
    parameter_bytes: float
    gradient_bytes: float
    optimizer_bytes: float
    activation_bytes: float

    @property
    def peak_bytes(self) -> float:
        """Everything together."""
        return self.parameter_bytes + self.gradient_bytes + self.optimizer_bytes + self.activation_bytes


@dataclass(frozen=True, slots=True)
class Cost:
    """Predicted seconds of a step on its slowest stage, broken down, and bytes; communication is what is exposed.

    `sent_bytes` is what a rank sends in a step, of the stage that sends most; None where nobody has counted.
    """

    step_s: float
    compute_s: float
    communication_s: float
    bubble_s: float
    optimizer_s: float
    peak_memory_bytes: float
    ranks: tuple[RankCost, ...] = ()
    sent_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class Alternative:
    """A plan that was weighed: its cost, whether it fits, and if there is none, why.

    `outcome` holds its decisions as the solvers do.
    """

    what: str
    cost: Cost | None
    fits: bool
    reason: str = ""
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Solution:
    """The best plan found.

    Attributes:
        cluster: The devices that are used.
        mesh: Axes over the devices of one stage, named by what they mostly split.
        strategies: Op name → its decision.
        stages: Pipeline stages, in order.
        microbatches: Parts of the batch.
        schedule: Order of microbatches.
        chunks: Chunks of layers per device.
        cost: What the plan costs.
        gap: Relative distance of `step_s` to a proved lower bound over the whole space; 0.0 is proved best.
        bound_s: That bound.
        limit_bytes: Memory limit per rank.
        search_s: Time of the search.
        candidates: Best other outer choices seen, fastest first.
        baselines: Well-known plans by name.
        method: Solver.
        complete: False when stopped early by time or by hand.
        outcome: Decisions as the solvers hold them.
        given: All devices, where some stay idle.
        all_devices_s: The best step found with all of them; None where they are used, or no plan uses them.

    Raises:
        InvariantError: Some op has a decision and no stage, or is in two stages.
    """

    cluster: ClusterSpec
    mesh: MeshSpec
    strategies: Mapping[str, Strategy]
    stages: tuple[StagePart, ...]
    microbatches: int
    schedule: Schedule
    chunks: int
    cost: Cost
    gap: float
    bound_s: float
    limit_bytes: float
    search_s: float
    candidates: tuple[Alternative, ...] = ()
    baselines: Mapping[str, Alternative] = field(default_factory=dict)
    method: str = ""
    complete: bool = True
    outcome: Outcome | None = None
    given: ClusterSpec | None = None
    all_devices_s: float | None = None

    def __post_init__(self) -> None:
        check_cover([stage.ops for stage in self.stages], self.strategies)


def cost_of(outcome: Outcome) -> Cost:
    """Break a step down: compute and communication of the slowest stage, once-per-step work, and the rest as bubble."""
    candidate = outcome.candidate
    slow = max(outcome.stages, key=lambda stage: stage.micro_s)
    last = max(outcome.stages, key=lambda stage: stage.load.step_s).load
    m = candidate.microbatches
    communication = m * (slow.load.communication_micro_s + slow.send_s) + last.communication_step_s
    compute = m * slow.load.compute_micro_s
    return Cost(
        step_s=outcome.step_s,
        compute_s=compute,
        communication_s=communication,
        bubble_s=max(0.0, outcome.step_s - compute - communication - last.optimizer_s),
        optimizer_s=last.optimizer_s,
        peak_memory_bytes=outcome.bytes,
        ranks=tuple(_rank(index, stage, candidate.mesh.devices) for index, stage in enumerate(outcome.stages)),
    )


def _rank(index: int, stage: Stage, ranks: int) -> RankCost:
    load = stage.load
    held = stage.in_flight * load.act_bytes
    return RankCost(index, ranks, load.parameter_bytes, load.gradient_bytes, load.optimizer_bytes, held)


def solution_of(outcome: Outcome, bound_s: float) -> Solution:
    """Put an outcome in words; the caller fills in what it knows of the search."""
    model = outcome.models[0]
    candidate = outcome.candidate
    strategies = {}
    for index, stage in enumerate(outcome.stages):
        alike: dict[tuple[int, Choice], Strategy] = {}
        for op_id, choice in sorted(stage.choices.items()):
            op = model.graph.ops[op_id]
            key = (model.twin(op_id), choice)
            if key not in alike:
                alike[key] = strategy_of(model, op, choice, index)
            strategies[op.name] = Strategy(op.name, *_DECISION(alike[key]))
    return Solution(
        cluster=model.cluster,
        mesh=_named(model, outcome),
        strategies=strategies,
        stages=tuple(_part(model, i, stage) for i, stage in enumerate(outcome.stages)),
        microbatches=candidate.microbatches,
        schedule=candidate.schedule,
        chunks=candidate.chunks,
        cost=cost_of(outcome),
        gap=relative_gap(outcome.step_s, bound_s),
        bound_s=min(bound_s, outcome.step_s),
        limit_bytes=0.0,
        search_s=0.0,
        outcome=outcome,
    )


def strategy_of(model: CostModel, op: Op, choice: Choice, stage: int = 0) -> Strategy:
    """One op's decision in words."""
    row = model.table_rows(op.id)[choice.strategy : choice.strategy + 1]
    return Strategy(
        op.name,
        tuple(op.loops[i].name if i >= 0 else None for i in row[0].tolist()),
        tuple(as_placements(needed(op, x, row)[0]) for x in op.inputs),
        tuple(as_placements(produced(op, x, row)[0]) for x in op.outputs),
        choice.option.zero,
        choice.option.offload,
        choice.option.host_table,
        choice.mode,
        stage,
    )


def _part(model: CostModel, index: int, stage: Stage) -> StagePart:
    names = tuple(model.graph.ops[op].name for op in sorted(stage.choices))
    return StagePart(index, stage.device.name, len(stage.blocks), names, stage.micro_s, stage.in_flight)


def _named(model: CostModel, outcome: Outcome) -> MeshSpec:
    """Name each axis by the role that it splits most work along."""
    words = {
        LoopRole.BATCH: "data",
        LoopRole.SEQUENCE: "sequence",
        LoopRole.FEATURE: "tensor",
        LoopRole.HEAD: "tensor",
        LoopRole.EXPERT: "expert",
        LoopRole.SPATIAL: "spatial",
        LoopRole.OTHER: "tensor",
    }
    weights: list[dict[str, float]] = [defaultdict(float) for _ in model.mesh.axes]
    alike = Counter((model.twin(op_id), choice.strategy) for op_id, choice in outcome.stages[0].choices.items())
    for (op_id, row), count in alike.items():
        op = model.graph.ops[op_id]
        for axis, loop in enumerate(model.table_rows(op_id)[row].tolist()):
            weights[axis][words[op.loops[loop].role] if loop >= 0 else "replica"] += count * (1 + op.flops_forward)
    names: list[str] = []
    for counter in weights:
        name = max(counter, key=lambda word: counter[word], default="replica")
        same = sum(other.rstrip("0123456789") == name for other in names)
        names.append(f"{name}{same + 1}" if same else name)
    return replace(model.mesh, axes=tuple(names))

"""The answer of a search: what was decided, what it costs, and how good it is proved to be.

From a solver's outcome, rows of cost tables, to the `Decision` that everything after the search reads. Time: linear
in the ops; ops of repeated blocks that are decided alike share one `OpDecision`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.parallel.choices import beyond
from jupyter_autotrain.parallel.cost.layout import NONE, as_placements, input_layouts, output_layouts
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.cost.states import StateSharding
from jupyter_autotrain.parallel.decision import REPLICATED_STATES, Decision, OpDecision, StageDecision
from jupyter_autotrain.parallel.graph.graph import Op, OpGraph
from jupyter_autotrain.parallel.search.factors.factors import OpChoice
from jupyter_autotrain.parallel.search.naming import named_mesh, plan_name
from jupyter_autotrain.parallel.search.stage.outcome import Outcome, Stage, check_cover

MOST_JUDGED = 2_000  # ops


def decision_of(outcome: Outcome) -> Decision:
    """Everything that an outcome decides."""
    model = outcome.models[0]
    candidate = outcome.candidate
    ops: dict[str, OpDecision] = {}
    for index, stage in enumerate(outcome.stages):
        ops.update(_stage_ops(model, index, stage))
    return Decision(
        mesh=named_mesh(model, outcome.stages[0]),
        stages=tuple(StageDecision(stage.device.name, len(stage.blocks)) for stage in outcome.stages),
        microbatches=candidate.microbatches,
        schedule=candidate.schedule,
        chunks=candidate.chunks,
        ops=ops,
    )


def op_decision(op: Op, loops: Sequence[int | None], states: StateSharding = REPLICATED_STATES) -> OpDecision:
    """Return the decision of an op whose loops are split so; placements follow from the loop nest."""
    row = np.array([[NONE if loop is None else loop for loop in loops]], dtype=np.int64)
    return OpDecision(
        tuple(loops),
        tuple(as_placements(input_layouts(op, x, row)[0]) for x in op.inputs),
        tuple(as_placements(output_layouts(op, x, row)[0]) for x in op.outputs),
        tuple(as_placements(output_layouts(op, x, row)[0]) for x in op.inputs),
        states,
    )


def _stage_ops(model: CostModel, index: int, stage: Stage) -> Iterator[tuple[str, OpDecision]]:
    alike: dict[tuple[int, OpChoice], OpDecision] = {}
    for op_id, choice in sorted(stage.choices.items()):
        op = model.graph.ops[op_id]
        key = (model.block_representative(op_id), choice)
        if key not in alike:
            loops = model.split_loops(op_id, choice.strategy)
            alike[key] = replace(op_decision(op, loops, choice.state_sharding), recompute=choice.mode, stage=index)
        yield op.name, alike[key]


@dataclass(frozen=True, slots=True)
class RankCost:
    """One microbatch's time on a stage, and the peak memory of its ranks by kind.

    Attributes:
        stage: Its number.
        ranks: How many there are.
        micro_s: One microbatch with its messages.
        in_flight: Microbatches whose activations are held at the peak.
        parameter_bytes: Held by each rank; the other bytes alike.
    """

    stage: int
    ranks: int
    micro_s: float
    in_flight: float
    parameter_bytes: float
    gradient_bytes: float
    optimizer_bytes: float
    activation_bytes: float

    @property
    def peak_bytes(self) -> float:
        """Bytes of all kinds together."""
        return self.parameter_bytes + self.gradient_bytes + self.optimizer_bytes + self.activation_bytes


@dataclass(frozen=True, slots=True)
class Cost:
    """Predicted seconds of a step on its slowest stage, broken down, and bytes; communication is what is exposed.

    `sent_bytes` is what a rank sends in a step, of the stage that sends most; None where it is not counted.
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
    """Another plan: its cost, whether it fits, and if there is none, why.

    `beyond` is what of it is not executed, in words; `outcome` the solvers' own form of it, for as long as the search
    and its evaluation run.
    """

    what: str
    cost: Cost | None
    fits: bool
    reason: str = ""
    outcome: Outcome | None = None
    beyond: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Solution:
    """The answer: the best plan found, or the simplest within a share of it.

    Attributes:
        graph: The model as it was searched.
        cluster: The devices that are used.
        name: The plan in one line, as people say it.
        decision: What was decided.
        cost: What that costs.
        gap: Relative distance of `step_s` to a proved lower bound over the whole space; 0.0 is proved best.
        bound_s: That bound.
        limit_bytes: Memory limit per rank.
        search_s: Time of the search.
        best: The best plan found, where the answer is a simpler one.
        candidates: Best outer choices seen, fastest first.
        baselines: Well-known plans by name.
        complete: False when stopped early by time or by hand.
        full_cluster: All devices, where some stay idle.
        all_devices_s: The best step found with all of them; None where they are used, or no plan uses them.
        none_runs: Why the answer is not a plan that runs, though one was asked for, and what would do; "" where it is.

    Raises:
        InvariantError: Some op of the graph has no decision.
    """

    graph: OpGraph
    cluster: ClusterSpec
    name: str
    decision: Decision
    cost: Cost
    gap: float
    bound_s: float
    limit_bytes: float
    search_s: float
    best: Alternative | None = None
    candidates: tuple[Alternative, ...] = ()
    baselines: Mapping[str, Alternative] = field(default_factory=dict)
    complete: bool = True
    full_cluster: ClusterSpec | None = None
    all_devices_s: float | None = None
    none_runs: str = ""

    def __post_init__(self) -> None:
        check_cover([self.decision.ops], [op.name for op in self.graph.ops])


def cost_of(outcome: Outcome) -> Cost:
    """Break a step down: compute and communication of the slowest stage, once-per-step work, and the rest as bubble."""
    candidate = outcome.candidate
    slow = max(outcome.stages, key=lambda stage: stage.micro_s)
    last = max(outcome.stages, key=lambda stage: stage.breakdown.step_s).breakdown
    m = candidate.microbatches
    communication = m * (slow.breakdown.communication_micro_s + slow.send_s) + last.communication_step_s
    compute = m * slow.breakdown.compute_micro_s
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
    breakdown = stage.breakdown
    held = stage.in_flight * breakdown.act_bytes
    states = (breakdown.parameter_bytes, breakdown.gradient_bytes, breakdown.optimizer_bytes)
    return RankCost(index, ranks, stage.micro_s, stage.in_flight, *states, held)


def alternative_of(outcome: Outcome) -> Alternative:
    """Return a plan that fits as an alternative."""
    return Alternative(plan_name(outcome), cost_of(outcome), True, "", outcome)


def judged(outcome: Outcome) -> Alternative:
    """Return a plan that fits with what of it is not executed, unless the graph is so big that this takes long."""
    graph = outcome.models[0].graph
    words = beyond(graph, decision_of(outcome)) if len(graph.ops) <= MOST_JUDGED else ()
    return replace(alternative_of(outcome), beyond=words)

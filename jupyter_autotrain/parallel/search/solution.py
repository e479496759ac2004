"""The answer of a search: what was decided, what it costs, and how good it is proved to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.parallel.decision import Decision
from jupyter_autotrain.parallel.graph.graph import OpGraph
from jupyter_autotrain.parallel.search.decisions import decision_of
from jupyter_autotrain.parallel.search.factors.lagrangian import relative_gap
from jupyter_autotrain.parallel.search.stage.invariants import check_cover
from jupyter_autotrain.parallel.search.stage.outcome import Outcome, Stage


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
        """Everything together."""
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

    `outcome` is the solvers' own form of it, for as long as the search and its evaluation run.
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
        graph: The model as it was searched.
        cluster: The devices that are used.
        decision: What was decided.
        cost: What that costs.
        gap: Relative distance of `step_s` to a proved lower bound over the whole space; 0.0 is proved best.
        bound_s: That bound.
        limit_bytes: Memory limit per rank.
        search_s: Time of the search.
        candidates: Best outer choices seen, fastest first.
        baselines: Well-known plans by name.
        complete: False when stopped early by time or by hand.
        full_cluster: All devices, where some stay idle.
        all_devices_s: The best step found with all of them; None where they are used, or no plan uses them.

    Raises:
        InvariantError: Some op of the graph has no decision.
    """

    graph: OpGraph
    cluster: ClusterSpec
    decision: Decision
    cost: Cost
    gap: float
    bound_s: float
    limit_bytes: float
    search_s: float
    candidates: tuple[Alternative, ...] = ()
    baselines: Mapping[str, Alternative] = field(default_factory=dict)
    complete: bool = True
    full_cluster: ClusterSpec | None = None
    all_devices_s: float | None = None

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


def solution_of(outcome: Outcome, bound_s: float) -> Solution:
    """An outcome as the solution; the caller fills in the fields of the search."""
    model = outcome.models[0]
    return Solution(
        graph=model.graph,
        cluster=model.cluster,
        decision=decision_of(outcome),
        cost=cost_of(outcome),
        gap=relative_gap(outcome.step_s, bound_s),
        bound_s=min(bound_s, outcome.step_s),
        limit_bytes=0.0,
        search_s=0.0,
    )

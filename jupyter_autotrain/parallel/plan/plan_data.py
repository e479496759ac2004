"""The data of a plan: the request, the solution, and the time that tracing took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from jupyter_autotrain.core.cluster import ClusterSpec, MeshSpec
from jupyter_autotrain.core.measurement import Accuracy
from jupyter_autotrain.core.text_format import closest_matches
from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.choices import beyond
from jupyter_autotrain.parallel.cost.memory import Recompute, Schedule, ZeroLevel
from jupyter_autotrain.parallel.decision import Decision, OpDecision, StageDecision
from jupyter_autotrain.parallel.graph.graph import Op, OpGraph, Tensor, TensorKind
from jupyter_autotrain.parallel.plan.decision_costs import DecisionCosts
from jupyter_autotrain.parallel.plan.notes import notes_of, reported_gap, unsupported_shares
from jupyter_autotrain.parallel.plan.unmet_pins import unmet_pins
from jupyter_autotrain.parallel.search import Alternative, Cost, Mode, SearchRequest, Solution
from jupyter_autotrain.parallel.search.outer.executed import is_searched_so


@dataclass(frozen=True)
class PlanData:
    """The whole result as a frozen value; `Plan` adds methods that explain, compare and print it.

    Attributes:
        request: Mode, solver, limits, pins.
        solution: What was found: the graph as searched, the decision, its cost.
        trace_s: Seconds that tracing the model took; 0 for a graph that was there already.
        accuracy: How well the last plans on such devices were predicted; None where none was measured.
    """

    request: SearchRequest
    solution: Solution
    trace_s: float = 0.0
    accuracy: Accuracy | None = None

    @property
    def graph(self) -> OpGraph:
        """The model, fused and folded, as it was searched."""
        return self.solution.graph

    @property
    def decision(self) -> Decision:
        """The decisions, all that executing the plan needs."""
        return self.solution.decision

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.graph.name or "model"

    @property
    def cluster(self) -> ClusterSpec:
        """The devices that are used."""
        return self.solution.cluster

    @property
    def full_cluster(self) -> ClusterSpec:
        """All devices, those that stay idle as well."""
        return self.solution.full_cluster or self.solution.cluster

    @property
    def mesh(self) -> MeshSpec:
        """Axes over the devices of one pipeline stage, named by what they mostly split."""
        return self.decision.mesh

    @property
    def mode(self) -> Mode:
        """The part of the space that was searched."""
        return self.request.mode

    @property
    def strategies(self) -> Mapping[str, OpDecision]:
        """Op name → loops split per axis, placements of inputs and outputs, states, recompute, stage."""
        return self.decision.ops

    @property
    def stages(self) -> tuple[StageDecision, ...]:
        """Pipeline stages in order; one when there is no pipeline."""
        return self.decision.stages

    @property
    def microbatches(self) -> int:
        """Parts of the batch."""
        return self.decision.microbatches

    @property
    def schedule(self) -> Schedule:
        """Order of microbatches in the pipeline."""
        return self.decision.schedule

    @property
    def cost(self) -> Cost:
        """Predicted seconds of a step and bytes at its peak, broken down."""
        return self.solution.cost

    @property
    def gap(self) -> float:
        """Distance of the step from the best in the space searched, at most; 0.0 is proved best.

        Infinite where ops without a rule hold more than 1 % of the estimated work (see `unsupported_work`).
        """
        return reported_gap(self.solution.gap, self.unsupported_work)

    @property
    def among(self) -> str:
        """The plans that were searched, in words; "" for all."""
        return " of those that run" if is_searched_so(self.request) and not self.solution.none_runs else ""

    @property
    def beyond(self) -> tuple[str, ...]:
        """Parts of the plan that `apply` does not run, in words; empty where it runs."""
        return beyond(self.graph, self.decision)

    @property
    def unsupported_work(self) -> Mapping[str, float]:
        """Kinds of ops without a rule → their share of the estimated work, greatest first."""
        return unsupported_shares(self.graph, self.cluster.device)

    @property
    def search_s(self) -> float:
        """Seconds the search took."""
        return self.solution.search_s

    @property
    def baselines(self) -> Mapping[str, Cost | None]:
        """Well-known plan → its cost; None where it does not fit or does not apply (see `solution.baselines`)."""
        return {name: found.cost for name, found in self.solution.baselines.items()}

    @property
    def candidates(self) -> tuple[Alternative, ...]:
        """The best other outer choices that were seen, fastest first."""
        return self.solution.candidates

    @property
    def unknown(self) -> tuple[str, ...]:
        """Kinds of ops without a rule; they are replicated."""
        return self.graph.unknown

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that a reader needs to use the plan."""
        found = (*unmet_pins(self.request.pins, self.graph, self.decision), *notes_of(self.graph, self.solution))
        return found if self.accuracy is None else (*found, str(self.accuracy))

    @property
    def zero(self) -> Mapping[ZeroLevel, int]:
        """ZeRO level → number of trainable parameters kept that way."""
        found: Counter[ZeroLevel] = Counter()
        for op in self.graph.ops:
            found[self.strategies[op.name].states.zero] += sum(t.numel for t in weights_of(self.graph, op))
        return {level: count for level, count in sorted(found.items()) if count}

    @property
    def offloaded(self) -> Mapping[str, int]:
        """Kept on the host ("optimizer": states alone, "table": with its states) → number of parameters."""
        found: Counter[str] = Counter()
        for op in self.graph.ops:
            states = self.strategies[op.name].states
            if states.offload:
                where = "table" if states.host_table else "optimizer"
                found[where] += sum(t.numel for t in weights_of(self.graph, op))
        return {where: count for where, count in found.items() if count}

    @property
    def recompute(self) -> Mapping[Recompute, int]:
        """Recompute mode → number of repeated blocks that use it."""
        found: Counter[Recompute] = Counter()
        for run in self.graph.repeated_blocks:
            firsts = range(run.start, run.start + run.length * run.count, run.length)
            found.update(self.strategies[self.graph.ops[i].name].recompute for i in firsts)
        return dict(found)

    def decision_costs(self) -> DecisionCosts:
        """Return the decision with its cost models, rebuilt."""
        return DecisionCosts.of(self.graph, self.cluster, self.decision, self.request)

    def op(self, name: str) -> Op:
        """Return the op that is called `name`, or holds a member or a module of that name.

        Raises:
            PlanError: When none is.
        """
        for op in self.graph.ops:
            if name in (op.name, *(member.name for member in op.members)):
                return op
        inside = [op for op in self.graph.ops if op.name.startswith(f"{name}.")]
        if len(inside) == 1:
            return inside[0]
        raise PlanError(*_not_found(name, [op.name for op in inside or self.graph.ops]))


def weights_of(graph: OpGraph, op: Op) -> list[Tensor]:
    """Trainable parameters that an op reads."""
    tensors = {x.tensor: graph.tensors[x.tensor] for x in op.inputs}
    return [t for t in tensors.values() if t.kind is TensorKind.PARAMETER and t.trainable]


def _not_found(name: str, names: list[str]) -> tuple[str, str, str]:
    near = closest_matches(name, names, cutoff=0.0)
    expected = f"The nearest are: {', '.join(near)}."
    return f"The plan has no op {name!r}.", expected, "Take a name from plan.strategies."

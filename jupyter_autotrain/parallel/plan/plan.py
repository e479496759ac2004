"""`Plan`: how a model is split, with every question that can be asked about it as a method."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jupyter_autotrain.core.cluster_figures import memory_of
from jupyter_autotrain.core.display import Displayable
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.parallel.graph.prepare import PreparedGraph
from jupyter_autotrain.parallel.plan import storage, text_report
from jupyter_autotrain.parallel.plan.code import code
from jupyter_autotrain.parallel.plan.difference import PlanDifference, difference
from jupyter_autotrain.parallel.plan.explanation import Explanation
from jupyter_autotrain.parallel.plan.html_report import html_report
from jupyter_autotrain.parallel.plan.op_alternatives import explain
from jupyter_autotrain.parallel.plan.plan_data import PlanData
from jupyter_autotrain.parallel.plan.solution_traffic import with_traffic
from jupyter_autotrain.parallel.plan.timeline import TimeSegment, timeline
from jupyter_autotrain.parallel.plan.view import view
from jupyter_autotrain.parallel.search import Method, Mode, SearchRequest, Solution, retry_on_interrupt, solve

SLIDER_EFFORT = 0.15  # for interactive re-planning, within 0.2 s


@dataclass(frozen=True, repr=False)
class Plan(PlanData, Displayable):
    """How a model is split over a cluster, what a step costs, and how good that is proved to be."""

    @classmethod
    def of(cls, request: SearchRequest, solution: Solution, trace_s: float = 0.0) -> Plan:
        """The plan of what `search.solve` found for a request."""
        counted, _ = retry_on_interrupt(lambda: with_traffic(request, solution))
        return cls(request, counted, trace_s)

    def explain(self, op: str) -> Explanation:
        """Why an op is split as it is: its runner-up, and what that would cost in time and memory.

        Args:
            op: Name of an op, of an op fused into one, or of a module that has one op.

        Raises:
            PlanError: When the plan has no such op.
        """
        return explain(self, op)

    def diff(self, other: PlanData) -> PlanDifference:
        """What another plan does differently, from this one to that."""
        return difference(self, other)

    def what_if(self, *, bandwidth: float = 1.0, memory: str | float | None = None, devices: int | None = None) -> Plan:
        """The plan for another machine, by the heuristic search (`recursive_programming`), fast enough for a slider.

        Args:
            bandwidth: Factor on every link.
            memory: Memory per device, as text (`"40GB"`) or bytes; also the limit.
            devices: Number of devices.

        Raises:
            InfeasibleError: When no split fits.
        """
        memory_bytes = None if memory is None else memory_of(memory)
        cluster = self.full_cluster.scaled(bandwidth=bandwidth, memory_bytes=memory_bytes, devices=devices)
        limits = self.request.limits
        limits = replace(limits, memory_bytes=memory_bytes or limits.memory_bytes, effort=SLIDER_EFFORT)
        request = replace(self.request, search=Method.RECURSIVE_PROGRAMMING, limits=limits, baselines=False)
        if devices and request.mode is Mode.HYBRID_PARALLEL:
            request = replace(request, pins=replace(request.pins, mesh=None, stages=None, ops={}))
        return Plan.of(request, solve(PreparedGraph(self.graph), cluster, request))

    def table(self) -> str:
        """What a rank of each stage holds, and sends in a step on each axis."""
        return text_report.rank_table(self)

    def timeline(self) -> tuple[TimeSegment, ...]:
        """One step as segments: compute, exposed communication, bubbles, per stage."""
        return timeline(self.decision_costs(), self.cost)

    def view(self) -> JsonObject:
        """Everything to draw as plain JSON values; the keys are described in `jupyter_autotrain.parallel.plan.view`."""
        return view(self)

    def to_code(self) -> str:
        """The plan as torch code; its first lines say what does not run as it stands.

        Data parallelism, the ZeRO levels and recompute run, and so do splits of weights between whole activations.
        """
        return code(self)

    def to_html(self) -> str:
        """A static page: no script, no network, at most 50 kB."""
        return html_report(self)

    def to_json(self) -> str:
        """The plan as JSON text: the keys of `view`, and `record`, from which `from_json` rebuilds it."""
        return storage.plan_to_json(self)

    @classmethod
    def from_json(cls, saved: str) -> Plan:
        """The plan of a text made by `to_json`.

        Raises:
            PlanError: Not a plan, or of another version.
        """
        data = storage.plan_from_json(saved)
        return cls(data.request, data.solution, data.trace_s)

    def __repr__(self) -> str:
        return text_report.summary(self)

    def _repr_html_(self) -> str:
        return html_report(self)

"""The space of a search, and the cost models of its candidates."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from jupyter_autotrain.core.cluster import ClusterSpec, MeshSpec
from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.cost.activations import GraphAnalysis
from jupyter_autotrain.parallel.cost.compute_lower_bound import ComputeLowerBound, compute_lower_bound
from jupyter_autotrain.parallel.cost.memory import Recompute
from jupyter_autotrain.parallel.cost.model import CostModel, Restriction, Settings
from jupyter_autotrain.parallel.cost.table_cache import TableCache
from jupyter_autotrain.parallel.graph.graph import OpGraph
from jupyter_autotrain.parallel.search.outer.progress import ProgressMonitor
from jupyter_autotrain.parallel.search.request.request import Candidate
from jupyter_autotrain.parallel.search.stage.chain import Chain
from jupyter_autotrain.parallel.search.stage.pipeline_problem import PipelineProblem
from jupyter_autotrain.parallel.search.stage.stage_problem import MULTIPLIERS


@dataclass(frozen=True, slots=True)
class _ComputeKey:
    """Seconds of the kernels alone, spread over so many parts."""

    compute_lower_bound: ComputeLowerBound
    parts: int


@dataclass(frozen=True)
class SearchContext:
    """The space of a search: a graph on a cluster under limits.

    Attributes:
        graph: The model.
        chain: Its repeated blocks, when it has any.
        cluster: The machine.
        settings: Constants and the state shardings to choose from.
        modes: Recompute modes.
        limit_bytes: Memory per rank of the request; None: what each device offers.
        analysis: Of the graph.
        compute_lower_bound: The least that any plan computes.
        cache: What the search works out once.
        restriction: Pins.
        progress: What is told on the way, and ends the search at its deadline.
        most_multipliers: Most multipliers to try in a stage whose memory binds.
    """

    graph: OpGraph
    chain: Chain | None
    cluster: ClusterSpec
    settings: Settings
    modes: tuple[Recompute, ...]
    limit_bytes: float | None
    analysis: GraphAnalysis
    compute_lower_bound: ComputeLowerBound
    cache: TableCache = field(repr=False, compare=False)
    restriction: Restriction | None = None
    progress: ProgressMonitor = field(default_factory=ProgressMonitor, repr=False, compare=False)
    most_multipliers: int = MULTIPLIERS

    def devices(self, candidate: Candidate) -> list[Device]:
        """Return the device that each stage must suit."""
        size = candidate.mesh.devices
        return [self.cluster.slowest(i * size, (i + 1) * size) for i in range(candidate.stages)]

    def limits(self, candidate: Candidate) -> list[float]:
        """Bytes per rank of each stage."""
        return [device.limit_bytes(self.limit_bytes) for device in self.devices(candidate)]

    def models(self, candidate: Candidate) -> list[CostModel]:
        """One cost model per stage; equal devices share one, and so do candidates that differ in schedule only."""
        return [self._model(candidate.mesh, candidate.microbatches, device) for device in self.devices(candidate)]

    def _model(self, mesh: MeshSpec, microbatches: int, device: Device) -> CostModel:
        def make() -> CostModel:
            return CostModel(
                self.graph, self.cluster, mesh, microbatches, self.settings, device, self.analysis, self.restriction
            )

        key = (self.cluster, self.settings.state_shardings, self.restriction, mesh, microbatches, device)
        return self.cache.recent(CostModel, key, make)

    def for_cluster(self, part: ClusterSpec) -> SearchContext:
        """Return the same on a part of the cluster."""
        bound = compute_lower_bound(self.graph, part, self.settings.efficiency)
        return replace(self, cluster=part, compute_lower_bound=bound)

    def compute_bound_s(self, candidate: Candidate) -> float:
        """Seconds of the kernels alone, spread evenly over all devices of the fastest kind, with the bubble."""
        parts = candidate.mesh.devices * candidate.microbatches
        bound = self.compute_lower_bound
        micro_s = self.cache.get(float, _ComputeKey(bound, parts), lambda: bound.micro_s(parts))
        return micro_s / candidate.stages * candidate.rounds

    def pipeline(self, candidate: Candidate, microbatches: int = 0) -> PipelineProblem:
        """Return a candidate as a pipeline to solve; costed for fewer microbatches than it has, to bound."""
        chain = self.chain
        counted = replace(candidate, microbatches=microbatches or candidate.microbatches)
        assert chain is not None

        def make() -> PipelineProblem:
            return PipelineProblem(
                self.models(counted),
                chain,
                candidate,
                self.cluster,
                self.modes,
                self.limits(candidate),
                TableCache(),
                self.most_multipliers,
            )

        costed = (self.cluster, self.settings.state_shardings, self.restriction)
        solved = (self.modes, self.limit_bytes, self.most_multipliers)
        return self.cache.recent(PipelineProblem, (*costed, *solved, candidate, counted), make)

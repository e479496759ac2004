"""A decision with the cost models of its stages: what it costs, op by op, and what it sends is computed from this."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.cost.activations import GraphAnalysis, analyse_graph
from jupyter_autotrain.parallel.cost.layout import NONE
from jupyter_autotrain.parallel.cost.model import CostModel, Settings
from jupyter_autotrain.parallel.decision import Decision, OpDecision
from jupyter_autotrain.parallel.graph.graph import Op, Operand, OpGraph
from jupyter_autotrain.parallel.placement import Placements
from jupyter_autotrain.parallel.plan.folded import FoldedGraph
from jupyter_autotrain.parallel.search import SearchRequest


@dataclass(eq=False)
class DecisionCosts:
    """A decision, the graph and the cluster it is for, and the constants it was searched with."""

    graph: OpGraph
    cluster: ClusterSpec
    decision: Decision
    settings: Settings

    @classmethod
    def of(cls, graph: OpGraph, cluster: ClusterSpec, decision: Decision, request: SearchRequest) -> DecisionCosts:
        """A decision under the constants of a request, with the ways to keep parameters that were open to it."""
        return cls(graph, cluster, decision, replace(request.settings, state_shardings=request.space.state_shardings))

    @cached_property
    def models(self) -> tuple[CostModel, ...]:
        """One per stage; stages on equal devices share one."""
        size = self.decision.mesh.devices
        firsts = range(0, size * len(self.decision.stages), size)
        devices = [self.cluster.slowest(first, first + size) for first in firsts]
        made = {device: self._model(device) for device in dict.fromkeys(devices)}
        return tuple(made[device] for device in devices)

    def _model(self, device: Device) -> CostModel:
        decision = self.decision
        return CostModel(
            self.graph, self.cluster, decision.mesh, decision.microbatches, self.settings, device, self.analysis
        )

    @cached_property
    def analysis(self) -> GraphAnalysis:
        """What the cost models know of the graph."""
        return analyse_graph(self.graph)

    @cached_property
    def folded(self) -> FoldedGraph:
        """The graph with equal blocks of equal decisions once."""
        return FoldedGraph(self.graph, self.decision)

    def op_decision(self, op: Op) -> OpDecision:
        """What is decided for an op."""
        return self.decision.ops[op.name]

    def input_placements(self, op: Op, operand: Operand) -> Placements:
        """How an op reads one of its inputs."""
        return self.op_decision(op).inputs[op.inputs.index(operand)]

    def output_placements(self, op: Op, operand: Operand) -> Placements:
        """How an op leaves one of its outputs."""
        return self.op_decision(op).outputs[op.outputs.index(operand)]

    def input_gradient_placements(self, op: Op, operand: Operand) -> Placements:
        """How an op's backward pass leaves the gradient of one of its inputs."""
        return self.op_decision(op).input_gradients[op.inputs.index(operand)]

    def row(self, op: Op) -> int:
        """Row of the op's decision in its cost tables."""
        loops = [NONE if loop is None else loop for loop in self.op_decision(op).loops]
        return int(np.flatnonzero((self.models[0].table_rows(op.id) == np.array(loops)).all(axis=1))[0])

    def state_sharding_row(self, op: Op) -> int:
        """Row of the op's way to keep its parameters in its state tables."""
        return self.settings.state_shardings.index(self.op_decision(op).states)

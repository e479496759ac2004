"""Layouts of a decision's activations on its tensor axis, op by op."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from jupyter_autotrain.parallel.apply.recipe import Layout
from jupyter_autotrain.parallel.cost.layout import Placement, Replicate, Shard
from jupyter_autotrain.parallel.decision import Decision
from jupyter_autotrain.parallel.graph.graph import SIZES, LoopRole, Op, Operand, OpGraph, TensorKind

_LAYER = re.compile(r"((?:.*?\.)?\d+)\..*")
_SPLIT_ROLES = {LoopRole.FEATURE: Layout.FEATURES, LoopRole.HEAD: Layout.FEATURES, LoopRole.SEQUENCE: Layout.POSITIONS}


class NotExecutedError(Exception):
    """A use of the tensor axis that is not executed, in words."""


@dataclass
class AxisLayouts:
    """Layouts as ops read and leave them; positions are split inside of layers alone.

    Attributes:
        graph: The graph.
        decision: What is decided for its ops.
        axis: The tensor axis.
        left: Tensor → layout in which its maker leaves it, for the ops before the one that is read.
        regions: First and last layer of each container in which positions are split.
        cut: Tensors from outside of the layers whose positions are split where the layers begin.
    """

    graph: OpGraph
    decision: Decision
    axis: int
    left: dict[int, Layout] = field(default_factory=dict)
    regions: tuple[tuple[str, str], ...] = field(init=False)
    cut: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        for op in self.graph.ops:
            self._check_roles(op)
        self.regions = self._regions()
        self.cut = frozenset(self._cut_at_layers())

    def _layout(self, op: Op, placed: Placement) -> Layout:
        if isinstance(placed, Replicate):
            return Layout.WHOLE
        if not isinstance(placed, Shard):
            return Layout.TERMS
        loop = self.decision.ops[op.name].split_loops(op)[self.axis]
        layout = _SPLIT_ROLES[loop.role] if loop else Layout.WHOLE
        return Layout.WHOLE if layout is Layout.POSITIONS and not layer_of(op) else layout

    def read(self, op: Op, operand: Operand) -> Layout:
        """Return the layout in which an op reads one of its inputs."""
        placed = self.decision.ops[op.name].inputs[op.inputs.index(operand)][self.axis]
        return self._layout(op, placed)

    def made(self, op: Op, operand: Operand) -> Layout:
        """Return the layout in which an op makes one of its outputs."""
        placed = self.decision.ops[op.name].outputs[op.outputs.index(operand)][self.axis]
        return self._layout(op, placed)

    def comes(self, op: Op, operand: Operand) -> Layout:
        """Return how an op finds an input: positions are cut where layers begin, and gathered where they end."""
        left = self.left.get(operand.tensor, Layout.WHOLE)
        if left is Layout.POSITIONS and not layer_of(op):
            maker = self.graph.ops[self.graph.producers[operand.tensor]]
            if layer_of(maker) not in {last for _, last in self.regions}:
                raise NotExecutedError(f"{op.name} reads positions that {maker.name} has split")
            return Layout.WHOLE
        return Layout.POSITIONS if left is Layout.WHOLE and operand.tensor in self.cut and layer_of(op) else left

    def _cut_at_layers(self) -> Iterator[int]:
        """Yield tensors from outside that ops of the first layers read by positions."""
        for op in self.graph.ops:
            for x in self.activations(op):
                maker = self.graph.producers.get(x.tensor)
                is_outside = maker is None or not layer_of(self.graph.ops[maker])
                if is_outside and self.read(op, x) is Layout.POSITIONS:
                    if layer_of(op) not in {first for first, _ in self.regions}:
                        raise NotExecutedError(f"{op.name} splits positions of what is made before the layers")
                    yield x.tensor

    def activations(self, op: Op) -> Iterator[Operand]:
        """Yield the inputs of an op that are no weights."""
        for x in op.inputs:
            if self.graph.tensors[x.tensor].kind is not TensorKind.PARAMETER:
                yield x

    def parameters(self, op: Op) -> Iterator[Operand]:
        """Yield the weights that an op reads."""
        for x in op.inputs:
            if self.graph.tensors[x.tensor].kind is TensorKind.PARAMETER:
                yield x

    def _check_roles(self, op: Op) -> None:
        loop = self.decision.ops[op.name].split_loops(op)[self.axis]
        if loop and loop.role not in _SPLIT_ROLES:
            raise NotExecutedError(f"{op.name} splits a loop of the role {loop.role}")

    def _regions(self) -> tuple[tuple[str, str], ...]:
        """Return the first and the last layer of each container in which positions are split."""
        found: dict[str, list[str]] = {}
        for op in self.graph.ops:
            layer = layer_of(op)
            if layer and any(self.read(op, x) is Layout.POSITIONS for x in self.activations(op)):
                found.setdefault(layer.rpartition(".")[0], []).append(layer)
        return tuple((layers[0], layers[-1]) for layers in found.values())


def layer_of(op: Op) -> str:
    """Return the path of the numbered layer that an op is in; "" outside of layers."""
    found = _LAYER.fullmatch(op.name)
    return found[1] if found else ""


def sizes_in(graph: OpGraph, split: Collection[str]) -> Iterator[str]:
    """Yield the attributes by which modules write out sizes of what is split in them; `split` are paths.

    Raises:
        NotExecutedError: One has such a size from elsewhere.
    """
    written: dict[str, list[str]] = json.loads(graph.meta.get(SIZES, "{}"))
    for path, attributes in written.items():
        if any(inner.startswith(f"{path}.") for inner in split):
            if not all(attributes) or not attributes:
                raise NotExecutedError(f"{path} writes out a size of what is split, which is not an attribute of it")
            for attribute in attributes:
                yield f"{path}.{attribute}"

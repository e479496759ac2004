"""The pipeline stages of a decision: what executing them takes, or why they are not executed.

Executed are stages of equal layers, chunks of them in equal numbers, in a model that runs modules before its layers,
then the layers one after another, then modules after them. One activation goes from layer to layer; what else layers
read (masks, positions, rotary tables) is made from inputs alone, by each stage for itself. Linear in the graph.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import accumulate

from jupyter_autotrain.parallel.apply.recipe import PipelineRecipe
from jupyter_autotrain.parallel.decision import Decision
from jupyter_autotrain.parallel.graph.graph import Op, OpGraph, TensorKind
from jupyter_autotrain.parallel.tensor_layouts import NotExecutedError

_NUMBERED = re.compile(r"((?:.*?\.)?)(\d+)(?:\.(.*))?")


def pipeline_recipe(graph: OpGraph, decision: Decision) -> PipelineRecipe | None:
    """Return what the stages of a decision do; None for one stage.

    Raises:
        NotExecutedError: The decision has stages otherwise than what is executed.
    """
    stages = len(decision.stages)
    if stages == 1:
        return None
    read = _Reader(graph)
    read.check_layers()
    chunks = stages * decision.chunks
    ends = _ends(read.stages(decision), stages) if decision.chunks == 1 else _even(len(read.layers), chunks)
    return PipelineRecipe(stages, tuple(read.layers), ends, read.first, read.last, decision.schedule, decision.chunks)


def _even(layers: int, parts: int) -> tuple[int, ...]:
    if layers % parts:
        raise NotExecutedError(f"{layers} layers are not cut into {parts} equal parts")
    return tuple(range(layers // parts, layers + 1, layers // parts))


def _ends(stage_of: list[int], stages: int) -> tuple[int, ...]:
    """Return where each stage ends, by the stage of each layer."""
    if stage_of != sorted(stage_of) or set(stage_of) != set(range(stages)):
        raise NotExecutedError("not every stage has layers of its own, in their order")
    return tuple(accumulate(Counter(stage_of).values()))


def why_not_staged(graph: OpGraph, decision: Decision) -> str:
    """Return why a decision's stages are not executed; "" where they are, or where there is one."""
    try:
        pipeline_recipe(graph, decision)
    except NotExecutedError as reason:
        return str(reason)
    return ""


@dataclass
class _Reader:
    """A graph as modules before the layers, layers, and modules after them.

    Attributes:
        graph: The graph.
        layers: Path of each layer → its number.
        begin: The first op that reads a layer's weights.
        end: The last one.
        first: Modules with weights that run before the layers.
        last: Modules with weights that run after them.
    """

    graph: OpGraph
    layers: dict[str, int] = field(init=False)
    begin: int = field(init=False)
    end: int = field(init=False)
    first: tuple[str, ...] = field(init=False)
    last: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.layers = _layers(self.graph)
        inside = [op.id for op in self.graph.ops if any(map(self._layer, self.weights_of(op)))]
        self.begin = min(inside)
        self.end = max(inside)
        outside: dict[str, set[bool]] = defaultdict(set)
        for op in self.graph.ops:
            for weight in self.weights_of(op):
                if not self._layer(weight):
                    outside[self._holder(op, weight)].add(self._is_behind(op))
        self.first = tuple(path for path, sides in outside.items() if False in sides)
        self.last = tuple(path for path, sides in outside.items() if True in sides)

    def weights_of(self, op: Op) -> list[str]:
        """Return the names of the weights that an op reads."""
        tensors = [self.graph.tensors[x.tensor] for x in op.inputs]
        return [tensor.name for tensor in tensors if tensor.kind is TensorKind.PARAMETER]

    def place(self, op: Op) -> int:
        """Return the number of an op's layer: -1 for what comes before them, their count for what comes after."""
        named = next(filter(None, map(self._layer, [op.name, *self.weights_of(op)])), None)
        if named:
            return self.layers[named]
        return -1 if op.id < self.begin else len(self.layers)

    def stages(self, decision: Decision) -> list[int]:
        """Return the stage of each layer: that of most ops with weights, since blocks may begin within a layer."""
        found: list[Counter[int]] = [Counter() for _ in self.layers]
        for op in self.graph.ops:
            for layer in filter(None, map(self._layer, self.weights_of(op))):
                found[self.layers[layer]][decision.ops[op.name].stage] += 1
        return [counts.most_common(1)[0][0] for counts in found]

    def check_layers(self) -> None:
        """Check that each layer reads one tensor of the one before it, and nothing else that weights were needed for.

        Raises:
            NotExecutedError: Some op reads more.
        """
        makers: dict[int, int] = {}
        passed: dict[int, int] = {}
        for op in self.graph.ops:
            read = {x.tensor: makers[x.tensor] for x in op.inputs if x.tensor in makers}
            between = self._is_between(op)
            place = max(read.values()) if read and between else self.place(op)
            begins = self._begins(op, place)
            if any(not begins - 1 <= maker <= place for maker in read.values()):
                raise NotExecutedError(f"{op.name} reads what is made before the layer that comes before it")
            if between and len(set(read.values())) > 1:
                raise NotExecutedError(f"{op.name} joins what two layers make, and is in neither")
            for tensor, maker in read.items():
                if maker < min(begins, len(self.layers) - 1) and passed.setdefault(maker, tensor) != tensor:
                    raise NotExecutedError(f"{op.name} reads a second tensor of the layer before it")
            if read or self.weights_of(op):
                makers |= {out.tensor: place for out in op.outputs}

    def _begins(self, op: Op, place: int) -> int:
        """Return the first layer that an op does a part of, as the last add of a layer with the product after it."""
        layers = filter(None, (self._layer(member.name) for member in op.members))
        return min([place, *(self.layers[layer] for layer in layers)])

    def _layer(self, name: str) -> str:
        """Return the layer that something is part of, by its name; "" where it is of none."""
        found = _NUMBERED.match(name)
        path = f"{found[1]}{found[2]}" if found else ""
        return path if path in self.layers else ""

    def _is_between(self, op: Op) -> bool:
        """Return whether an op is in what runs the layers, between two of them."""
        return self.begin < op.id < self.end and not any(map(self._layer, [op.name, *self.weights_of(op)]))

    def _is_behind(self, op: Op) -> bool:
        if self._is_between(op):
            raise NotExecutedError(f"{op.name} reads weights between the layers")
        return op.id >= self.end

    def _holder(self, op: Op, weight: str) -> str:
        """Return the module that reads a weight: the one that holds it, or one that it is tied to."""
        names = [op.name, *(member.name for member in op.members)]
        own = [*names, *(name.rpartition(".")[0] for name in names)]
        holder = weight.rpartition(".")[0]
        by_name = op.name.rpartition(".")[0] if op.source else op.name  # what is no trace has ops named as modules
        found = holder if holder in own else by_name
        if not found or next(iter(self.layers)).startswith(f"{found}."):
            raise NotExecutedError(f"{op.name} reads a weight in the module that runs the layers")
        return found


def _layers(graph: OpGraph) -> dict[str, int]:
    """Return the paths of the equal parts of a list that hold most weights, with their numbers from 0.

    Raises:
        NotExecutedError: There is no such list.
    """
    parts: dict[tuple[str, int], set[tuple[str, tuple[int, ...]]]] = defaultdict(set)
    elements: dict[tuple[str, int], int] = defaultdict(int)
    for tensor in graph.tensors:
        found = _NUMBERED.fullmatch(tensor.name)
        if found and tensor.kind is TensorKind.PARAMETER:
            part = found[1], int(found[2])
            parts[part].add((found[3] or "", tensor.shape))
            elements[part] += tensor.numel
    alike: dict[tuple[str, frozenset[tuple[str, tuple[int, ...]]]], list[int]] = defaultdict(list)
    for (container, number), form in parts.items():
        alike[container, frozenset(form)].append(number)
    most = 0
    layers: dict[str, int] = {}
    for (container, _), numbers in alike.items():
        held = sum(elements[container, number] for number in numbers)
        if len(numbers) > 1 and held > most:
            most = held
            layers = {f"{container}{number}": at for at, number in enumerate(sorted(numbers))}
    if not layers:
        raise NotExecutedError("the model has no list of equal layers")
    return layers

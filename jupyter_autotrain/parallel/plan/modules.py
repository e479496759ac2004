"""A plan by module: for every module with weights, how each mesh axis treats it, as torch calls."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from jupyter_autotrain.parallel.cost.layout import Placement, Shard
from jupyter_autotrain.parallel.cost.memory import Recompute, ZeroLevel
from jupyter_autotrain.parallel.graph.graph import Family, LoopRole, Op, Operand, TensorKind
from jupyter_autotrain.parallel.graph.tensor_parallel import summed_loops
from jupyter_autotrain.parallel.plan.decision_costs import DecisionCosts

_NUMBERED = re.compile(r"(?:(.*?)\.)?(\d+)((?:\..*)?)")
STYLES = ("ColwiseParallel", "RowwiseParallel", "SequenceParallel")


@dataclass(frozen=True, slots=True)
class ModuleSharding:
    """One module with weights.

    Attributes:
        path: As in `named_modules`.
        styles: Per mesh axis the torch call that splits it, "data" where it works on a slice of the batch, or "".
        zero: What replicas of its weights share out.
        recompute: Mode of its block.
        stage: Pipeline stage.
        weight: Elements of its weights.
        offload: Whether its optimizer states live on the host.
        host_table: Whether the table that it looks up lives there as well.
    """

    path: str
    styles: tuple[str, ...]
    zero: ZeroLevel
    recompute: Recompute
    stage: int
    weight: int
    offload: bool
    host_table: bool

    @property
    def layer(self) -> tuple[str, int] | None:
        """Container and index of a module in a numbered list; None for others."""
        found = _NUMBERED.fullmatch(self.path)
        return (found[1] or "", int(found[2])) if found else None

    @property
    def pattern(self) -> str:
        """The path with `*` for the number of its layer, where a list inside the model holds that."""
        found = _NUMBERED.fullmatch(self.path)
        return f"{found[1]}.*{found[3]}" if found and found[1] else self.path


def modules_of(costs: DecisionCosts) -> tuple[ModuleSharding, ...]:
    """All modules with weights, in the order of use, each once."""
    graph = costs.graph
    axes = range(len(costs.decision.mesh.shape))
    found = {}
    for op in graph.ops:
        for operand in sorted(op.inputs, key=lambda x: -len(x.loops)):  # weights before biases
            tensor = graph.tensors[operand.tensor]
            path = tensor.name.rpartition(".")[0]
            if tensor.kind is not TensorKind.PARAMETER or not path or path in found:
                continue
            decided = costs.op_decision(op)
            states = decided.states
            found[path] = ModuleSharding(
                path,
                tuple(_style(costs, op, operand, axis) for axis in axes),
                states.zero,
                decided.recompute,
                decided.stage,
                tensor.numel,
                states.offload,
                states.host_table and operand.tensor in costs.analysis.looked_up,
            )
    return tuple(found.values())


def _style(costs: DecisionCosts, op: Op, weight: Operand, axis: int) -> str:
    """Return what an axis does with a module's op."""
    placed = costs.input_placements(op, weight)[axis]
    if isinstance(placed, Shard):
        return _split_style(costs, op, weight, axis, placed.dim)
    role = _role(costs, op, axis)
    if role is LoopRole.SEQUENCE and op.family is Family.NORM:
        return "SequenceParallel()"
    return "data" if role in {LoopRole.BATCH, LoopRole.SEQUENCE, LoopRole.SPATIAL} else ""


def _split_style(costs: DecisionCosts, op: Op, weight: Operand, axis: int, dim: int) -> str:
    """Return how an axis splits a module's weight along one of its dims."""
    if op.family is Family.EMBEDDING:
        style = "RowwiseParallel" if dim == 0 else "ColwiseParallel"
        return _call(style, ("Replicate()", _output_layout(costs, op, axis)))
    if op.family is not Family.MATMUL:
        return "other"
    inner = weight.loops[dim] in summed_loops(costs.graph, op, weight)
    style = "RowwiseParallel" if inner else "ColwiseParallel"
    left = WHOLE_LOGITS if not inner and _feeds_loss(costs, op, axis) else _output_layout(costs, op, axis)
    return _call(style, (_input_layout(costs, op, weight, axis), left))


def split_over(module: ModuleSharding) -> tuple[tuple[int, ...], str]:
    """Return the axes over which a module's weights (or a norm's sequence) are split, and one style for all."""
    axes = tuple(a for a, style in enumerate(module.styles) if style.startswith(STYLES) or style == "other")
    styles = {module.styles[a].split("(")[0] for a in axes}
    if len(styles) > 1:
        return axes, "other"
    return axes, module.styles[axes[-1]] if axes else ""


_DEFAULTS = {
    "ColwiseParallel": ("Replicate()", "Shard(-1)"),
    "RowwiseParallel": ("Shard(-1)", "Replicate()"),
}
"""Layouts of input and output that each style assumes."""
_LAYOUTS = {
    LoopRole.BATCH: "Shard(0)",
    LoopRole.SEQUENCE: "Shard(1)",
    LoopRole.SPATIAL: "Shard(2)",
    None: "Replicate()",
}
"""The placement of an activation (batch, sequence, features) by the role of the split loop; else the last dim."""


def _role(costs: DecisionCosts, op: Op, axis: int) -> LoopRole | None:
    loop = costs.op_decision(op).split_loops(op)[axis]
    return loop.role if loop else None


def _layout(placed: Placement, role: LoopRole | None) -> str:
    """Return how an activation lies on one axis, as a placement of torch."""
    return _LAYOUTS.get(role, "Shard(-1)") if isinstance(placed, Shard) else "Replicate()"


def _input_layout(costs: DecisionCosts, op: Op, weight: Operand, axis: int) -> str:
    """Return how the input that meets the weight is left by its maker."""
    graph = costs.graph
    summed = summed_loops(graph, op, weight)
    meets = [x for x in op.inputs if x.tensor != weight.tensor and summed & set(x.loops)]
    if not meets or meets[0].tensor not in graph.producers:
        return "Replicate()"
    maker = graph.ops[graph.producers[meets[0].tensor]]
    out = next(x for x in maker.outputs if x.tensor == meets[0].tensor)
    return _layout(costs.output_placements(maker, out)[axis], _role(costs, maker, axis))


def _output_layout(costs: DecisionCosts, op: Op, axis: int) -> str:
    """Return how the op's first reader reads its output."""
    graph = costs.graph
    out = op.outputs[0]
    for reader in graph.consumers.get(out.tensor, ())[:1]:
        operand = next(x for x in graph.ops[reader].inputs if x.tensor == out.tensor)
        return _layout(costs.input_placements(graph.ops[reader], operand)[axis], _role(costs, graph.ops[reader], axis))
    return "Shard(-1)"


_PASSING = (Family.RESHAPE, Family.ELEMENTWISE)
WHOLE_LOGITS = "Shard(-1), use_local_output=False"
"""Layout of logits that stay one tensor for `loss_parallel`, however they are split."""


def _feeds_loss(costs: DecisionCosts, op: Op, axis: int) -> bool:
    """Return whether a loss, maybe behind views and casts, reads what the op makes split along the classes."""
    graph = costs.graph
    reached = list(graph.readers(op))
    for number in reached:
        reader = graph.ops[number]
        if reader.family is Family.LOSS:
            return any(costs.input_placements(reader, x)[axis] == Shard(len(x.loops) - 1) for x in reader.inputs)
        if reader.family in _PASSING:
            reached += [after for after in graph.readers(reader) if after not in reached]
    return False


def _call(style: str, layouts: tuple[str, str]) -> str:
    """Return the style with the layouts that differ from what it assumes."""
    names = ("input_layouts", "output_layouts")
    known = zip(names, layouts, _DEFAULTS[style], strict=True)
    given = [f"{name}={layout}" for name, layout, usual in known if layout != usual]
    return f"{style}({', '.join(given)})"


def ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Rising numbers as (first, last + 1) stretches."""
    start = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield start, last + 1
            start = number
        last = number
    yield start, last + 1


def patterns(
    styled: Sequence[tuple[ModuleSharding, str]], among: Sequence[ModuleSharding]
) -> Iterator[tuple[str, str]]:
    """(quoted path or pattern, style): one entry per path inside a layer when all layers agree, else one per layer.

    A pattern names no other module of those `among` which it is read.
    """
    everywhere = Counter(module.pattern for module in among)
    alike: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for module, style in styled:
        alike[module.pattern].append((module.path, style))
    for pattern, entries in alike.items():
        styles = {style for _, style in entries}
        if len(styles) == 1 and 1 < len(entries) == everywhere[pattern]:
            yield f'"{pattern}"', entries[0][1]
        else:
            yield from ((f'"{path}"', style) for path, style in entries)


def matches(modules: Sequence[ModuleSharding], among: Sequence[ModuleSharding]) -> str:
    """Return the test whether a parameter's `name` is of one of some modules, and of none else."""
    unstyled = [(module, "") for module in modules]
    paths = (path.removesuffix('"') + '.*"' for path, _ in patterns(unstyled, among))
    return f"any(fnmatch.fnmatch(name, p) for p in ({', '.join(paths)},))"


def layers_of(modules: Sequence[ModuleSharding]) -> dict[tuple[str, int], list[ModuleSharding]]:
    """(container, index) → its modules; only containers with several numbered parts."""
    found: dict[tuple[str, int], list[ModuleSharding]] = defaultdict(list)
    for module in modules:
        layer = module.layer
        if layer:
            found[layer].append(module)
    counts = Counter(container for container, _ in found)
    return {key: inside for key, inside in found.items() if counts[key[0]] > 1}


def in_model(container: str) -> str:
    """Return a container as an attribute of the model, which may be the list itself (`nn.Sequential`)."""
    return f"model.{container}" if container else "model"


def indices_of(numbers: Sequence[int]) -> str:
    """Numbers as one range, or several in a list."""
    if not numbers:
        return "range(0)"
    stretches = list(ranges(sorted(numbers)))
    if len(stretches) == 1:
        return f"range({stretches[0][0]}, {stretches[0][1]})"
    return str(list(chain.from_iterable(range(a, b) for a, b in stretches)))

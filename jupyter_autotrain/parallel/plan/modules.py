"""A plan by module: for every module with weights, which mesh axes split it or what it works on, and its states."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from jupyter_autotrain.parallel.cost.layout import Shard
from jupyter_autotrain.parallel.cost.memory import Recompute, ZeroLevel
from jupyter_autotrain.parallel.graph.graph import LoopRole, Op, Operand, TensorKind
from jupyter_autotrain.parallel.plan.decision_costs import DecisionCosts

_NUMBERED = re.compile(r"(?:(.*?)\.)?(\d+)((?:\..*)?)")
_OWN = (LoopRole.BATCH, LoopRole.SEQUENCE, LoopRole.SPATIAL)


@dataclass(frozen=True, slots=True)
class ModuleSharding:
    """One module with weights.

    Attributes:
        path: As in `named_modules`.
        own: Mesh axes over which ranks have its whole weights, and samples or positions of their own.
        split: Mesh axes over which its weights are split.
        zero: What replicas of its weights share out.
        recompute: Mode of its block.
        stage: Pipeline stage.
        weight: Elements of its weights.
        offload: Whether its optimizer states live on the host.
        host_table: Whether the table that it looks up lives there as well.
    """

    path: str
    own: tuple[int, ...]
    split: tuple[int, ...]
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
                tuple(axis for axis in axes if _is_own(costs, op, operand, axis)),
                tuple(axis for axis in axes if _is_split(costs, op, operand, axis)),
                states.zero,
                decided.recompute,
                decided.stage,
                tensor.numel,
                states.offload,
                states.host_table and operand.tensor in costs.analysis.looked_up,
            )
    return tuple(found.values())


def _is_split(costs: DecisionCosts, op: Op, weight: Operand, axis: int) -> bool:
    return isinstance(costs.input_placements(op, weight)[axis], Shard)


def _is_own(costs: DecisionCosts, op: Op, weight: Operand, axis: int) -> bool:
    loop = costs.op_decision(op).split_loops(op)[axis]
    return loop is not None and loop.role in _OWN and not _is_split(costs, op, weight, axis)


def ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Rising numbers as (first, last + 1) stretches."""
    start = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield start, last + 1
            start = number
        last = number
    yield start, last + 1


def patterns(modules: Sequence[ModuleSharding], among: Sequence[ModuleSharding]) -> Iterator[str]:
    """Yield the paths of some modules, or one pattern for what all layers have alike.

    A pattern names no other module of those `among` which it is read.
    """
    everywhere = Counter(module.pattern for module in among)
    alike: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        alike[module.pattern].append(module.path)
    for pattern, paths in alike.items():
        yield from [pattern] if 1 < len(paths) == everywhere[pattern] else paths


def matches(modules: Sequence[ModuleSharding], among: Sequence[ModuleSharding]) -> str:
    """Return the test whether a parameter's `name` is of one of some modules, and of none else."""
    paths = (f'"{path}.*"' for path in patterns(modules, among))
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


def template_of(path: str) -> tuple[str, int]:
    """Return a path with `{i}` for the number of its layer, and that number; 0 where it has none."""
    found = _NUMBERED.fullmatch(path)
    return (f"{found[1] or ''}.{{i}}{found[3]}".lstrip("."), int(found[2])) if found else (path, 0)


def indices_of(numbers: Sequence[int]) -> str:
    """Numbers as one range, or several in a list."""
    if not numbers:
        return "range(0)"
    stretches = list(ranges(sorted(numbers)))
    if len(stretches) == 1:
        return f"range({stretches[0][0]}, {stretches[0][1]})"
    return str(list(chain.from_iterable(range(a, b) for a, b in stretches)))

"""A plan by module: for every module with weights, how each mesh axis treats it, in the words of torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jupyter_autotrain.parallel.cost.layout import PARTIAL, REPLICATE
from jupyter_autotrain.parallel.cost.memory import Recompute, Zero
from jupyter_autotrain.parallel.graph.graph import Family, LoopRole, Op, Operand, TensorKind
from jupyter_autotrain.parallel.plan.pricing import Pricing, loops_of


@dataclass(frozen=True, slots=True)
class Module:
    """One module with weights.

    Attributes:
        path: As in `named_modules`.
        styles: Per mesh axis the torch call that splits it, "data" where it works on a slice of the batch, or "".
        zero: What replicas of its weights share out.
        recompute: Mode of its block.
        stage: Pipeline stage.
        weight: Elements of its weights.
    """

    path: str
    styles: tuple[str, ...]
    zero: Zero
    recompute: Recompute
    stage: int
    weight: int

    @property
    def layer(self) -> tuple[str, int, str] | None:
        """(container, index, path inside) of a module in a numbered list; None for others."""
        parts = self.path.split(".")
        for place, part in enumerate(parts):
            if part.isdigit():
                return ".".join(parts[:place]), int(part), ".".join(parts[place + 1 :])
        return None


def modules_of(pricing: Pricing) -> tuple[Module, ...]:
    """All modules with weights, in the order of use, each once."""
    record, found = pricing.record, {}
    for op in record.graph.ops:
        for operand in op.inputs:
            tensor = record.graph.tensors[operand.tensor]
            path = tensor.name.rpartition(".")[0]
            if tensor.kind is not TensorKind.PARAMETER or not path or path in found:
                continue
            strategy = pricing.strategy(op)
            axes = range(len(record.mesh.shape))
            styles = tuple(_style(pricing, op, operand, axis) for axis in axes)
            found[path] = Module(path, styles, strategy.zero, strategy.recompute, strategy.stage, tensor.numel)
    return tuple(found.values())


def _style(pricing: Pricing, op: Op, weight: Operand, axis: int) -> str:
    """What an axis does with a module's op."""
    loop = loops_of(op, pricing.strategy(op))[axis]
    role = op.loops[loop].role if loop >= 0 else None
    split = pricing.needed(op, weight)[axis]
    if split >= 0 and op.family is Family.EMBEDDING:
        return _call(
            "RowwiseParallel" if split == 0 else "ColwiseParallel", _layouts(pricing, op, axis, looked_up=True)
        )
    if split >= 0 and op.family is Family.MATMUL:
        column = any(loop in out.loops for out in op.outputs)
        return _call("ColwiseParallel" if column else "RowwiseParallel", _layouts(pricing, op, axis))
    if split >= 0:
        return "other"
    if role is LoopRole.BATCH:
        return "data"
    return "SequenceParallel()" if role is LoopRole.SEQUENCE and op.family is Family.NORM else ""


_DEFAULTS = {"ColwiseParallel": (REPLICATE, -9), "RowwiseParallel": (-9, REPLICATE)}
"""Layouts of input and output that each style assumes; -9 is the last dim."""


def _layouts(pricing: Pricing, op: Op, axis: int, *, looked_up: bool = False) -> tuple[int | None, int | None]:
    """How the input arrives, and how the output is wanted, on an axis (None: not known)."""
    graph = pricing.record.graph
    activations = [x for x in op.inputs if graph.tensors[x.tensor].kind in {TensorKind.ACTIVATION, TensorKind.INPUT}]
    arrives: int | None = None
    if activations and activations[0].tensor in graph.producers:
        maker = graph.ops[graph.producers[activations[0].tensor]]
        out = next(x for x in maker.outputs if x.tensor == activations[0].tensor)
        arrives = _last(pricing.produced(maker, out)[axis], out)
    out = op.outputs[0]
    wanted = None
    for reader in graph.consumers.get(out.tensor, ())[:1]:
        operand = next(x for x in graph.ops[reader].inputs if x.tensor == out.tensor)
        wanted = _last(pricing.needed(graph.ops[reader], operand)[axis], operand)
    return (REPLICATE if looked_up else arrives), wanted


def _last(code: int, operand: Operand) -> int:
    return -9 if code >= 0 and code == len(operand.loops) - 1 else code


def _call(style: str, layouts: tuple[int | None, int | None]) -> str:
    """The style with the layouts that differ from what it assumes."""
    names = ("input_layouts", "output_layouts")
    given = [
        f"{name}={_word(code)}"
        for name, code, usual in zip(names, layouts, _DEFAULTS[style], strict=True)
        if code is not None and code not in {usual, PARTIAL}
    ]
    return f"{style}({', '.join(given)})"


def _word(code: int) -> str:
    return "Replicate()" if code == REPLICATE else f"Shard({-1 if code == -9 else code})"


def ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Rising numbers as (first, last + 1) stretches."""
    start = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield start, last + 1
            start = number
        last = number
    yield start, last + 1

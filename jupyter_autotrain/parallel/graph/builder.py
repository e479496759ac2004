"""Puts an `OpGraph` together op by op: names, loop nests by the rules, costs by the family unless they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from jupyter_autotrain.parallel.graph.graph import Family, Op, Operand, OpGraph, Tensor, TensorKind
from jupyter_autotrain.parallel.graph.roles import with_roles
from jupyter_autotrain.parallel.graph.rules import Call, Nest, Shape, describe

BACKWARD_FLOPS: Mapping[Family, float] = {
    Family.MATMUL: 2.0,  # one product per operand
    Family.CONVOLUTION: 2.0,
    Family.MOE: 2.0,
    Family.ATTENTION: 2.5,  # scores again, then two products each for values and for scores (FlashAttention-2, sec. 3)
}


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of an op as a whole; see `Op` for the fields."""

    flops_forward: float = 0.0
    flops_backward: float = 0.0
    bytes_forward: float = 0.0
    bytes_backward: float = 0.0
    saved: tuple[int, ...] = ()
    saved_extra_bytes: int = 0
    unfused_extra_bytes: int = 0


class Builder:
    """Collects tensors and ops in the order they are made.

    Args:
        name: Name of the graph.
        dtype: Type of tensors that name none.
    """

    def __init__(self, name: str = "", dtype: str = "bfloat16") -> None:
        self.name = name
        self.dtype = dtype
        self.tensors: list[Tensor] = []
        self.ops: list[Op] = []
        self._names: dict[str, int] = {}
        self._unknown: dict[str, None] = {}

    def tensor(
        self,
        name: str,
        shape: Shape,
        kind: TensorKind = TensorKind.ACTIVATION,
        dtype: str = "",
        *,
        trainable: bool | None = None,
    ) -> int:
        """Add a tensor; parameters are trainable unless `trainable` is false. Returns its id."""
        learns = kind is TensorKind.PARAMETER and trainable is not False
        self.tensors.append(Tensor(len(self.tensors), name, shape, dtype or self.dtype, kind, learns))
        return len(self.tensors) - 1

    def parameter(self, name: str, *shape: int) -> int:
        """Add a trainable parameter."""
        return self.tensor(name, shape, TensorKind.PARAMETER)

    def input(self, name: str, *shape: int, dtype: str = "") -> int:
        """Add an input of the model."""
        return self.tensor(name, shape, TensorKind.INPUT, dtype)

    def apply(self, kind: str, inputs: Sequence[int], out: Shape, name: str = "", **args: object) -> int:
        """Add an op with one new output tensor and costs by its family. Returns the output's id."""
        return self.split(kind, inputs, (out,), name, **args)[0]

    def split(
        self, kind: str, inputs: Sequence[int], outs: Sequence[Shape], name: str = "", **args: object
    ) -> list[int]:
        """Add an op with several outputs."""
        unique = self._unique(name or kind)
        dtype = next((t.dtype for t in map(self._tensor, inputs) if t.dtype.startswith(("float", "bf"))), self.dtype)
        outputs = [self.tensor(f"{unique}:{i}" if i else unique, shape, dtype=dtype) for i, shape in enumerate(outs)]
        call = Call(kind, tuple(self._tensor(i).shape for i in inputs), tuple(outs), args)
        self._append(unique, call, inputs, outputs, None, "")
        return outputs

    def add(
        self, name: str, call: Call, inputs: Sequence[int], outputs: Sequence[int], costs: Costs, source: str
    ) -> None:
        """Add an op whose tensors exist and whose costs were measured."""
        self._append(self._unique(name), call, inputs, outputs, costs, source)

    def graph(self, **meta: str) -> OpGraph:
        """Return the graph so far, loop roles propagated from the inputs."""
        plain = OpGraph(tuple(self.ops), tuple(self.tensors), self.name, unknown=tuple(self._unknown), meta=meta)
        return with_roles(plain)

    def _append(
        self, name: str, call: Call, inputs: Sequence[int], outputs: Sequence[int], costs: Costs | None, source: str
    ) -> None:
        nest, known = describe(call)
        if not known:
            self._unknown[call.kind] = None
        if costs is None:
            costs = self._costs(nest, call, inputs, outputs)
        for number, tensor in enumerate(outputs):
            if not self.tensors[tensor].name:
                self.tensors[tensor] = replace(self.tensors[tensor], name=f"{name}:{number}" if number else name)
        self.ops.append(
            Op(
                id=len(self.ops),
                name=name,
                family=nest.family,
                kind=call.kind,
                loops=nest.loops,
                inputs=tuple(map(Operand, inputs, nest.inputs)),
                outputs=tuple(map(Operand, outputs, nest.outputs)),
                flops_forward=costs.flops_forward,
                flops_backward=costs.flops_backward,
                bytes_forward=costs.bytes_forward,
                bytes_backward=costs.bytes_backward,
                saved=costs.saved,
                saved_extra_bytes=costs.saved_extra_bytes,
                unfused_extra_bytes=costs.unfused_extra_bytes + self._wider_mask(nest, outputs),
                source=source,
            )
        )

    def _costs(self, nest: Nest, call: Call, inputs: Sequence[int], outputs: Sequence[int]) -> Costs:
        flops = flops_of(nest, call)
        backward = flops * BACKWARD_FLOPS.get(nest.family, 0.0)
        if nest.family is Family.RESHAPE:
            return Costs()
        read = self._bytes(inputs)
        written = self._bytes(outputs)
        if nest.family is Family.EMBEDDING:
            table = self._bytes(inputs[:1])
            return Costs(0.0, 0.0, 2.0 * written + read - table, table + written, tuple(inputs[1:]))
        again = read + (written if flops else 0) + written
        extra = self._extra(nest, outputs)
        return Costs(flops, backward, read + written, again + read, self._saved(nest, call, inputs, outputs), extra)

    def _saved(self, nest: Nest, call: Call, inputs: Sequence[int], outputs: Sequence[int]) -> tuple[int, ...]:
        """Tensors kept: products and norms their inputs, softmax its output, sums and additions nothing."""
        kept = [i for i in inputs if self._tensor(i).kind is not TensorKind.PARAMETER]
        if call.kind in ("add", "sub", "sum", "mean") or nest.family is Family.DROPOUT:
            return ()
        if nest.family is Family.ATTENTION:
            return (*kept, *outputs)
        if call.kind in ("_softmax", "_log_softmax", "relu", "tanh", "sigmoid"):
            return tuple(outputs)
        return tuple(kept)

    def _extra(self, nest: Nest, outputs: Sequence[int]) -> int:
        """Bytes of statistics and masks: 4 per attention row and head, 8 per normed row, 1 per dropped element."""
        out = self._tensor(outputs[0])
        rows = out.numel // max(1, out.shape[-1]) if out.shape else 1
        per_row = {Family.ATTENTION: 4, Family.NORM: 8, Family.DROPOUT: out.shape[-1] if out.shape else 1}
        return rows * per_row.get(nest.family, 0)

    def _wider_mask(self, nest: Nest, outputs: Sequence[int]) -> int:
        """Return what a mask as wide as the tensor takes beyond a byte per element."""
        out = self._tensor(outputs[0])
        return max(0, out.size_bytes - out.numel) if nest.family is Family.DROPOUT else 0

    def _bytes(self, tensors: Sequence[int]) -> int:
        return sum(self._tensor(i).size_bytes for i in tensors)

    def _tensor(self, tensor: int) -> Tensor:
        return self.tensors[tensor]

    def _unique(self, name: str) -> str:
        seen = self._names.get(name, 0)
        self._names[name] = seen + 1
        return f"{name}_{seen}" if seen else name


def flops_of(nest: Nest, call: Call) -> float:
    """Floating point operations of one forward call; a multiply-add counts twice, elementwise work is not counted."""
    if nest.family is Family.MATMUL:
        return 2.0 * prod(loop.size for loop in nest.loops)
    if nest.family is Family.ATTENTION:
        query, key, value = call.inputs[:3]
        return 2.0 * prod(query[:-1]) * key[-2] * (query[-1] + value[-1])
    if nest.family is Family.CONVOLUTION and call.kind == "convolution":
        weight = call.inputs[1]
        channels = 0 if call.args.get("transposed") else 1
        return 2.0 * prod(weight[1:]) * _sites(call, channels)
    if call.kind == "experts":
        matrices = sum(prod(shape[1:]) for shape in call.inputs[1:] if len(shape) == 3)
        return 2.0 * prod(call.inputs[0][:-1]) * call.integer("chosen", 1) * matrices
    return 0.0


def _sites(call: Call, forward: int) -> int:
    """Places at which a kernel is applied, times its output (or input, transposed) channels."""
    return prod(call.outputs[0] if forward else call.inputs[0])

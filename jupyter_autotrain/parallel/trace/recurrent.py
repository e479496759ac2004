"""Recurrent layers on shapes: each layer is one op, whatever kernels a device has for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import torch

from jupyter_autotrain.parallel.trace.internals import Passed
from jupyter_autotrain.parallel.trace.recorder import Recorder
from jupyter_autotrain.parallel.trace.traced_ops import TracedOp
from jupyter_autotrain.parallel.trace.values import IntegerValues


def pack(
    values: IntegerValues, x: torch.Tensor, lengths: torch.Tensor, batch_first: bool
) -> tuple[torch.Tensor, ...] | None:
    """Stand in for `torch._VF._pack_padded_sequence`: all rows, and rows per step; None if lengths are unknown."""
    known = values.numbers(lengths)
    if known is None:
        return None
    steps_first = x.transpose(0, 1) if batch_first else x
    sizes = _counts(known, max(known))
    rows = values.of_numbers(_rows(sizes, len(known)), lengths)
    flat = steps_first.reshape(-1, *steps_first.shape[2:])
    return flat.index_select(0, rows), values.of_numbers(sizes, lengths)


def pad(
    values: IntegerValues,
    data: torch.Tensor,
    batch_sizes: torch.Tensor,
    batch_first: bool,
    padding_value: float,
    total_length: int,
) -> tuple[torch.Tensor, ...] | None:
    """Stand in for `torch._VF._pad_packed_sequence`: padded sequences, and their lengths; None if sizes are unknown."""
    sizes = values.numbers(batch_sizes)
    if sizes is None:
        return None
    batch = sizes[0]
    steps = max(total_length, len(sizes))
    rows = values.of_numbers(_rows(sizes, batch), batch_sizes)
    flat = data.new_full((steps * batch, *data.shape[1:]), padding_value).index_copy(0, rows, data)
    out = flat.view(steps, batch, *data.shape[1:])
    return out.transpose(0, 1) if batch_first else out, values.of_numbers(_counts(sizes, batch), batch_sizes)


def _counts(numbers: Sequence[int], end: int) -> list[int]:
    """Get how many of the numbers are greater than 0, 1, ... up to the end: lengths become sizes of steps, and back."""
    return [_count_above(numbers, place) for place in range(end)]


def _count_above(numbers: Sequence[int], place: int) -> int:
    return sum(number > place for number in numbers)


def _rows(sizes: Sequence[int], batch: int) -> list[int]:
    """Where the rows lie among (steps x batch) padded ones."""
    return list(chain.from_iterable(range(step * batch, step * batch + size) for step, size in enumerate(sizes)))


GATES: Mapping[str, int] = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
CELLS: Mapping[Callable[..., Passed], str] = {getattr(torch, name): name for name in GATES}
"""Functions of torch that run all layers of a recurrent module."""


class RecurrentLayer(torch.autograd.Function):
    """One layer on shapes: keeps its input, its output and its gates."""

    @staticmethod
    def forward(ctx: Passed, gates: int, x: torch.Tensor, width: int, *rest: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Output of shape (..., width), then the states as they are left; `rest` is states, then weights."""
        ctx.count = len(rest)
        states = [tensor for tensor in rest if tensor.dim() == 3]
        out = x.new_empty(*x.shape[:-1], width)
        hidden = states[-1].shape[0] * states[-1].shape[-1]
        ctx.save_for_backward(x, out, x.new_empty(*x.shape[:-1], gates * hidden), *rest)
        return out, *map(torch.empty_like, states)

    @staticmethod
    def backward(ctx: Passed, *_grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Gradients of input, states and weights."""
        x, _, _, *rest = ctx.saved_tensors
        return None, torch.empty_like(x), None, *map(torch.empty_like, rest)


@dataclass(frozen=True, slots=True)
class RecurrentCall:
    """A call of a recurrent function.

    Attributes:
        kind: Its name.
        x: Input: (steps, samples, features), samples first if `samples` is 0, or (rows, features) when packed.
        states: Of all layers, each (layers x directions, samples, width).
        weights: Per layer and direction: from the input, from the state, biases, and a projection.
        layers: Number of layers.
        directions: 1, or 2.
        dropout: Between layers.
        samples: Dim of `x` that counts samples; -1 where there is none.
        steps: Steps in time.
    """

    kind: str
    x: torch.Tensor
    states: Sequence[torch.Tensor]
    weights: Sequence[torch.Tensor]
    layers: int
    directions: int
    dropout: float
    samples: int
    steps: int


def read(kind: str, args: Sequence[Passed]) -> RecurrentCall:
    """Return what the arguments of a recurrent function mean; with packed sequences the second is their batch sizes."""
    packed = not isinstance(args[3], bool)
    x, states, weights = (args[0], args[2], args[3]) if packed else args[:3]
    _, layers, dropout, train, both = args[4:9] if packed else args[3:8]
    first = not packed and args[8]
    if packed:
        samples = -1
        steps = args[1].shape[0]
    elif x.dim() < 3:
        samples = -1
        steps = x.shape[0]
    else:
        samples = 0 if first else 1
        steps = x.shape[1 - samples]
    held = [states] if isinstance(states, torch.Tensor) else list(states)
    return RecurrentCall(kind, x, held, weights, layers, 1 + both, dropout if train else 0.0, samples, steps)


def run(recorder: Recorder, call: RecurrentCall) -> tuple[torch.Tensor, ...]:
    """Stand in for a recurrent function: output of the last layer, and the states of all."""
    per_layer = len(call.weights) // call.layers
    x = call.x
    left = []
    for layer in range(call.layers):
        if layer and call.dropout:
            x = torch.native_dropout(x, call.dropout, True)[0]
        here = slice(layer * call.directions, (layer + 1) * call.directions)
        states = [state if call.layers == 1 else state[here] for state in call.states]
        weights = call.weights[layer * per_layer : (layer + 1) * per_layer]
        x, *after = _layer(recorder, call, x, states, weights)
        left.append(after)
    joined = [parts[0] if call.layers == 1 else torch.cat(parts) for parts in zip(*left, strict=True)]
    return x, *joined


def _layer(
    recorder: Recorder,
    call: RecurrentCall,
    x: torch.Tensor,
    states: Sequence[torch.Tensor],
    weights: Sequence[torch.Tensor],
) -> Sequence[torch.Tensor]:
    width = call.directions * int(states[0].shape[-1])
    known = {"samples": call.samples, "states": len(states)}
    with recorder.composite_op(call.kind, [x, *states, *weights], **known) as (record, results):
        out: Sequence[torch.Tensor] = RecurrentLayer.apply(GATES[call.kind], x, width, *states, *weights)  # type: ignore[no-untyped-call]  # untyped in torch
        results.extend(out)
        if record is not None:
            _price(record, call, x, out[0], weights)
    return out


def _price(
    record: TracedOp, call: RecurrentCall, x: torch.Tensor, out: torch.Tensor, weights: Sequence[torch.Tensor]
) -> None:
    """Products with every weight matrix for every row; what comes from the state is read again in every step.

    FLOPs: 2 per multiply-add, as of `mm`; the backward pass has two such products. Gates are written, and read once.
    """
    rows = x.numel() // x.shape[-1]
    matrices = [weight for weight in weights if weight.dim() == 2]
    per_direction = len(matrices) // call.directions
    repeated = [weight for place, weight in enumerate(matrices) if place % per_direction]
    products = rows * sum(weight.numel() for weight in matrices)
    gates = rows * call.directions * int(matrices[0].shape[0])
    streamed = sum(weight.numel() for weight in weights) + (call.steps - 1) * sum(w.numel() for w in repeated)
    record.exact = True
    record.flops_forward = 2.0 * products
    record.flops_backward = 4.0 * products
    record.bytes_forward = float((x.numel() + out.numel() + 2 * gates + streamed) * x.element_size())
    record.bytes_backward = 2.0 * record.bytes_forward

"""Calls that are one op for a split, however torch dispatches them: functions, and norms and experts by module.

Attention, and the grouped product of experts, are one op each that only has shapes.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own custom
from torch.overrides import TorchFunctionMode

from jupyter_autotrain.parallel.trace.internals import Passed, tensors_in
from jupyter_autotrain.parallel.trace.recorder import Recorder
from jupyter_autotrain.parallel.trace.recurrent import CELLS, pack, pad, read, run
from jupyter_autotrain.parallel.trace.traced_ops import TracedOp
from jupyter_autotrain.parallel.trace.written_sizes import WrittenSizes


class GroupedProduct(torch.autograd.Function):
    """`out[t, n] = sum_k tokens[t, k] weight[expert of t, k, n]`, rows sorted by expert."""

    @staticmethod
    def forward(ctx: Passed, tokens: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Output of shape (tokens, width)."""
        ctx.save_for_backward(tokens, weight)
        return tokens.new_empty(tokens.shape[0], weight.shape[-1])

    @staticmethod
    def backward(ctx: Passed, *_grads: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Gradients of the two inputs."""
        tokens, weight = ctx.saved_tensors
        return torch.empty_like(tokens), torch.empty_like(weight)


def grouped_costs(tokens: torch.Tensor, weight: torch.Tensor) -> tuple[float, float]:
    """FLOPs and bytes of the forward product; the backward pass is two such products."""
    rows, depth = tokens.shape
    width = weight.shape[-1]
    moved = (rows * (depth + width) + weight.numel()) * tokens.element_size()
    return 2.0 * rows * depth * width, float(moved)


BACKWARD = 2.5
"""Backward over forward: the scores again, then two products each for values and scores (FlashAttention-2, sec. 3)."""


UNFUSED_SCORES = 3
"""Tables of scores that attention with dropout keeps in torch's plain kernels: softmax, mask, and their product."""


class Attention(torch.autograd.Function):
    """Fused attention on shapes: keeps queries, keys, values, output and one float per row of scores."""

    @staticmethod
    def forward(ctx: Passed, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Output of shape (..., heads, rows, value width), laid out as kernels do: rows outside heads."""
        *batch, heads, rows, _ = query.shape
        out = query.new_empty(*batch, rows, heads, value.shape[-1]).transpose(-3, -2)
        statistics = query.new_empty(*batch, heads, rows, dtype=torch.float32)
        ctx.save_for_backward(query, key, value, out, statistics)
        return out

    @staticmethod
    def backward(ctx: Passed, *_grads: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Gradients of the three inputs."""
        query, key, value, *_ = ctx.saved_tensors
        return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)


def attend(
    record: TracedOp | None,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    dropout_p: float = 0.0,
) -> torch.Tensor:
    """Stand in for `scaled_dot_product_attention` and give the record its costs.

    FLOPs: 2 per multiply-add of both products over all scores; a causal mask does not lower the count, as in
    torch's own counter. Bytes: each operand once, no scores, as fused kernels do.
    """
    out: torch.Tensor = Attention.apply(query, key, value)  # type: ignore[no-untyped-call]  # torch leaves it untyped
    if record is not None:
        pairs = query.numel() // query.shape[-1] * key.shape[-2]
        operands = [query, key, value, out, *([] if mask is None else [mask])]
        moved = sum(t.numel() * t.element_size() for t in operands)
        record.exact = True
        record.flops_forward = 2.0 * pairs * (query.shape[-1] + value.shape[-1])
        record.flops_backward = BACKWARD * record.flops_forward
        record.bytes_forward = moved
        record.bytes_backward = 2.0 * moved
        if dropout_p > 0:
            record.unfused_extra_bytes = UNFUSED_SCORES * pairs * query.element_size()
    return out


WHOLE: Mapping[Callable[..., Passed], str] = {
    F.linear: "linear",
    torch.matmul: "matmul",
    torch.Tensor.matmul: "matmul",
    torch.Tensor.__matmul__: "matmul",
    torch.einsum: "einsum",
}
"""Functions that become one op."""

# PyTorch 2.9 has the private name alone, which older callers use with newer ones too.
GROUPED: frozenset[object] = frozenset((getattr(F, "grouped_mm", None), torch._grouped_mm)) - {None}  # noqa: SLF001
"""Products of rows sorted by expert with stacked weights."""

UNFOLDED = frozenset((F.multi_head_attention_forward,))
"""Functions written in Python whose inner calls are to be seen one by one."""

CHECKS = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")


class FunctionInterceptor(TorchFunctionMode):
    """Intercepts whole calls of torch functions."""

    def __init__(self, recorder: Recorder, sizes: WrittenSizes) -> None:
        super().__init__()
        self._recorder = recorder
        self._sizes = sizes
        self._stand_ins: Mapping[Callable[..., Passed], Callable[..., Passed]] = {
            F.scaled_dot_product_attention: self._attention,
            F.dropout: _dropout,
            F.embedding_bag: self._bags,
            torch._VF._pack_padded_sequence: partial(self._packed, pack),  # noqa: SLF001 - what torch's own wrapper calls
            torch._VF._pad_packed_sequence: partial(self._packed, pad),  # noqa: SLF001 - likewise
            **{cell: partial(self._recurrent, kind) for cell, kind in CELLS.items()},
        }

    def __torch_function__(
        self,
        func: Passed,
        types: Passed,
        args: Passed = (),
        kwargs: Passed = None,
    ) -> Passed:
        """Run a call, as one op where it is one."""
        kwargs = kwargs or {}
        if self._recorder.path:
            self._sizes.note(self._recorder.path[-1], func, args, kwargs)
        if func in WHOLE:
            inputs, named = _operands(func, args, kwargs)
            with self._recorder.composite_op(WHOLE[func], inputs, **named) as (_, results):
                results.append(func(*args, **kwargs))
                return results[0]
        if func in self._stand_ins:
            return self._stand_ins[func](*args, **kwargs)
        if func in GROUPED and args[0].dim() == 2 and args[1].dim() == 3:
            return self._grouped(args[0], args[1])
        if func in UNFOLDED:
            with self:
                return _unchecked(func)(*args, **kwargs)
        return func(*args, **kwargs)

    def _attention(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,  # noqa: ARG002 - see attend
        **_: object,
    ) -> torch.Tensor:
        operands = [query, key, value, *([] if attn_mask is None else [attn_mask])]
        with self._recorder.composite_op("attention", operands) as (record, results):
            results.append(attend(record, query, key, value, attn_mask, dropout_p))
            out: torch.Tensor = results[0]
            return out

    def _recurrent(self, kind: str, *args: Passed) -> tuple[torch.Tensor, ...]:
        return run(self._recorder, read(kind, args))

    def _packed(self, stand_in: Callable[..., Passed], *args: Passed) -> tuple[torch.Tensor, ...]:
        found: tuple[torch.Tensor, ...] | None = stand_in(self._recorder.values, *args)
        real = torch._VF._pack_padded_sequence if stand_in is pack else torch._VF._pad_packed_sequence  # noqa: SLF001
        return found or real(*args)

    def _bags(self, input: torch.Tensor, weight: torch.Tensor, *rest: Passed, **words: Passed) -> torch.Tensor:
        others = tensors_in((rest, words))
        mode = words.get("mode", "mean")
        with self._recorder.composite_op("embedding_bag", [weight, input, *others], mode=mode) as (_, results):
            out: torch.Tensor = F.embedding_bag(input, weight, *rest, **words)
            results.append(out)
            return out

    def _grouped(self, tokens: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        with self._recorder.composite_op("grouped_mm", [tokens, weight]) as (_, results):
            record = self._recorder.current
            out: torch.Tensor = GroupedProduct.apply(tokens, weight)  # type: ignore[no-untyped-call]  # untyped in torch
            results.append(out)
            flops, moved = grouped_costs(tokens, weight)
            if record is not None:
                record.cost(flops, moved, backward=False)
                record.cost(2.0 * flops, 2.0 * moved, backward=True)
            return out


def _dropout(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:  # noqa: ARG001 - torch's signature
    """Dropout as accelerators do it: one op that keeps one byte per element."""
    return torch.native_dropout(input, p, True)[0] if training and p > 0 else input


def _operands(
    func: Callable[..., Passed], args: Passed, kwargs: Passed
) -> tuple[list[torch.Tensor], dict[str, object]]:
    inputs = tensors_in((args, kwargs))
    named = {"equation": args[0]} if func is torch.einsum and isinstance(args[0], str) else {}
    return inputs, dict(named)


def _unchecked(func: types.FunctionType) -> types.FunctionType:
    """Return a copy of a torch function that does not hand itself to the function mode again."""
    names = {**func.__globals__, **dict.fromkeys(CHECKS, lambda *_: False)}
    copy = types.FunctionType(func.__code__, names, func.__name__, func.__defaults__, func.__closure__)
    copy.__kwdefaults__ = func.__kwdefaults__
    return copy


@contextmanager
def modules(recorder: Recorder, model: torch.nn.Module) -> Iterator[None]:
    """Follow module calls: names for the ops inside, and norms and experts as one op each."""
    names = {module: name for name, module in model.named_modules()}
    open_regions: list[tuple[ExitStack, list[Passed]]] = []

    def enter(module: torch.nn.Module, args: tuple[Passed, ...]) -> None:
        recorder.path.append(names.get(module, type(module).__name__))
        stack = ExitStack()
        results: list[Passed] = []
        inputs = tensors_in(args)
        kind, known = _module_kind(module, inputs[0].shape[-1] if inputs and inputs[0].dim() else 0)
        if kind:
            inputs += list(module.parameters())
            _, results = stack.enter_context(recorder.composite_op(kind, inputs, **known))
        open_regions.append((stack, results))

    def leave(_module: torch.nn.Module, _args: tuple[Passed, ...], out: object) -> None:
        stack, results = open_regions.pop()
        if out is not None:
            results.append(out)
        stack.close()
        recorder.path.pop()

    with ExitStack() as hooks, _masks(recorder):
        hooks.callback(torch.nn.modules.module.register_module_forward_pre_hook(enter).remove)
        hooks.callback(torch.nn.modules.module.register_module_forward_hook(leave, always_call=False).remove)
        yield


@contextmanager
def _masks(recorder: Recorder) -> Iterator[None]:
    """Let transformers see the values of masks that no input decides, so that it drops those that mask nothing."""
    masking = sys.modules.get("transformers.masking_utils")
    before = getattr(masking, "is_tracing", None)
    if masking is None or before is None:
        yield
        return

    def is_tracing(tensor: torch.Tensor | None = None) -> bool:
        return tensor is not None and not recorder.values.is_constant(tensor)

    masking.is_tracing = is_tracing  # type: ignore[attr-defined]  # for the time of one trace
    try:
        yield
    finally:
        masking.is_tracing = before  # type: ignore[attr-defined]  # as it was


def _module_kind(module: torch.nn.Module, width: int) -> tuple[str, dict[str, int]]:
    """Kind of op that a module is as a whole, with the arguments of its rule; "" for most modules."""
    name = type(module).__name__
    parameters = list(module.parameters())
    if name.endswith(("RMSNorm", "LayerNorm")) and not isinstance(module, torch.nn.LayerNorm):
        flat = {p.shape for p in parameters} == {(width,)} and not list(module.children())
        return ("rms_norm" if flat else ""), {}
    stacked = [p.shape for p in parameters if p.dim() == 3]
    if name.endswith("Experts") and len(stacked) > 1:
        first, *_, second = stacked
        halves = {size // 2 for size in first[1:]}  # gate and up may lie in one
        shared = halves.union(first[1:]) & set(second[1:])
        return "experts", {"experts": first[0], "inner": max(shared - {width}, default=0)}
    return "", {}

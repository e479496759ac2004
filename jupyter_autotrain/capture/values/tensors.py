"""How tensors, modules and optimizers are pickled: with gradients, hooks and the memory they share."""

from __future__ import annotations

import operator
import sys
import warnings
from typing import Any

from jupyter_autotrain.capture.values.array_layout import ArrayLayout, ReducedValue
from jupyter_autotrain.capture.values.embedded import Embedded
from jupyter_autotrain.capture.values.memory import Region, Span, is_sparse, span

_TENSOR = Embedded("tensor")
_FINISH_TENSOR = Embedded("finish_tensor")
_STORAGE = Embedded("storage")
_TYPED_STORAGE = Embedded("typed_storage")
_FINISH_MODULE = Embedded("finish_module")
_FINISH_OPTIMIZER = Embedded("finish_optimizer")
_PROTOCOL = 5
_COMPUTING_HOOKS = ("torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm", "torch.nn.utils.prune")


class _Storage:
    """A piece of a region as a torch storage.

    Args:
        region: The region; None for no memory at all.
        low: The address at which the piece starts.
        size_bytes: How long it is.
        shared: Whether other processes shall see it.
    """

    def __init__(self, region: Region | None, low: int, size_bytes: int, *, shared: bool) -> None:
        if region is None:
            self._arguments: tuple[object, ...] = (b"", 0, 0, True, shared)
            return
        self._arguments = (region.buffer(), region.offset(low), size_bytes, _is_one_storage(region), shared)

    def __reduce__(self) -> tuple[object, ...]:
        return _STORAGE, self._arguments


def reduce_torch(value: Any, layout: ArrayLayout) -> ReducedValue:  # noqa: ANN401 - anything of torch
    """Pickle a tensor, a storage, a module or an optimizer; other values as pickle does it."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        return _tensor(value, layout, torch)
    if isinstance(value, torch.UntypedStorage):
        return _untyped(value, layout)
    if isinstance(value, torch.TypedStorage):
        return _TYPED_STORAGE, (value._untyped_storage, value.dtype)  # noqa: SLF001 - torch has no public name for it
    if isinstance(value, torch.nn.Module):
        return _module(value)
    if isinstance(value, torch.optim.Optimizer):
        return _optimizer(value, torch)
    return None


def _is_one_storage(region: Region) -> bool:
    """Whether nothing but one storage lies in a region, so that it can have memory that torch itself allocates."""
    return region.owner is None and all(_fits(one, region) for one in region.spans)


def _fits(one: Span, region: Region) -> bool:
    if hasattr(one.value, "nbytes") and hasattr(one.value, "resizable"):  # a storage
        return (one.low, one.high) == (region.low, region.high)
    return hasattr(one.value, "untyped_storage") and (one.start - region.low) % one.item_bytes == 0


# Tensors


def _tensor(value: Any, layout: ArrayLayout, torch: Any) -> ReducedValue:  # noqa: ANN401 - any tensor
    if not _is_plain(value, torch):
        return _by_torch(value)
    if not value.numel():
        return _made(value, _Storage(None, 0, 0, shared=False), 0, torch)
    one = _span(value)
    region = layout.shared(one, owns=False)
    source = value
    if region is None:
        source = value.detach().clone() if is_sparse(one) else value
        one = _span(source)
        region = layout.alone(one)
    # Memory that begins inside an element of another type is a storage of its own.
    low = one.start if (one.start - region.low) % one.item_bytes else region.low
    shared = value.is_shared()
    storage = layout.once((region.low, low), lambda: _Storage(region, low, region.high - low, shared=shared))
    return _made(value, storage, (one.start - low) // one.item_bytes, torch, source.stride())


def _is_plain(value: Any, torch: Any) -> bool:  # noqa: ANN401 - any tensor
    """Whether a tensor is nothing but its memory, its shape and its strides."""
    return (
        type(value) in {torch.Tensor, torch.nn.Parameter}
        and value.layout == torch.strided
        and value.device.type == "cpu"
        and not (value.is_quantized or value.is_nested or value.is_conj() or value.is_neg())
    )


def _span(value: Any) -> Span:  # noqa: ANN401 - any tensor
    item_bytes = value.element_size()
    strides = [stride * item_bytes for stride in value.stride()]
    return span(value.data_ptr(), tuple(value.shape), strides, item_bytes, value)


def _made(value: Any, storage: object, offset: int, torch: Any, strides: Any = None) -> ReducedValue:  # noqa: ANN401 - any tensor
    layout = (value.dtype, offset, tuple(value.shape), tuple(value.stride() if strides is None else strides))
    arguments = (storage, layout, value.requires_grad, type(value) is torch.nn.Parameter)
    state = _state(value)
    return (_TENSOR, arguments, state, None, None, _FINISH_TENSOR) if state else (_TENSOR, arguments)


def _by_torch(value: Any) -> ReducedValue:  # noqa: ANN401 - any tensor
    """A tensor that torch must pickle, with what it leaves out."""
    state = _state(value)
    if not state:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch leaves hooks out, which travel here
        make, arguments = value.__reduce_ex__(_PROTOCOL)[:2]
    return make, arguments, state, None, None, _FINISH_TENSOR


def _state(value: Any) -> tuple[object, ...] | None:  # noqa: ANN401 - any tensor
    """What a tensor has besides its memory; None when it has nothing."""
    attributes = dict(getattr(value, "__dict__", {}))
    hooks = value._backward_hooks  # noqa: SLF001 - there are no public names
    later_hooks = value._post_accumulate_grad_hooks  # noqa: SLF001 - as above
    gradient = value.grad
    if not (attributes or hooks or later_hooks) and gradient is None:
        return None
    return attributes, gradient, hooks or None, later_hooks or None, _next_handle()


def _untyped(value: Any, layout: ArrayLayout) -> ReducedValue:  # noqa: ANN401 - any storage
    if value.device.type != "cpu" or not value.nbytes():
        return None
    low = value.data_ptr()
    size_bytes = value.nbytes()
    one = span(low, (size_bytes,), (1,), 1, value)
    region = layout.shared(one, owns=False) or layout.alone(one)
    storage = _Storage(region, low, size_bytes, shared=value.is_shared())
    whole = (low, size_bytes) == (region.low, region.high - region.low)
    return operator.getitem, ((layout.once((region.low, low), lambda: storage) if whole else storage,), 0)


# Modules and optimizers


def _next_handle() -> int:
    """The number that the next hook gets."""
    return int(sys.modules["torch.utils.hooks"].RemovableHandle.next_id)


def _has_hooks(value: object) -> bool:
    return any("_hooks" in name and item for name, item in vars(value).items())


def _module(value: Any) -> ReducedValue:  # noqa: ANN401 - any module
    """A module; where it has hooks, later ones must not take their places."""
    if not _has_hooks(value):
        return None
    reduced = value.__reduce_ex__(_PROTOCOL)
    if len(reduced) < 3 or any(part is not None for part in reduced[3:]):
        return None
    make, arguments, state = reduced[:3]
    again = [name for name in _computed_by_hooks(value) if name in state]
    kept = {name: item for name, item in state.items() if name not in again}
    return make, arguments, (kept, _next_handle(), again), None, None, _FINISH_MODULE


def _computed_by_hooks(value: Any) -> list[str]:  # noqa: ANN401 - any module
    """Attributes that hooks of torch compute before each call: normalised or pruned weights."""
    hooks = [hook for hook in value._forward_pre_hooks.values() if type(hook).__module__.startswith(_COMPUTING_HOOKS)]  # noqa: SLF001 - torch has no public name for it
    return [getattr(hook, "_tensor_name", "") or getattr(hook, "name", "") for hook in hooks]


def _optimizer(value: Any, torch: Any) -> ReducedValue:  # noqa: ANN401 - any optimizer
    """An optimizer with all it has: its own way leaves out hooks and what its class adds."""
    kind = type(value)
    if kind.__getstate__ is not torch.optim.Optimizer.__getstate__:
        return None
    state = dict(vars(value))
    tracked = hasattr(state.get("step"), "_wrapped_by_lr_sched")
    if tracked:
        del state["step"]
    make, arguments = value.__reduce_ex__(_PROTOCOL)[:2]
    return make, arguments, (state, _next_handle(), tracked), None, None, _FINISH_OPTIMIZER

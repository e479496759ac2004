"""The pickling of tensors, modules and optimizers: with gradients and hooks, and with no more than their own memory."""

from __future__ import annotations

import ctypes
import sys
import warnings
from pickle import PickleBuffer
from typing import Any

from jupyter_autotrain.capture.values.arrays import ReducedValue
from jupyter_autotrain.capture.values.standins import rebuilding

_TENSOR = rebuilding("tensor")
_FINISH_TENSOR = rebuilding("finish_tensor")
_STORAGE = rebuilding("storage")
_TYPED_STORAGE = rebuilding("typed_storage")
_FINISH_MODULE = rebuilding("finish_module")
_FINISH_OPTIMIZER = rebuilding("finish_optimizer")
_PROTOCOL = 5
_COMPUTING_HOOKS = ("torch.nn.utils.weight_norm", "torch.nn.utils.spectral_norm", "torch.nn.utils.prune")


def reduce_torch(value: Any) -> ReducedValue:  # noqa: ANN401 - anything of torch
    """Pickle a tensor, a storage, a module or an optimizer; other values as pickle does it."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        return _tensor(value, torch) if is_plain(value, torch) else _by_torch(value)
    if isinstance(value, torch.UntypedStorage):
        content = _content(value.data_ptr(), value.nbytes())
        return (_STORAGE, (content, value.is_shared())) if is_plain(value, torch) else None
    if isinstance(value, torch.TypedStorage):
        return _TYPED_STORAGE, (value._untyped_storage, value.dtype)  # noqa: SLF001 - torch has no public name for it
    if isinstance(value, torch.nn.Module):
        return _module(value)
    if isinstance(value, torch.optim.Optimizer):
        return _optimizer(value, torch)
    return None


# Tensors


def is_plain(value: Any, torch: Any) -> bool:  # noqa: ANN401 - any tensor
    """Return whether a tensor is nothing but its memory, its shape and its strides; a storage is."""
    if isinstance(value, torch.UntypedStorage):
        return bool(value.device.type == "cpu" and value.nbytes())
    return (
        type(value) in {torch.Tensor, torch.nn.Parameter}
        and value.layout == torch.strided
        and value.device.type == "cpu"
        and not (value.is_quantized or value.is_nested or value.is_conj() or value.is_neg())
    )


def _tensor(value: Any, torch: Any) -> ReducedValue:  # noqa: ANN401 - any tensor
    reach = sum((length - 1) * stride for length, stride in zip(value.shape, value.stride(), strict=True))
    is_scattered = value.numel() != reach + 1  # in a larger piece of memory
    source = value.detach().clone() if is_scattered else value
    content = _content(source.data_ptr(), source.numel() * source.element_size())
    layout = (value.dtype, tuple(value.shape), tuple(source.stride()), value.is_shared())
    if is_scattered:
        content = PickleBuffer(bytearray(content))
    arguments = (content, layout, value.requires_grad, type(value) is torch.nn.Parameter)
    state = _state(value)
    return (_TENSOR, arguments, state, None, None, _FINISH_TENSOR) if state else (_TENSOR, arguments)


def _by_torch(value: Any) -> ReducedValue:  # noqa: ANN401 - any tensor
    """Pickle a tensor that torch must pickle, with what it leaves out."""
    state = _state(value)
    if not state:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch leaves hooks out, which travel here
        make, arguments = value.__reduce_ex__(_PROTOCOL)[:2]
    return make, arguments, state, None, None, _FINISH_TENSOR


def _state(value: Any) -> tuple[object, ...] | None:  # noqa: ANN401 - any tensor
    """Return the state of a tensor besides its memory; None when it has none."""
    attributes = dict(getattr(value, "__dict__", {}))
    hooks = value._backward_hooks  # noqa: SLF001 - there are no public names
    later_hooks = value._post_accumulate_grad_hooks  # noqa: SLF001 - as above
    gradient = value.grad
    if not (attributes or hooks or later_hooks) and gradient is None:
        return None
    return attributes, gradient, hooks or None, later_hooks or None, _next_handle()


def _content(start: int, size_bytes: int) -> PickleBuffer:
    """Return a piece of memory; torch's own way to it makes a storage one that cannot be resized."""
    return PickleBuffer(memoryview((ctypes.c_char * size_bytes).from_address(start)).cast("B"))


# Modules and optimizers


def _next_handle() -> int:
    """Return the number that the next hook gets."""
    return int(sys.modules["torch.utils.hooks"].RemovableHandle.next_id)


def _has_hooks(value: object) -> bool:
    return any("_hooks" in name and item for name, item in vars(value).items())


def _module(value: Any) -> ReducedValue:  # noqa: ANN401 - any module
    """Return the form of a module with hooks, such that later hooks do not take their places.

    It is None for a module without hooks.
    """
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
    """Return the attributes that hooks of torch compute before each call.

    They are normalised or pruned weights.
    """
    hooks = [hook for hook in value._forward_pre_hooks.values() if type(hook).__module__.startswith(_COMPUTING_HOOKS)]  # noqa: SLF001 - torch has no public name for it
    return [getattr(hook, "_tensor_name", "") or getattr(hook, "name", "") for hook in hooks]


def _optimizer(value: Any, torch: Any) -> ReducedValue:  # noqa: ANN401 - any optimizer
    """Return the form of an optimizer with all it has.

    Its own way leaves out hooks and the attributes that its class adds.
    """
    kind = type(value)
    if kind.__getstate__ is not torch.optim.Optimizer.__getstate__:
        return None
    state = dict(vars(value))
    tracked = hasattr(state.get("step"), "_wrapped_by_lr_sched")
    if tracked:
        del state["step"]
    make, arguments = value.__reduce_ex__(_PROTOCOL)[:2]
    return make, arguments, (state, _next_handle(), tracked), None, None, _FINISH_OPTIMIZER

"""The making of arrays, tensors and instances again, in a trial.

The text of this file travels inside the pickles that need it, so that it runs where nothing of jupyter_autotrain is
installed. Standard library only; NumPy, torch and pandas are there when a pickle holds something of theirs.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def finish_array(made: Any, state: tuple[Any, ...]) -> None:  # noqa: ANN401 - any array
    """Give an array its content, its attributes, and whether it can be written to."""
    content, attributes, writeable = state
    made.__setstate__(content)
    if attributes:
        made.__dict__.update(attributes)
    made.flags.writeable = writeable


def fill(made: Any, state: Any) -> None:  # noqa: ANN401 - any instance
    """Give an instance its attributes, without code of its class, which may ask for attributes that are not there yet.

    Its `__dict__` is the very one of the state: others may hold it too.
    """
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if attributes is not None and type(made).__dictoffset__:
        object.__setattr__(made, "__dict__", attributes)
    for name, value in (slots or {}).items():
        object.__setattr__(made, name, value)


def storage(content: Any, shared: bool) -> Any:  # noqa: ANN401 - any buffer
    """Return a torch storage with this content; `shared` gives it memory that other processes see."""
    torch: Any = import_module("torch")

    if not memoryview(content).nbytes:
        return torch.UntypedStorage(0)
    made = torch.frombuffer(content, dtype=torch.uint8).untyped_storage().clone()
    return made.share_memory_() if shared else made


def typed_storage(untyped: Any, dtype: Any) -> Any:  # noqa: ANN401 - any storage
    """Return a storage of one data type."""
    torch: Any = import_module("torch")

    return torch.storage.TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


def tensor(content: Any, layout: tuple[Any, ...], requires_grad: bool, is_parameter: bool) -> Any:  # noqa: ANN401 - any buffer
    """Return a tensor with this content."""
    torch: Any = import_module("torch")

    dtype, shape, strides, shared = layout
    made = torch.empty(0, dtype=dtype, device="cpu").set_(storage(content, shared), 0, shape, strides)
    if is_parameter:
        return torch.nn.Parameter(made, requires_grad)
    return made.requires_grad_(requires_grad)


def finish_tensor(made: Any, state: tuple[Any, ...]) -> None:  # noqa: ANN401 - any tensor
    """Give a tensor its gradient, its hooks and its attributes."""
    attributes, gradient, hooks, later_hooks, next_handle = state
    made.__dict__.update(attributes)
    if gradient is not None:
        made.grad = gradient
    if hooks:
        made._backward_hooks = hooks  # noqa: SLF001 - what register_hook sets
    if later_hooks:
        made._post_accumulate_grad_hooks = later_hooks  # noqa: SLF001 - what register_post_accumulate_grad_hook sets
    keep_handles(next_handle)


def keep_handles(next_handle: int) -> None:
    """Let hooks that are registered from now on not take the places of those that are there."""
    handles: Any = import_module("torch.utils.hooks")

    handles.RemovableHandle.next_id = max(handles.RemovableHandle.next_id, next_handle)


def finish_module(made: Any, state: tuple[Any, int, Any]) -> None:  # noqa: ANN401 - any module
    """Give a module its state, hooks among it, and what they compute before each call."""
    attributes, next_handle, again = state
    keep_handles(next_handle)
    made.__setstate__(attributes)
    for hook in made._forward_pre_hooks.values():  # noqa: SLF001 - torch has no public name for it
        name = getattr(hook, "_tensor_name", "") or getattr(hook, "name", "")
        if name in again:
            setattr(made, name, computed(hook, made))


def computed(hook: Any, module: Any) -> Any:  # noqa: ANN401 - any hook
    """Return the weight that a hook of torch computes, without the step that it takes in training."""
    if hasattr(hook, "apply_mask"):
        return hook.apply_mask(module)
    return hook.compute_weight(module, False) if hasattr(hook, "n_power_iterations") else hook.compute_weight(module)


def finish_optimizer(made: Any, state: tuple[Any, int, bool]) -> None:  # noqa: ANN401 - any optimizer
    """Give an optimizer its state; `tracked` when a scheduler watches whether its `step` is called."""
    attributes, next_handle, tracked = state
    keep_handles(next_handle)
    made.__setstate__(attributes)
    if not tracked:
        return
    plain = made.step.__func__

    def step(*arguments: object, **options: object) -> object:
        made._opt_called = True  # noqa: SLF001 - what a scheduler looks at
        return plain(made, *arguments, **options)

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]  # noqa: SLF001 - what a scheduler looks at
    made.step = step


def block(values: Any, place: tuple[Any, int], references: Any) -> Any:  # noqa: ANN401 - any values
    """Return a block of a table.

    It knows the blocks that refer to the same values, so that writing copies as before.
    """
    internals: Any = import_module("pandas._libs.internals")

    made = internals._unpickle_block(values, *place)  # noqa: SLF001 - pandas unpickles its blocks by it
    made.refs = references
    references.add_reference(made)
    return made

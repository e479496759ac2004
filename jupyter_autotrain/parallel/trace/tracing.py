"""`trace`: one training step on shapes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call
from torch.utils._pytree import tree_leaves, tree_map

from jupyter_autotrain.errors import TraceError
from jupyter_autotrain.parallel.apply.recompute import caching_configs
from jupyter_autotrain.parallel.graph.graph import OpGraph, TensorKind
from jupyter_autotrain.parallel.graph.prepare import fold
from jupyter_autotrain.parallel.trace.composite_ops import FunctionInterceptor, modules
from jupyter_autotrain.parallel.trace.convert import to_graph
from jupyter_autotrain.parallel.trace.internals import NOTE, Passed, shape_only, without_checkpointing
from jupyter_autotrain.parallel.trace.recorder import Recorder
from jupyter_autotrain.parallel.trace.traced_ops import explain
from jupyter_autotrain.parallel.trace.written_sizes import WrittenSizes

_ACTION = "Give a loss_fn that makes the loss from what the model returns."


def loss_of(out: Passed, loss_fn: Callable[[Passed], torch.Tensor] | None) -> torch.Tensor:
    """Return what `loss_fn` makes of an output.

    Without it the model's own `loss`, else the sum of its floating point outputs.

    Outputs may be tensors, mappings, sequences and dataclasses, in one another.

    Raises:
        TraceError: There is no tensor to make a loss of, or `loss_fn` makes something else than a number.
    """
    if loss_fn is not None:
        return _number(loss_fn(out))
    own = out.get("loss") if isinstance(out, Mapping) else getattr(out, "loss", None)
    if isinstance(own, torch.Tensor):
        return _sum(own)
    parts = [tensor for tensor in _tensors(out) if tensor.is_floating_point() or tensor.is_complex()]
    if not parts:
        raise _without_tensors(out)
    total = _sum(parts[0])
    for part in parts[1:]:
        total = total + _sum(part)
    return total


def _sum(tensor: torch.Tensor) -> torch.Tensor:
    real = tensor.abs() if tensor.is_complex() else tensor
    return real if real.dim() == 0 else real.sum()


def _tensors(out: Passed) -> Iterator[torch.Tensor]:
    if isinstance(out, torch.Tensor):
        yield out
        return
    for part in _parts(out) or ():
        yield from _tensors(part)


def _parts(out: Passed) -> Sequence[Passed] | None:
    """Return the parts of an output; None where they are unknown."""
    if isinstance(out, Mapping):
        return list(out.values())
    if isinstance(out, list | tuple | set | frozenset):
        return list(out)
    if is_dataclass(out) and not isinstance(out, type):
        return [getattr(out, field.name) for field in fields(out)]
    return None


def _number(loss: object) -> torch.Tensor:
    if isinstance(loss, torch.Tensor) and loss.dim() == 0:
        return loss
    there = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else f"a {type(loss).__name__}"
    raise TraceError(
        f"The loss_fn returns {there}.", "A tensor with one element and no dims.", "Let it return a mean or a sum."
    )


def _without_tensors(out: object) -> TraceError:
    name = type(out).__name__
    opaque = _parts(out) is None and not isinstance(out, torch.Tensor)
    if opaque:
        return TraceError(
            f"The model returns a {name}, in which no tensors can be found.",
            "A tensor, or a mapping, sequence or dataclass of tensors, with the loss under `loss` if there is one.",
            _ACTION,
        )
    return TraceError(
        f"The model returns {name} without a floating point tensor.",
        "A loss, or outputs that a loss can be made of.",
        _ACTION,
    )


def trace(
    model: torch.nn.Module,
    example_inputs: object,
    *,
    loss_fn: Callable[[Passed], torch.Tensor] | None = None,
    name: str = "",
) -> OpGraph:
    """Return the graph of one training step of a model, forward and backward, from shapes alone.

    Nothing is computed and nothing is allocated: parameters, buffers and inputs (real, fake or meta) are replaced by
    tensors that only have a shape. The model is traced in training mode and left as it was. FLOPs are those of torch's
    own counter (products, convolutions, attention; elementwise work counts as bytes only). Gradient checkpointing of
    the model itself is left out, and noted in `meta`: the plan decides what is recomputed.

    Args:
        model: The model; may live on the meta device.
        example_inputs: A tensor, a tuple of arguments, or a mapping of keyword arguments, of the batch to plan for.
        loss_fn: Makes the loss from what the model returns. Without it: the model's own `loss`, else the sum of the
            floating point outputs.
        name: Name of the graph; the model's class unless given.

    Raises:
        TraceError: The model fails on these inputs, or its course depends on values (the line is named).
    """
    args, kwargs = _arguments(example_inputs)
    past = [] if "use_cache" in kwargs else caching_configs(model)
    fakes = FakeTensorMode(allow_non_fake_inputs=True)
    recorder = Recorder(fakes)
    sizes = WrittenSizes(model)
    with _training(model), _without_past(past), _without_values(), without_checkpointing() as checkpoints, fakes:
        state = _shapes(recorder, model)
        args, kwargs = _inputs(recorder, args, kwargs)
        try:
            with recorder, FunctionInterceptor(recorder, sizes):
                loss = _forward(recorder, model, (state, args, kwargs), loss_fn)
                if loss.requires_grad:
                    with recorder.backward():
                        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        except TraceError:
            raise
        except Exception as fault:  # noqa: BLE001 - the user's model may raise anything
            raise explain(fault) from None
    recorder.finalize()
    graph = to_graph(
        name or type(model).__name__, recorder.seen, recorder.records, recorder.owners, recorder.place(loss)
    )
    notes = {"note": NOTE} if checkpoints.used else {}
    if past:
        notes["cache"] = "off"
    return fold(replace(graph, meta={"torch": torch.__version__, **notes, **graph.meta, **sizes.notes()}))


def _forward(
    recorder: Recorder,
    model: torch.nn.Module,
    call: tuple[Passed, Passed, Passed],
    loss_fn: Callable[[Passed], torch.Tensor] | None,
) -> torch.Tensor:
    state, args, kwargs = call
    with torch.autograd.graph.saved_tensors_hooks(recorder.mark_saved, lambda kept: kept), modules(recorder, model):
        out = functional_call(model, state, args, kwargs)
        return loss_of(out, loss_fn)


def _arguments(given: object) -> tuple[tuple[Passed, ...], dict[str, Passed]]:
    """Positional and keyword arguments."""
    if isinstance(given, Mapping):
        return (), {str(key): value for key, value in given.items()}
    return (tuple(given) if isinstance(given, Sequence) else (given,)), {}


def _shapes(recorder: Recorder, model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Shape-only parameters and buffers by name; what is shared stays shared."""
    fakes: dict[int, torch.Tensor] = {}
    state = {}
    for key, tensor in (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)):
        if id(tensor) not in fakes:
            fake = shape_only(tensor)
            kind = TensorKind.BUFFER
            if isinstance(tensor, torch.nn.Parameter):
                fake, kind = torch.nn.Parameter(fake, requires_grad=tensor.requires_grad), TensorKind.PARAMETER
            fakes[id(tensor)] = fake
            recorder.register_input(fake, key, kind)
        state[key] = fakes[id(tensor)]
    return state


def _inputs(
    recorder: Recorder, args: tuple[Passed, ...], kwargs: dict[str, Passed]
) -> tuple[tuple[Passed, ...], dict[str, Passed]]:
    names = iter(range(len(tree_leaves((args, kwargs)))))

    def fake(leaf: object) -> object:
        number = next(names)
        if not isinstance(leaf, torch.Tensor):
            return leaf
        made = shape_only(leaf).requires_grad_(leaf.requires_grad and leaf.is_floating_point())
        recorder.register_input(made, f"input_{number}", TensorKind.INPUT)
        recorder.values.record_constant(made, leaf)
        return made

    args = tree_map(fake, args)
    return args, {key: _rename(recorder, tree_map(fake, value), key) for key, value in kwargs.items()}


def _rename(recorder: Recorder, value: Passed, key: str) -> Passed:
    """Name a keyword argument that is one tensor by its keyword."""
    if isinstance(value, torch.Tensor):
        place = recorder.place(value)
        recorder.seen[place] = replace(recorder.seen[place], name=key)
    return value


@contextmanager
def _training(model: torch.nn.Module) -> Iterator[None]:
    """All modules in training mode, afterwards each as it was."""
    before = {module: module.training for module in model.modules()}
    model.train()
    try:
        yield
    finally:
        for module, mode in before.items():
            module.training = mode


@contextmanager
def _without_past(configs: Sequence[Passed]) -> Iterator[None]:
    """Keep modules with these configurations from keeping past keys, which no training step needs."""
    for config in configs:
        config.use_cache = False
    try:
        yield
    finally:
        for config in configs:
            config.use_cache = True


@contextmanager
def _without_values() -> Iterator[None]:
    """Keep distributions from validating parameters, and torch 2.10 from warning of addresses: a trace has neither."""
    before = torch.distributions.Distribution._validate_args  # noqa: SLF001 - there is a setter, but no getter
    torch.distributions.Distribution.set_default_validate_args(False)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor", UserWarning)
            yield
    finally:
        torch.distributions.Distribution.set_default_validate_args(before)

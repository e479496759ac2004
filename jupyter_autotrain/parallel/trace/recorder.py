"""Records a training step on shapes: which op ran where, what it costs, what it keeps, what its backward does.

Two modes work together. The function mode sees whole calls (`linear`, `matmul`, attention) and module calls (a norm
written out, experts); whatever is dispatched inside belongs to that one op. The dispatch mode sees every single op. An
op of the backward pass belongs to the forward op whose autograd node has the same sequence number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from jupyter_autotrain.parallel.graph.graph import TensorKind
from jupyter_autotrain.parallel.trace import formulas
from jupyter_autotrain.parallel.trace.internals import (
    Passed,
    is_mutable,
    named_arguments,
    newest_node,
    running_node,
    shape_only,
    storage_of,
    tensors_in,
)
from jupyter_autotrain.parallel.trace.traced_ops import SeenTensor, TracedOp, here
from jupyter_autotrain.parallel.trace.values import IntegerValues

STRIDED = frozenset(("as_strided", "as_strided_copy"))
"""Ops that address memory: the strides of their inputs matter."""


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves the base untyped
    """Records ops on fake tensors.

    Attributes:
        seen: Every tensor version, in order of appearance.
        records: Every op of the forward pass, in order.
        owners: Storage → the seen tensor that holds it now.
        path: Names of the modules being called, outermost first.
    """

    def __init__(self, fakes: FakeTensorMode) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # the same
        self.seen: list[SeenTensor] = []
        self.records: list[TracedOp] = []
        self.owners: dict[int, int] = {}
        self.path: list[str] = []
        self.values = IntegerValues(fakes)
        self._places: dict[int, int] = {}
        self._alive: list[object] = []
        self._nodes: dict[int, TracedOp] = {}
        self._kept: dict[int, dict[int, int]] = {}
        self._tensors: dict[int, torch.Tensor] = {}
        self._sharing: dict[int, list[torch.Tensor]] = {}
        self._constants: dict[int, torch.Tensor] = {}
        self._region: TracedOp | None = None
        self._inside: set[int] = set()
        self._backward = False

    @property
    def current(self) -> TracedOp | None:
        """The op made of several that is being recorded."""
        return self._region

    def register_input(self, tensor: torch.Tensor, name: str, kind: TensorKind) -> int:
        """Give a tensor its place among the seen ones."""
        shape = tuple(tensor.shape)
        dtype = str(tensor.dtype).removeprefix("torch.")
        self.seen.append(SeenTensor(name, shape, dtype, kind, tensor.requires_grad))
        self._places[id(tensor)] = place = len(self.seen) - 1
        self._sharing.setdefault(storage_of(tensor), []).append(tensor)
        self._tensors[place] = tensor  # an id is unique only while its tensor lives
        if kind is not TensorKind.ACTIVATION or storage_of(tensor) not in self.owners:
            self.owners[storage_of(tensor)] = place
        return place

    def place(self, tensor: torch.Tensor) -> int:
        """Place of a tensor; an unseen one is a constant of the model."""
        found = self._places.get(id(tensor))
        return self.register_input(tensor, "constant", TensorKind.BUFFER) if found is None else found

    @contextmanager
    def composite_op(
        self, kind: str, inputs: Sequence[torch.Tensor], **args: object
    ) -> Iterator[tuple[TracedOp | None, list[Passed]]]:
        """One op made of all that is dispatched inside; yields its record and a list to put its outputs in.

        Inside another region it is part of that one, and the record is None.
        """
        results: list[Passed] = []
        if self._region is not None or self._backward:
            yield None, results
            return
        record = self._new(kind, args)
        record.inputs = list(map(self.place, inputs))
        first = len(self.seen)
        self._region = record
        self._inside = set()
        try:
            yield record, results
        finally:
            self._region = None
        for tensor in tensors_in(results):
            record.outputs.append(self.place_output(tensor))
            if self.owners[storage_of(tensor)] >= first:
                self.owners[storage_of(tensor)] = record.outputs[-1]
        before = sorted(filter(first.__gt__, self._inside.difference(record.inputs)))
        record.inputs += [p for p in before if self.seen[p].kind is not TensorKind.BUFFER]
        self.records.append(record)

    @contextmanager
    def backward(self) -> Iterator[None]:
        """Record what is dispatched inside as part of the backward pass."""
        self._backward = True
        try:
            yield
        finally:
            self._backward = False

    def mark_saved(self, tensor: torch.Tensor) -> torch.Tensor:
        """Record, as a hook of autograd, that the newest node keeps a tensor for the backward pass."""
        self._kept.setdefault(newest_node(), {})[storage_of(tensor)] = tensor.untyped_storage().nbytes()
        self._alive.append(tensor)
        return tensor

    def finalize(self) -> None:
        """Assign what autograd nodes keep to the ops that made the nodes."""
        for node, kept in self._kept.items():
            if node in self._nodes:
                self._nodes[node].saved.update(kept)

    def __torch_dispatch__(
        self,
        func: Passed,
        types: Passed,
        args: Passed = (),
        kwargs: Passed = None,
    ) -> Passed:
        """Run the op on shapes and record it."""
        kwargs = kwargs or {}
        if func is torch.ops.prim.device.default:
            return func(*args, **kwargs)
        args, kwargs = tree_map(self._faked, (args, kwargs))
        inputs = tensors_in((args, kwargs))
        places = [] if self._backward else list(map(self.place, inputs))
        out = self._run(func, args, kwargs)
        outputs = tensors_in(out)
        record = self._record(func, args, kwargs, places, outputs)
        if record is not None:
            cost = formulas.flops(func, args, kwargs, out), formulas.moved_bytes(func, inputs, outputs)
            record.cost(*cost, backward=self._backward)
        return out

    def _run(self, func: Passed, args: Passed, kwargs: Passed) -> Passed:
        try:
            out = func(*args, **kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException):
            out = self.values.resolve(func, args, kwargs)
            if out is None:
                raise
            return out
        if not self._backward:
            self.values.follow(func, args, kwargs, out)
        return out

    def _record(
        self,
        func: Passed,
        args: Passed,
        kwargs: Passed,
        places: list[int],
        outputs: list[torch.Tensor],
    ) -> TracedOp | None:
        """Return the record that the op belongs to, new when it is a forward op outside any region."""
        if self._backward:
            node = running_node()
            return None if node is None else self._nodes.get(node)
        record = self._region or self._new(formulas.kind_of(func))
        self._nodes.setdefault(newest_node(), record)
        if record is self._region:
            self._inside.update(places)
            record.inner.extend(map(self.place_output, outputs))
            return record
        record.args = named_arguments(func, args, kwargs)
        if record.kind in STRIDED:
            record.args = {**record.args, "input_stride": list(args[0].stride())}
        record.pointwise = torch.Tag.pointwise in func.tags
        record.inputs = [] if record.kind in formulas.FACTORIES else places
        record.outputs = list(map(self.place_output, outputs))
        self.records.append(record)
        if is_mutable(func) and outputs:
            self._write_through(args[0], places[0], record)
        return record

    def place_output(self, tensor: torch.Tensor) -> int:
        """Place of an op's result: always a new one, also for a tensor changed in place."""
        known = storage_of(tensor) in self.owners
        before = self._places.get(id(tensor))
        place = self.register_input(tensor, "", TensorKind.ACTIVATION)
        if known and before is not None and self.owners[storage_of(tensor)] == before:
            self.owners[storage_of(tensor)] = place
        return place

    def _write_through(self, tensor: torch.Tensor, before: int, record: TracedOp) -> None:
        """Record that a change through a view also changes what it is a view of."""
        owner = self.owners[storage_of(tensor)]
        base = self._tensors.get(owner)
        if base is None or base is tensor or owner in (before, record.outputs[0]):
            return
        strides = {"input_stride": list(base.stride()), "stride": list(tensor.stride())}
        patch = self._new("slice_scatter", strides)
        patch.inputs = [owner, record.outputs[0]]
        patch.outputs = [self.place_output(base)]
        for alias in self._sharing[storage_of(base)]:
            if alias.shape == base.shape:
                self._places[id(alias)] = patch.outputs[0]
        self.records.append(patch)

    def _new(self, kind: str, args: Mapping[str, object] | None = None) -> TracedOp:
        return TracedOp(kind, ".".join([*filter(None, self.path[-1:]), kind]), here(), args=args or {})

    def _faked(self, leaf: object) -> object:
        """Return a tensor that the model holds outside its parameters and buffers, as a fake one."""
        if not isinstance(leaf, torch.Tensor) or isinstance(leaf, FakeTensor):
            return leaf
        fake = self._constants.get(id(leaf))
        if fake is None:
            fake = self._constants[id(leaf)] = shape_only(leaf)
            self._alive.append(leaf)
            self.values.record_constant(fake, leaf)
        return fake

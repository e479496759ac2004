"""From records to an `OpGraph`: what the loss does not need goes, what depends on no input becomes a constant."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from jupyter_autotrain.parallel.graph.batch_dims import CONSTANT, COUNTING
from jupyter_autotrain.parallel.graph.builder import Builder, Costs
from jupyter_autotrain.parallel.graph.graph import DTYPE_BYTES, PARTS, OpGraph, TensorKind
from jupyter_autotrain.parallel.graph.rules import Call
from jupyter_autotrain.parallel.trace.fused_parts import note_parts
from jupyter_autotrain.parallel.trace.traced_ops import SeenTensor, TracedOp

KEEPING = frozenset(("view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "_to_copy", "clone", "alias", "detach"))
"""Ops after which counted elements still count."""

KEPT = (TensorKind.INPUT, TensorKind.ACTIVATION)
"""Kinds of tensors that count as kept for the backward pass; parameters are there anyway."""


NOWHERE = -1
Tables: TypeAlias = tuple[Sequence[SeenTensor], Mapping[int, int], Mapping[int, int], set[int]]
"""Seen tensors; place → id in the graph; storage → place; storages already counted."""


def to_graph(
    name: str, seen: Sequence[SeenTensor], records: Sequence[TracedOp], owners: Mapping[int, int], loss: int
) -> OpGraph:
    """Return the graph of all ops that lead from an input or a parameter to the loss.

    Args:
        name: Name of the graph.
        seen: Tensors that records name by position.
        records: Ops in the order they ran.
        owners: Storage → position of the tensor that holds it.
        loss: Position of the loss.
    """
    changing = _changing(seen, records)
    alive = _needed([record for record in records if not changing.isdisjoint(record.inputs)], loss)
    fused = note_parts(seen, alive)
    owners = {storage: place for storage, place in owners.items() if place in changing}
    read = {loss}.union(*(record.inputs for record in alive))
    made = read.intersection(chain.from_iterable(record.outputs for record in alive))
    constants = dict.fromkeys(read - made, CONSTANT) | dict.fromkeys(_counting(records) - made, COUNTING)
    builder = Builder(name)
    counted: set[int] = set()  # storages
    ids: dict[int, int] = {}
    for record in alive:
        outputs = list(filter(made.__contains__, record.outputs))
        for place in (*record.inputs, *outputs):
            if place not in ids:
                ids[place] = _tensor(builder, seen[place], constants.get(place, ""))
        _add(builder, record, outputs, (seen, ids, owners, counted))
    return builder.graph(**({PARTS: json.dumps(fused)} if fused else {}))


def _changing(seen: Sequence[SeenTensor], records: Sequence[TracedOp]) -> set[int]:
    """Tensors that depend on an input or a parameter; the others are constants."""
    changing = {place for place, tensor in enumerate(seen) if tensor.kind in (TensorKind.INPUT, TensorKind.PARAMETER)}
    for record in records:
        if not changing.isdisjoint(record.inputs):
            changing.update(record.outputs)
            changing.update(record.inner)
    return changing


def _needed(records: Sequence[TracedOp], loss: int) -> list[TracedOp]:
    """Ops whose result reaches the loss."""
    wanted = {loss}
    kept = []
    for record in reversed(records):
        if not wanted.isdisjoint(record.outputs):
            wanted.update(record.inputs)
            kept.append(record)
    return kept[::-1]


def _counting(records: Sequence[TracedOp]) -> set[int]:
    """Constants that count from 0 up, in whatever shape."""
    found: set[int] = set()
    for record in records:
        from_zero = record.kind == "arange" and record.args.get("start", 0) == 0 and record.args.get("step", 1) == 1
        if from_zero or (record.kind in KEEPING and found.issuperset(record.inputs) and record.inputs):
            found.update(record.outputs)
    return found


def _tensor(builder: Builder, tensor: SeenTensor, constant: str) -> int:
    """Add a tensor; `constant` names one that no op makes."""
    kind = tensor.kind
    if kind is TensorKind.ACTIVATION and constant:
        kind = TensorKind.BUFFER
    dtype = tensor.dtype if tensor.dtype in DTYPE_BYTES else "float32"
    return builder.tensor(tensor.name or constant, tensor.shape, kind, dtype, trainable=tensor.trainable)


def _add(builder: Builder, record: TracedOp, outputs: Sequence[int], tables: Tables) -> None:
    seen, ids, _, _ = tables
    call = Call(
        record.kind,
        tuple(seen[place].shape for place in record.inputs),
        tuple(seen[place].shape for place in outputs),
        record.args,
        record.pointwise,
    )
    saved, extra = _saved(builder, record, tables)
    costs = Costs(
        record.flops_forward,
        record.flops_backward,
        record.bytes_forward,
        record.bytes_backward,
        saved,
        extra,
        record.unfused_extra_bytes,
    )
    inputs = [ids[place] for place in record.inputs]
    builder.add(record.name, call, inputs, [ids[place] for place in outputs], costs, record.source)


def _saved(builder: Builder, record: TracedOp, tables: Tables) -> tuple[tuple[int, ...], int]:
    """Return saved tensors of the graph, and the bytes of those saved that are not in it, each storage once."""
    seen, ids, owners, counted = tables
    tensors = []
    extra = 0
    for storage, size in record.saved.items():
        place = owners.get(storage, NOWHERE)
        if place in ids:
            if builder.tensors[ids[place]].kind in KEPT:
                tensors.append(ids[place])
        elif place != NOWHERE and storage not in counted and seen[place].kind in KEPT:
            counted.add(storage)
            extra += size
    return tuple(tensors), extra

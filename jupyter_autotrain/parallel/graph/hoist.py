"""Takes out of the first layer what all layers read: T5 computes its position bias there, once for all layers.

An op that needs nothing but weights, inputs and constants can run at any earlier time. When ops of other numbered
modules read it, it moves before the first op of its own, which then has the form of the layers behind it (see `fold`).
Linear in the graph.
"""

from __future__ import annotations

from dataclasses import replace

from jupyter_autotrain.parallel.graph.graph import Op, OpGraph, TensorKind


def hoisted(graph: OpGraph) -> OpGraph:
    """The same ops, shared ones before the layer that makes them; blocks are to be found again when any moved."""
    shared = [op for op in graph.ops if _is_free(graph, op) and _is_shared(graph, op)]
    if not shared:
        return graph
    starts: dict[str, int] = {}
    for op in graph.ops:
        starts.setdefault(_layer(op), op.id)
    places = {op.id: starts[_layer(op)] for op in shared}
    order = sorted(graph.ops, key=lambda op: (places.get(op.id, op.id), op.id not in places, op.id))
    return replace(graph, ops=tuple(replace(op, id=i) for i, op in enumerate(order)), repeated_blocks=())


def _is_free(graph: OpGraph, op: Op) -> bool:
    return all(graph.tensors[x.tensor].kind is not TensorKind.ACTIVATION for x in op.inputs)


def _is_shared(graph: OpGraph, op: Op) -> bool:
    """Whether it belongs to a numbered module, and ops of another one read it."""
    own = _layer(op)
    readers = {reader for out in op.outputs for reader in graph.consumers.get(out.tensor, ())}
    return bool(own) and any(_layer(graph.ops[reader]) not in {own, ""} for reader in readers)


def _layer(op: Op) -> str:
    """Path of the outermost numbered module around an op; "" when there is none."""
    parts = op.name.split(".")
    return next((".".join(parts[: place + 1]) for place, part in enumerate(parts) if part.isdigit()), "")

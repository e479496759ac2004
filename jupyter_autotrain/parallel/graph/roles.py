"""The meaning of each loop (batch, sequence, head, ...), propagated from the inputs.

The batch is what the graph says it is where it may be cut (see `batch`); all else is for names and colours only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jupyter_autotrain.parallel.graph.batch import batch_in
from jupyter_autotrain.parallel.graph.batch_dims import BatchDims
from jupyter_autotrain.parallel.graph.graph import Family, Loop, LoopRole, Op, Operand, OpGraph, Tensor, TensorKind

CUTTING = frozenset(("slice", "cat", "split", "constant_pad_nd", "flip", "roll"))
FLOATING = ("float", "bfloat", "complex")


def with_roles(graph: OpGraph) -> OpGraph:
    """Give every loop its role: the rule's, else that of the first operand dim along it whose role is known.

    Linear in the size of the graph.
    """
    batch, why = batch_in(graph)
    given = [t for t in graph.tensors if t.kind in (TensorKind.INPUT, TensorKind.PARAMETER)]
    known = {t.id: _cut_along(input_roles(t), t, batch) for t in given}
    ops = []
    for op in graph.ops:
        cut = batch.loops.get(op.id, frozenset()) if batch else None
        loops = [_named(loop, _checked(i, _role(i, loop, op.inputs, known), cut)) for i, loop in enumerate(op.loops)]
        for out in op.outputs:
            known[out.tensor] = roles_along(loops, out)
            _inherit(op, out, known)
        if batch and op.id in batch.inner:
            loops.append(Loop("samples", batch.samples, LoopRole.BATCH, shardable=False))
        ops.append(_with_loops(op, tuple(loops)))
    return replace(graph, ops=tuple(ops), unsplittable_reason=why)


def roles_along(loops: Sequence[Loop], operand: Operand) -> tuple[LoopRole, ...]:
    """Return for each dim of an operand the role of the loop that it runs along."""
    return tuple(LoopRole.OTHER if loop is None else loops[loop].role for loop in operand.loops)


def _cut_along(roles: tuple[LoopRole, ...], tensor: Tensor, batch: BatchDims | None) -> tuple[LoopRole, ...]:
    """Return the roles of an input with the batch where it is cut, and a sequence where the batch was assumed."""
    if batch is None:
        return roles
    other = LoopRole.SEQUENCE if len(roles) > 1 else LoopRole.OTHER
    cut = batch.dims(tensor.id)
    kept = [other if role is LoopRole.BATCH else role for role in roles]
    return tuple(LoopRole.BATCH if dim in cut else role for dim, role in enumerate(kept))


def _checked(index: int, role: LoopRole, cut: frozenset[int] | None) -> LoopRole:
    """Return the role of a loop that runs along the batch: the batch is what is cut, where something is."""
    if cut is None:
        return role
    if index in cut:
        return LoopRole.BATCH
    return LoopRole.OTHER if role is LoopRole.BATCH else role


def input_roles(tensor: Tensor) -> tuple[LoopRole, ...]:
    """Roles by form: ids (batch, sequence); features (batch, feature) or (batch, sequence, feature); pictures."""
    rank = len(tensor.shape)
    if tensor.kind is TensorKind.PARAMETER:
        return (LoopRole.FEATURE,) * rank
    if not tensor.dtype.startswith(FLOATING):
        return ((LoopRole.BATCH, LoopRole.SEQUENCE) + (LoopRole.OTHER,) * rank)[:rank]
    if rank > 3:
        return (LoopRole.BATCH, LoopRole.FEATURE) + (LoopRole.SPATIAL,) * (rank - 2)
    return {
        0: (),
        1: (LoopRole.BATCH,),
        2: (LoopRole.BATCH, LoopRole.FEATURE),
        3: (LoopRole.BATCH, LoopRole.SEQUENCE, LoopRole.FEATURE),
    }[rank]


def _role(index: int, loop: Loop, operands: tuple[Operand, ...], known: dict[int, tuple[LoopRole, ...]]) -> LoopRole:
    if loop.role is not LoopRole.OTHER:
        return loop.role
    found = LoopRole.OTHER
    for operand in operands:
        along = zip(operand.loops, known.get(operand.tensor, ()), strict=False)
        for role in [role for place, role in along if place == index and role is not LoopRole.OTHER]:
            if role is not LoopRole.FEATURE:
                return role
            found = LoopRole.FEATURE
    return found


def _inherit(op: Op, out: Operand, known: dict[int, tuple[LoopRole, ...]]) -> None:
    """Keep the role of a dim that a move of elements keeps whole, when the rank stays."""
    before = known.get(op.inputs[0].tensor, ()) if op.inputs and op.family is Family.RESHAPE else ()
    if len(before) == len(out.loops) and op.kind in CUTTING:
        pairs = zip(known[out.tensor], before, strict=True)
        known[out.tensor] = tuple(was if now is LoopRole.OTHER else now for now, was in pairs)


def _named(loop: Loop, role: LoopRole) -> Loop:
    return loop if loop.role is role else replace(loop, role=role)


def _with_loops(op: Op, loops: tuple[Loop, ...]) -> Op:
    return op if loops == op.loops else replace(op, loops=loops)

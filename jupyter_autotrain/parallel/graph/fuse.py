"""Merges ops that only follow others, so that a search decides about a dozen ops per block instead of eighty.

A follower (view, elementwise, dropout) joins a leader's nest when the leader loses no loop it could split: upwards into
the op that made its latest input, or downwards into the only op that reads it. An op whose outputs may be Partial takes
upwards only followers that are linear in it (a sum of views is the view of the sum; a GELU of summands is not the GELU
of their sum). Costs add up, so the fused op costs what its members cost when they follow it.

One pass down and one up over the ops in topological order; time linear in the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

from jupyter_autotrain.parallel.graph.fusion_group import FusionGroup, NotFusible, can_lead, unify
from jupyter_autotrain.parallel.graph.graph import Family, FusedMember, Op, Operand, OpGraph, TensorKind

FOLLOWERS = frozenset((Family.ELEMENTWISE, Family.RESHAPE, Family.DROPOUT))
LINEAR = frozenset(("neg", "_to_copy", "clone", "copy", "contiguous", "detach", "alias", "lift_fresh_copy"))
JOINT = frozenset(("add", "sub", "cat", "stack"))
"""Linear when all their tensors come from the leader."""


def fuse(graph: OpGraph) -> OpGraph:
    """The graph of leaders. `Op.members` names the original ops of each and maps their loops.

    Tensors keep their ids; a tensor inside a fused op that is saved for the backward pass stays one of its outputs.
    Repeated blocks are to be found again afterwards (`fold`).
    """
    groups = _join_upwards(graph)
    _join_downwards(graph, groups)
    kept = _kept_tensors(graph)
    order = sorted({id(g): g for g in groups}.values(), key=lambda g: g.position)
    ops = tuple(_emit(graph, group, i, kept, groups) for i, group in enumerate(order))
    return replace(graph, ops=ops, repeated_blocks=())


def _join_upwards(graph: OpGraph) -> list[FusionGroup]:
    """Each op joins the group of its latest producer, or starts one."""
    groups: list[FusionGroup] = []
    for op in graph.ops:
        own = FusionGroup.of(op)
        latest = max((groups[p] for p in _producers(graph, op)), key=lambda g: g.position, default=None)
        if latest is not None and op.family in FOLLOWERS and latest.family is not Family.UNKNOWN:
            own = _joined_up(latest, own, op) or own
        groups.append(own)
    return groups


def _joined_up(leader: FusionGroup, own: FusionGroup, op: Op) -> FusionGroup | None:
    shared = [o.tensor for o in op.inputs if o.tensor in leader.made]
    if leader.sums(shared) and not _is_linear(op, leader.made.keys()):
        return None
    try:
        mapping = unify(leader, own, shared)
    except NotFusible:
        return None
    on_shared = {position for o in op.inputs if o.tensor in leader.made for position in o.loops}
    if any(loop.shardable and i not in mapping and i not in on_shared for i, loop in enumerate(op.loops)):
        return None
    leader.absorb(own, mapping)
    return leader


def _join_downwards(graph: OpGraph, groups: list[FusionGroup]) -> None:
    """Each group of followers joins the only group that reads it."""
    followers = {id(g): g for g in groups if not can_lead(g, FOLLOWERS)}
    for group in sorted(followers.values(), key=lambda g: -g.position):
        readers = {id(groups[c]): groups[c] for t in group.made for c in graph.consumers.get(t, ())}
        readers.pop(id(group), None)
        if len(readers) == 1 and not group.sums(group.ends(graph)):
            _join_down(group, next(iter(readers.values())), groups)


def _join_down(group: FusionGroup, reader: FusionGroup, groups: list[FusionGroup]) -> None:
    if reader.family in (Family.NORM, Family.UNKNOWN, Family.LOSS, Family.REDUCTION):
        return
    try:
        mapping = unify(reader, group, [t for t in group.made if t in reader.read])
    except NotFusible:
        return
    if not mapping and any(loop.shardable for loop in group.loops):
        return
    reader.absorb(group, mapping)
    for op in group.ops:
        groups[op.id] = reader


def _is_linear(op: Op, inside: Iterable[int]) -> bool:
    """Whether the op is linear in its inputs from inside, taken together."""
    made = set(inside)
    ours = [o.tensor in made for o in op.inputs]
    if op.family is Family.RESHAPE and op.kind not in JOINT:
        return ours[0] and sum(ours) == 1
    if op.kind in JOINT:
        return all(ours) and (op.kind in ("cat", "stack") or len(ours) == 2)
    if op.kind == "mul":
        return sum(ours) == 1
    if op.kind == "div":
        return ours[0] and sum(ours) == 1
    return op.kind in LINEAR


def _producers(graph: OpGraph, op: Op) -> list[int]:
    return [graph.producers[o.tensor] for o in op.inputs if o.tensor in graph.producers]


def _kept_tensors(graph: OpGraph) -> set[int]:
    """Tensors saved for the backward pass."""
    return set(chain.from_iterable(op.saved for op in graph.ops))


def _emit(graph: OpGraph, group: FusionGroup, number: int, kept: set[int], groups: Sequence[FusionGroup]) -> Op:
    """The fused op of a group."""
    ops = sorted(group.ops, key=lambda op: op.id)
    lead = group.leader
    reads = dict.fromkeys(
        (o.tensor, group.loop_indices(op, o)) for op in ops for o in op.inputs if o.tensor not in group.made
    )
    writes = [(t, loop_indices) for t, loop_indices in group.made.items() if _leaves(graph, t, group, kept, groups)]
    return replace(
        lead,
        id=number,
        loops=tuple(group.loops),
        inputs=tuple(Operand(t, loop_indices) for t, loop_indices in reads),
        outputs=tuple(Operand(t, loop_indices) for t, loop_indices in writes),
        flops_forward=sum(op.flops_forward for op in ops),
        flops_backward=sum(op.flops_backward for op in ops),
        bytes_forward=sum(op.bytes_forward for op in ops),
        bytes_backward=sum(op.bytes_backward for op in ops),
        saved=tuple(dict.fromkeys(t for op in ops for t in op.saved)),
        saved_extra_bytes=sum(op.saved_extra_bytes for op in ops),
        unfused_extra_bytes=sum(op.unfused_extra_bytes for op in ops),
        members=tuple(FusedMember(op.name, group.loop_maps[op.id]) for op in ops) if len(ops) > 1 else (),
    )


def _leaves(graph: OpGraph, tensor: int, group: FusionGroup, kept: set[int], groups: Sequence[FusionGroup]) -> bool:
    """Whether a tensor is needed outside its group: read there, saved, or a result of the model."""
    readers = graph.consumers.get(tensor, ())
    stored = tensor in kept and graph.tensors[tensor].kind is TensorKind.ACTIVATION
    return stored or not readers or any(groups[r] is not group for r in readers)

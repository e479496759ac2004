"""Merges ops that only follow others, so that a search decides about a dozen ops per block instead of eighty.

A follower (view, elementwise, dropout) joins a leader's nest when the leader loses no loop it could split: upwards into
the op that made its latest input, or downwards into the only op that reads it. An op whose outputs may be Partial takes
upwards only followers that are linear in it (a sum of views is the view of the sum; a GELU of summands is not the GELU
of their sum). Costs add up, so the fused op costs what its members cost when they follow it.

One pass down and one up over the ops in topological order; time linear in the graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import gcd
from operator import attrgetter
from typing import Any

from jupyter_autotrain.parallel.graph.graph import (
    JOINS,
    LINEAR,
    SUMS,
    Family,
    FusedMember,
    Loop,
    Op,
    Operand,
    OpGraph,
    TensorKind,
)

LoopIndices = tuple[int | None, ...]


class NotFusible(Exception):  # noqa: N818 - not an error: the answer "these do not fuse"
    """A follower would cost its leader a loop."""


@dataclass(slots=True)
class FusionGroup:
    """A leader and its followers.

    Attributes:
        position: Where it stands in the topological order of the groups.
        leader: The op that gives the group its name and family.
        loops: The common nest.
        ops: The members.
        loop_maps: Member op id → for each of its loops the group's loop, or None.
        made: Tensors made inside → loops of their dims.
        read: Tensors read (also those made inside) → loops of their dims, by the last reader.
    """

    position: int
    leader: Op
    loops: list[Loop]
    ops: list[Op]
    loop_maps: dict[int, LoopIndices]
    made: dict[int, LoopIndices]
    read: dict[int, LoopIndices]

    @classmethod
    def of(cls, op: Op) -> FusionGroup:
        """Return a group of one."""
        made = {o.tensor: o.loops for o in op.outputs}
        read = {o.tensor: o.loops for o in op.inputs}
        return cls(op.id, op, list(op.loops), [op], {op.id: tuple(range(len(op.loops)))}, made, read)

    @property
    def family(self) -> Family:
        """The leader's family."""
        return self.leader.family

    def sums(self, tensors: Sequence[int]) -> bool:
        """Tell whether a loop that may be split is missing from a tensor made here, which may then be Partial."""
        splittable = _splittable(self.loops)
        return any(splittable - set(self.made[t]) for t in tensors)

    def ends(self, graph: OpGraph) -> list[int]:
        """Tensors made here that someone outside reads."""
        return [t for t in self.made if not self.loop_maps.keys() >= set(graph.consumers.get(t, ()))]

    def reads(self, op: Op) -> Iterator[Operand]:
        """Yield what a member reads of tensors made outside, along the group's loops."""
        onto = self.loop_maps[op.id]
        outside = (operand for operand in op.inputs if operand.tensor not in self.made)
        yield from (Operand(operand.tensor, _mapped(operand.loops, onto)) for operand in outside)

    def absorb(self, other: FusionGroup, mapping: Mapping[int, int]) -> None:
        """Take the members of another group, its loops mapped onto these; unmapped loops stay whole."""
        for theirs, ours in mapping.items():
            size = gcd(self.loops[ours].size, other.loops[theirs].size)
            if size != self.loops[ours].size:
                self.loops[ours] = replace(self.loops[ours], size=size)
        onto = list(map(mapping.get, range(len(other.loops))))
        self.ops.extend(other.ops)
        tables = ((self.loop_maps, other.loop_maps), (self.made, other.made), (self.read, other.read))
        for ours_by_id, theirs_by_id in tables:
            ours_by_id.update((key, _mapped(loop_indices, onto)) for key, loop_indices in theirs_by_id.items())


def unify(leader: FusionGroup, follower: FusionGroup, shared: Sequence[int]) -> dict[int, int]:
    """Follower loop → leader loop, by the dims of the tensors between them.

    Raises:
        NotFusible: A loop that the leader could split has no counterpart, or two.
    """
    mapping: dict[int, int] = {}
    for a, b in _pairs(leader, follower, shared):
        if b is None or not _matches(leader.loops[a], follower.loops[b]) or mapping.setdefault(b, a) != a:
            raise NotFusible
    if len(set(mapping.values())) != len(mapping):
        raise NotFusible
    return mapping


def _pairs(leader: FusionGroup, follower: FusionGroup, shared: Sequence[int]) -> Iterator[tuple[int, int | None]]:
    """Yield each loop that the leader could split, and the follower's along the same dim of a tensor."""
    splittable = _splittable(leader.loops)
    for tensor in shared:
        if tensor in leader.made:
            ours = leader.made[tensor]
            theirs = follower.read[tensor]
        else:
            ours = leader.read[tensor]
            theirs = follower.made[tensor]
        for a, b in zip(ours, theirs, strict=True):
            if a is not None and a in splittable:
                yield a, b


def _splittable(loops: Sequence[Loop]) -> set[int]:
    return {number for number, loop in enumerate(loops) if loop.shardable}


def _matches(a: Loop, b: Loop) -> bool:
    return b.shardable and gcd(a.size, b.size) > 1


def _mapped(loop_indices: LoopIndices, onto: Sequence[int | None]) -> LoopIndices:
    return tuple(None if position is None else onto[position] for position in loop_indices)


FOLLOWERS = frozenset((Family.ELEMENTWISE, Family.RESHAPE, Family.DROPOUT))


_COSTS = (
    "flops_forward",
    "flops_backward",
    "bytes_forward",
    "bytes_backward",
    "saved_extra_bytes",
    "unfused_extra_bytes",
)


def fuse(graph: OpGraph) -> OpGraph:
    """Return the graph of leaders. `Op.members` names the original ops of each and maps their loops.

    Tensors keep their ids; a tensor inside a fused op that is saved for the backward pass stays one of its outputs.
    Repeated blocks are to be found again afterwards (`fold`).
    """
    groups = _join_upwards(graph)
    _join_downwards(graph, groups)
    kept = _kept_tensors(graph)
    order = sorted({id(g): g for g in groups}.values(), key=attrgetter("position"))
    ops = tuple(_emit(graph, group, i, kept, groups) for i, group in enumerate(order))
    return replace(graph, ops=ops, repeated_blocks=())


def _join_upwards(graph: OpGraph) -> list[FusionGroup]:
    """Each op joins the group of its latest producer, or starts one."""
    groups: list[FusionGroup] = []
    for op in graph.ops:
        own = FusionGroup.of(op)
        makers = [groups[p] for p in _producers(graph, op)]
        latest = max(makers, key=attrgetter("position"), default=None)
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
    along_shared = chain.from_iterable(o.loops for o in op.inputs if o.tensor in leader.made)
    if _splittable(op.loops) - mapping.keys() - set(along_shared):
        return None
    leader.absorb(own, mapping)
    return leader


def _join_downwards(graph: OpGraph, groups: list[FusionGroup]) -> None:
    """Each group of followers joins the only group that reads it."""
    followers = {id(g): g for g in groups if g.family in FOLLOWERS}
    for group in sorted(followers.values(), key=attrgetter("position"), reverse=True):
        reading = chain.from_iterable(graph.consumers.get(t, ()) for t in group.made)
        readers = {id(groups[op]): groups[op] for op in reading}
        readers.pop(id(group), None)
        if len(readers) == 1 and not group.sums(group.ends(graph)):
            _join_down(group, next(iter(readers.values())), groups)


def _join_down(group: FusionGroup, reader: FusionGroup, groups: list[FusionGroup]) -> None:
    if reader.family in (Family.NORM, Family.UNKNOWN, Family.LOSS, Family.REDUCTION):
        return
    try:
        mapping = unify(reader, group, list(filter(reader.read.__contains__, group.made)))
    except NotFusible:
        return
    if not mapping and _splittable(group.loops):
        return
    reader.absorb(group, mapping)
    for op in group.ops:
        groups[op.id] = reader


def _is_linear(op: Op, inside: Iterable[int]) -> bool:
    """Return whether the op is linear in its inputs from inside, taken together."""
    made = set(inside)
    ours = [o.tensor in made for o in op.inputs]
    if op.kind in SUMS | JOINS:
        return all(ours) and (op.kind in JOINS or len(ours) == 2)
    if op.kind == "mul":
        return sum(ours) == 1
    if op.kind == "div" or op.family is Family.RESHAPE:
        return ours[0] and sum(ours) == 1
    return op.kind in LINEAR


def _producers(graph: OpGraph, op: Op) -> list[int]:
    return [graph.producers[o.tensor] for o in op.inputs if o.tensor in graph.producers]


def _kept_tensors(graph: OpGraph) -> set[int]:
    """Tensors saved for the backward pass."""
    return set(chain.from_iterable(op.saved for op in graph.ops))


def _emit(graph: OpGraph, group: FusionGroup, number: int, kept: set[int], groups: Sequence[FusionGroup]) -> Op:
    """Return the fused op of a group."""
    ops = sorted(group.ops, key=attrgetter("id"))
    reads = dict.fromkeys(chain.from_iterable(map(group.reads, ops)))
    leaving = [tensor for tensor in group.made if _leaves(graph, tensor, group, kept, groups)]
    members = [FusedMember(op.name, group.loop_maps[op.id]) for op in ops]
    return replace(
        group.leader,
        id=number,
        loops=tuple(group.loops),
        inputs=tuple(reads),
        outputs=tuple(Operand(tensor, group.made[tensor]) for tensor in leaving),
        saved=tuple(dict.fromkeys(chain.from_iterable(op.saved for op in ops))),
        members=tuple(members) if len(members) > 1 else (),
        **_summed_costs(ops),
    )


def _summed_costs(ops: Sequence[Op]) -> dict[str, Any]:
    """Return what ops cost together, by the names of `Op`; in their order, since floats are added."""
    return {name: sum(map(attrgetter(name), ops)) for name in _COSTS}


def _leaves(graph: OpGraph, tensor: int, group: FusionGroup, kept: set[int], groups: Sequence[FusionGroup]) -> bool:
    """Return whether a tensor is needed outside its group: read there, saved, or a result of the model."""
    readers = graph.consumers.get(tensor, ())
    stored = tensor in kept and graph.tensors[tensor].kind is TensorKind.ACTIVATION
    return stored or not readers or any(groups[r] is not group for r in readers)

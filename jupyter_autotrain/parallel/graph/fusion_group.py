"""A growing fused op: its nest, its members, and how a follower's loops map onto it."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from jupyter_autotrain.parallel.graph.graph import Family, Loop, Op, Operand, OpGraph

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
        """A group of one."""
        made = {o.tensor: o.loops for o in op.outputs}
        read = {o.tensor: o.loops for o in op.inputs}
        return cls(op.id, op, list(op.loops), [op], {op.id: tuple(range(len(op.loops)))}, made, read)

    @property
    def family(self) -> Family:
        """The leader's family."""
        return self.leader.family

    def sums(self, tensors: Sequence[int]) -> bool:
        """Whether some loop that may be split is missing from one of these tensors made here (they may be Partial)."""
        splittable = {i for i, loop in enumerate(self.loops) if loop.shardable}
        return any(splittable - set(self.made[t]) for t in tensors)

    def ends(self, graph: OpGraph) -> list[int]:
        """Tensors made here that someone outside reads."""
        inside = {op.id for op in self.ops}
        return [t for t in self.made if not inside.issuperset(graph.consumers.get(t, ()))]

    def loop_indices(self, op: Op, operand: Operand) -> LoopIndices:
        """The group's loops along the dims of a member's operand."""
        return _mapped(operand.loops, self.loop_maps[op.id])

    def absorb(self, other: FusionGroup, mapping: Mapping[int, int]) -> None:
        """Take the members of another group, its loops mapped onto these; unmapped loops stay whole."""
        for theirs, ours in mapping.items():
            size = gcd(self.loops[ours].size, other.loops[theirs].size)
            if size != self.loops[ours].size:
                self.loops[ours] = replace(self.loops[ours], size=size)
        onto = [mapping.get(i) for i in range(len(other.loops))]
        self.ops.extend(other.ops)
        self.loop_maps.update((op, _mapped(loop_indices, onto)) for op, loop_indices in other.loop_maps.items())
        self.made.update((t, _mapped(loop_indices, onto)) for t, loop_indices in other.made.items())
        self.read.update((t, _mapped(loop_indices, onto)) for t, loop_indices in other.read.items())


def unify(leader: FusionGroup, follower: FusionGroup, shared: Sequence[int]) -> dict[int, int]:
    """Follower loop → leader loop, by the dims of the tensors between them.

    Raises:
        NotFusible: A loop that the leader could split has no counterpart, or two.
    """
    mapping: dict[int, int] = {}
    for tensor in shared:
        ours = leader.made.get(tensor) or leader.read.get(tensor) or ()
        theirs = follower.read.get(tensor) if tensor in leader.made else follower.made.get(tensor)
        for a, b in zip(ours, theirs or (), strict=True):
            if a is None or not leader.loops[a].shardable:
                continue
            if b is None or not _matches(leader.loops[a], follower.loops[b]) or mapping.setdefault(b, a) != a:
                raise NotFusible
    if len(set(mapping.values())) != len(mapping):
        raise NotFusible
    return mapping


def can_lead(group: FusionGroup, followers: Container[Family]) -> bool:
    """Whether the group holds an op that does not merely follow."""
    return group.family not in followers


def _matches(a: Loop, b: Loop) -> bool:
    return b.shardable and gcd(a.size, b.size) > 1


def _mapped(loop_indices: LoopIndices, onto: Sequence[int | None]) -> LoopIndices:
    return tuple(None if position is None else onto[position] for position in loop_indices)

"""Alpha-beta times of collectives on one mesh axis; the least of ring, tree, halving and hierarchical.

With n bytes of the full tensor, p devices, alpha seconds per step and B bytes/s per device and direction:

* all-gather, reduce-scatter: ring (p-1) alpha + (p-1)/p n/B; behind a switch, where all pairs can communicate,
  recursive doubling and halving log2(p) alpha + (p-1)/p n/B
* all-reduce: a reduce-scatter and an all-gather; or a pipelined tree 2 log2(p) alpha + 2 n/B
* all-to-all of n_local bytes per device: (p-1) alpha + (p-1)/p n_local/B, times the mean number of hops where
  there is no switch; over several levels the longest of them, each with what leaves the groups below: (p-q)/p for
  groups of q devices
* hierarchical: the inner part works on n, each outer part on what an inner group leaves to one device

Source: Thakur, Rabenseifner, Gropp 2005 (ring, recursive halving), Sanders et al. 2009 (pipelined trees); the
hierarchical form is the usual composition over levels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jupyter_autotrain.core.cluster import ClusterSpec, LinkGroup, MeshSpec
from jupyter_autotrain.core.devices import LinkKind
from jupyter_autotrain.parallel.arrays import Floats


@dataclass(frozen=True, slots=True)
class AlphaBeta:
    """Seconds = `start_s` + `s_per_byte` * bytes: one algorithm of a collective."""

    start_s: float
    s_per_byte: float


@dataclass(frozen=True, slots=True)
class Axis:
    """One mesh axis with the levels it runs on, innermost first, and its algorithms per collective.

    `gather` serves all-gather and reduce-scatter, `reduce` all-reduce, both by bytes of the full tensor; `all_to_all`
    serves all-to-all, by bytes held per device.
    """

    name: str
    size: int
    link_groups: tuple[LinkGroup, ...]
    gather: tuple[AlphaBeta, ...]
    reduce: tuple[AlphaBeta, ...]
    all_to_all: tuple[AlphaBeta, ...]


def axis_of(name: str, size: int, link_groups: tuple[LinkGroup, ...]) -> Axis:
    """Work out the algorithms of an axis."""
    if size == 1:
        free = (AlphaBeta(0.0, 0.0),)
        return Axis(name, size, link_groups, free, free, free)
    start_s = max(s.link.latency_s for s in link_groups)
    slowest = max(1 / bandwidth(s) for s in link_groups)
    share = (size - 1) / size
    gather = [AlphaBeta(sum(map(_steps, link_groups)) * start_s, share * slowest)]
    if len(link_groups) > 1:
        gather.append(_by_levels(link_groups))
    tree = AlphaBeta(2 * math.log2(size) * start_s, 2 * slowest)
    rings = [AlphaBeta(2 * line.start_s, 2 * line.s_per_byte) for line in gather]
    all_to_all = AlphaBeta((size - 1) * start_s, max(_leaving(size, link_groups)))
    return Axis(name, size, link_groups, tuple(gather), (*rings, tree), (all_to_all,))


def _leaving(size: int, link_groups: tuple[LinkGroup, ...]) -> Iterator[float]:
    """Yield what each level takes of an all-to-all [s per byte held]: it carries what leaves the groups below it."""
    inner = 1
    for group in link_groups:
        yield (size - inner) / size * _hops(group) / bandwidth(group)
        inner *= group.size


def _steps(group: LinkGroup) -> float:
    """Consecutive messages of a gather: log2 where all pairs can communicate, else around the ring."""
    anywhere = group.link.kind in {LinkKind.SWITCH, LinkKind.FULL}
    return math.log2(group.size) if anywhere else group.size - 1


def _by_levels(link_groups: tuple[LinkGroup, ...]) -> AlphaBeta:
    """Each level in turn: the innermost on all bytes, the next on what one inner group leaves to a device."""
    start_s = 0.0
    s_per_byte = 0.0
    inner = 1
    for group in link_groups:
        steps = group.size - 1
        start_s += _steps(group) * group.link.latency_s
        s_per_byte += steps / group.size / inner / bandwidth(group)
        inner *= group.size
    return AlphaBeta(start_s, s_per_byte)


def axes_of(mesh: MeshSpec, cluster: ClusterSpec) -> tuple[Axis, ...]:
    """Return the mesh's axes on the cluster's levels."""
    return tuple(
        axis_of(name, size, cluster.link_groups(mesh.stride(index), size))
        for index, (name, size) in enumerate(zip(mesh.axes, mesh.shape, strict=True))
    )


def bandwidth(group: LinkGroup) -> float:
    """Bytes/s per device and direction that a group of `group.size` gets when all groups work at once.

    A part of a ring is a line, which leaves one direction idle; a part of a mesh or torus uses one of its dimensions;
    in a full graph only the links between members count.
    """
    link = group.link
    usable = link.bytes_per_s * link.efficiency / link.shared_by
    part = group.size < group.whole
    if link.kind is LinkKind.RING:
        return usable / 2 if part else usable
    if link.kind in {LinkKind.MESH, LinkKind.TORUS}:
        return usable / link.dims if part else usable
    if link.kind is LinkKind.FULL and group.whole > 1:
        return usable * (group.size - 1) / (group.whole - 1)
    return usable


def _hops(group: LinkGroup) -> float:
    """Mean number of links that a message of an all-to-all crosses."""
    kind = group.link.kind
    dims = group.link.dims
    side = math.pow(group.size, 1 / dims)
    if kind in {LinkKind.RING, LinkKind.TORUS}:
        return max(1.0, dims * side / 4)
    return max(1.0, dims * side / 3) if kind is LinkKind.MESH else 1.0


def _least(alternatives: tuple[AlphaBeta, ...], n_bytes: Floats | float, share: Floats | float = 1.0) -> Floats:
    first, *others = alternatives
    best = np.asarray(first.start_s * share + first.s_per_byte * n_bytes)
    for line in others:
        best = np.minimum(best, line.start_s * share + line.s_per_byte * n_bytes)
    return best


def amortised_s(alternatives: tuple[AlphaBeta, ...], n_bytes: Floats, bucket_bytes: float) -> Floats:
    """Return a collective on bucketed tensors: a small one pays its share of the latency of a bucket; seconds."""
    return _least(alternatives, n_bytes, np.minimum(1.0, n_bytes / bucket_bytes))


def gather_s(axis: Axis, n_bytes: Floats | float) -> Floats:
    """All-gather or reduce-scatter of a tensor of `n_bytes` in full; seconds."""
    return _least(axis.gather, n_bytes)


def all_reduce_s(axis: Axis, n_bytes: Floats | float) -> Floats:
    """All-reduce of a tensor of `n_bytes`; seconds."""
    return _least(axis.reduce, n_bytes)


def all_to_all_s(axis: Axis, local_bytes: Floats | float) -> Floats:
    """All-to-all where each device holds `local_bytes` and keeps 1/p of them; seconds."""
    return _least(axis.all_to_all, local_bytes)


def send_s(link_groups: tuple[LinkGroup, ...], n_bytes: float) -> float:
    """One message between neighbours on the outermost of `link_groups`; seconds."""
    if not link_groups:
        return 0.0
    return link_groups[-1].link.latency_s + n_bytes / bandwidth(link_groups[-1])

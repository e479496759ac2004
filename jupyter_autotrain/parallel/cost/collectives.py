"""Alpha-beta times of collectives on one mesh axis; the least of ring, tree and hierarchical, as libraries choose.

With n bytes of the full tensor, p devices, alpha seconds per step and B bytes/s per device and direction:

* all-gather, reduce-scatter, ring: (p-1) alpha + (p-1)/p n/B
* all-reduce: ring 2(p-1) alpha + 2(p-1)/p n/B; pipelined tree 2 log2(p) alpha + 2 n/B
* all-to-all of n_local bytes per device: (p-1) alpha + (p-1)/p n_local/B, times the mean number of hops where
  there is no switch
* hierarchical: the inner part works on n, each outer part on what an inner group leaves to one device

Source: Thakur, Rabenseifner, Gropp 2005 (ring, recursive halving), Sanders et al. 2009 (pipelined trees); the
hierarchical form is the usual composition over levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from jupyter_autotrain.core.cluster import ClusterSpec, MeshSpec, Segment
from jupyter_autotrain.core.devices import LinkKind

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Axis:
    """One mesh axis with the levels it runs on, innermost first."""

    name: str
    size: int
    segments: tuple[Segment, ...]


def axes_of(mesh: MeshSpec, cluster: ClusterSpec) -> tuple[Axis, ...]:
    """The mesh's axes on the cluster's levels."""
    spans = (cluster.segments(mesh.stride(index), size) for index, size in enumerate(mesh.shape))
    return tuple(Axis(name, size, segments) for name, size, segments in zip(mesh.axes, mesh.shape, spans, strict=True))


def bandwidth(segment: Segment) -> float:
    """Bytes/s per device and direction that a group of `segment.size` gets when all groups work at once.

    A part of a ring is a line, which leaves one direction idle; a part of a mesh or torus uses one of its dimensions;
    in a full graph only the links between members count.
    """
    link = segment.link
    usable = link.bytes_per_s * link.efficiency / link.shared_by
    part = segment.size < segment.whole
    if link.kind is LinkKind.RING:
        return usable / 2 if part else usable
    if link.kind in {LinkKind.MESH, LinkKind.TORUS}:
        return usable / link.dims if part else usable
    if link.kind is LinkKind.FULL and segment.whole > 1:
        return usable * (segment.size - 1) / (segment.whole - 1)
    return usable


def _hops(segment: Segment) -> float:
    """Mean number of links that a message of an all-to-all crosses."""
    kind, dims = segment.link.kind, segment.link.dims
    side = math.pow(segment.size, 1 / dims)
    if kind in {LinkKind.RING, LinkKind.TORUS}:
        return max(1.0, dims * side / 4)
    return max(1.0, dims * side / 3) if kind is LinkKind.MESH else 1.0


def _flat(axis: Axis) -> tuple[float, float]:
    """Latency and seconds per byte when the whole axis is one ring: its slowest level decides."""
    return max(s.link.latency_s for s in axis.segments), 1 / min(bandwidth(s) for s in axis.segments)


def gather_s(axis: Axis, n_bytes: Floats | float) -> Floats:
    """All-gather or reduce-scatter of a tensor of `n_bytes` in full; seconds."""
    n = np.asarray(n_bytes, dtype=np.float64)
    if axis.size == 1:
        return np.zeros_like(n)
    alpha, beta = _flat(axis)
    flat = (axis.size - 1) * alpha + (axis.size - 1) / axis.size * n * beta
    return np.minimum(flat, _gather_by_levels(axis, n)) if len(axis.segments) > 1 else flat


def _gather_by_levels(axis: Axis, n: Floats) -> Floats:
    total, inner = np.zeros_like(n), 1
    for segment in axis.segments:
        steps = segment.size - 1
        total = total + steps * segment.link.latency_s + steps / segment.size * (n / inner) / bandwidth(segment)
        inner *= segment.size
    return total


def all_reduce_s(axis: Axis, n_bytes: Floats | float) -> Floats:
    """All-reduce of a tensor of `n_bytes`; seconds."""
    n = np.asarray(n_bytes, dtype=np.float64)
    if axis.size == 1:
        return np.zeros_like(n)
    alpha, beta = _flat(axis)
    tree = 2 * math.log2(axis.size) * alpha + 2 * n * beta
    return np.minimum(2 * gather_s(axis, n), tree)


def all_to_all_s(axis: Axis, local_bytes: Floats | float) -> Floats:
    """All-to-all where each device holds `local_bytes` and keeps 1/p of them; seconds."""
    n = np.asarray(local_bytes, dtype=np.float64)
    if axis.size == 1:
        return np.zeros_like(n)
    alpha = max(s.link.latency_s for s in axis.segments)
    beta = max(_hops(s) / bandwidth(s) for s in axis.segments)
    return (axis.size - 1) * alpha + (axis.size - 1) / axis.size * n * beta


def gather_over_axes_s(axes: tuple[Axis, ...], n_bytes: Floats | float) -> Floats:
    """All-gather or reduce-scatter over several axes at once: inner axes on all bytes, outer ones on the rest."""
    n = np.asarray(n_bytes, dtype=np.float64)
    total = np.zeros_like(n)
    for axis in reversed(axes):
        total = total + gather_s(axis, n)
        n = n / axis.size
    return total


def all_reduce_over_axes_s(axes: tuple[Axis, ...], n_bytes: Floats | float) -> Floats:
    """All-reduce over several axes: one after the other, or scatter and gather by levels; the least."""
    one_by_one = reduce(np.add, (all_reduce_s(axis, n_bytes) for axis in axes))
    return np.minimum(one_by_one, 2 * gather_over_axes_s(axes, n_bytes))


def send_s(segments: tuple[Segment, ...], n_bytes: float) -> float:
    """One message between neighbours on the outermost of `segments`; seconds."""
    if not segments:
        return 0.0
    return segments[-1].link.latency_s + n_bytes / bandwidth(segments[-1])

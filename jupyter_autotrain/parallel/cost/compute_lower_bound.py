"""The least time of a step, before any table is made: every op at its maximal degree of sharding, no communication.

Variables: none; the bound holds for every strategy of every op.
Objective: a lower bound on the seconds of one microbatch, and of a step on some of the devices.
Constraints: an op splits into at most the product of its loops' sizes; blocks are whole.
Recurrence: with n parts, rates r and w of the fastest device, each pass takes at least

    max(flops/(n r) + min(flops/(n r), ramp), bytes/(n w)) + launch

    which none of the roofline's times is below (see `roofline`).
Complexity: linear in the graph once, then in the passes for each n.
Source: the roofline (Williams et al. 2009).
Oracle: tests/oracle/test_search_stopped.py::test_the_compute_lower_bound_is_below_every_plan
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import gcd, inf, prod

import numpy as np

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.arrays import Floats
from jupyter_autotrain.parallel.cost.roofline import Efficiency
from jupyter_autotrain.parallel.graph.graph import OpGraph


@dataclass(frozen=True, slots=True, eq=False)
class ComputeLowerBound:
    """Per pass (forward and backward of each op), on the fastest device of a cluster.

    Attributes:
        product_s: Its products at the full rate, on one device.
        ramp_s: What filling and draining the device adds at most.
        stream_s: Its bytes through one device's memory.
        launch_s: What starting its kernels takes, however finely it is split.
    """

    product_s: Floats
    ramp_s: Floats
    stream_s: Floats
    launch_s: float

    def micro_s(self, parts: int) -> float:
        """Seconds of everything cut into `parts`; none of the roofline's times is less (see `cost.roofline`)."""
        product = self.product_s / parts
        busy = np.maximum(product + np.minimum(product, self.ramp_s), self.stream_s / parts)
        return float(busy.sum()) + self.launch_s


def compute_lower_bound(graph: OpGraph, cluster: ClusterSpec, efficiency: Efficiency) -> ComputeLowerBound:
    """Linear in the graph."""
    flops, moved, kernels = np.array(list(_passes(graph)), dtype=np.float64).reshape(-1, 3).T
    devices = [device for device, _ in cluster.kinds]
    rate = max(device.fastest_flops_per_s for device in devices) * efficiency.matrix
    stream = max(device.memory_bytes_per_s for device in devices) * efficiency.memory
    launches = float(kernels[(flops > 0) | (moved > 0)].sum())
    return ComputeLowerBound(
        flops / rate, kernels * efficiency.ramp_flops / rate, moved / stream, launches * efficiency.launch_s
    )


def _passes(graph: OpGraph) -> Iterator[tuple[float, float, int]]:
    """FLOPs, bytes and kernels of each pass."""
    for op in graph.ops:
        yield op.flops_forward, op.bytes_forward, 1
        yield op.flops_backward, op.bytes_backward, 2


@dataclass(frozen=True, slots=True)
class DeviceCountBound:
    """Degrees to which work can be split: a bound for each number of devices before anything is searched.

    Attributes:
        seconds: Of everything on one device of the fastest kind, by the product of the sizes of the loops that may be
            split: a mesh splits an op into at most the common divisor of that and its own size.
        block_seconds: Of the repeated blocks among it.
        blocks: Their number.
        device: The fastest rates.
    """

    seconds: Mapping[int, float]
    block_seconds: Mapping[int, float]
    blocks: int
    device: Device

    def least_s(self, cluster: ClusterSpec, stages: Iterable[int], microbatches: int, chunks: int) -> float:
        """No plan on a cluster takes less, in any of some numbers of stages.

        Args:
            cluster: Some of the devices.
            stages: Numbers of pipeline stages that divide its devices.
            microbatches: Most of them.
            chunks: Most chunks of layers per device.
        """
        return min((self._staged_s(cluster, p, 1 + (p - 1) / (chunks * microbatches)) for p in stages), default=inf)

    def _staged_s(self, cluster: ClusterSpec, stages: int, stretch: float) -> float:
        size = cluster.devices // stages
        devices = self._equivalent_devices(cluster)
        even = stretch * _split_s(self.seconds, size) / devices
        if stages == 1 or not self.blocks or len(cluster.kinds) > 1:
            return even
        fullest = -(-self.blocks // stages) * stages / self.blocks
        return max(even, fullest * _split_s(self.block_seconds, size) / devices)

    def _equivalent_devices(self, cluster: ClusterSpec) -> float:
        """Return how many of the fastest devices a cluster's devices amount to."""
        fast = self.device
        rates = [
            count * max(d.matrix_flops_per_s / fast.matrix_flops_per_s, d.memory_bytes_per_s / fast.memory_bytes_per_s)
            for d, count in cluster.kinds
        ]
        return sum(rates)


def _split_s(seconds: Mapping[int, float], size: int) -> float:
    """Seconds of work on a mesh, times its devices."""
    return sum(alone_s * size / gcd(size, splits) for splits, alone_s in seconds.items())


def device_count_bound(
    graph: OpGraph, cluster: ClusterSpec, efficiency: Efficiency, blocks: range, count: int
) -> DeviceCountBound:
    """Linear in the graph.

    Args:
        graph: The model.
        cluster: All devices.
        efficiency: Of kernels.
        blocks: Ops of the repeated blocks; empty where there are none.
        count: Number of these blocks.
    """
    kinds = [device for device, _ in cluster.kinds]
    fast = replace(
        kinds[0],
        matrix_flops_per_s=max(device.fastest_flops_per_s for device in kinds),
        memory_bytes_per_s=max(device.memory_bytes_per_s for device in kinds),
    )
    rate = fast.matrix_flops_per_s * efficiency.matrix
    stream = fast.memory_bytes_per_s * efficiency.memory
    everything: dict[int, float] = defaultdict(float)
    repeated: dict[int, float] = defaultdict(float)
    for op in graph.ops:
        splits = prod(loop.size for loop in op.loops if loop.shardable)
        passes = ((op.flops_forward, op.bytes_forward), (op.flops_backward, op.bytes_backward))
        alone_s = sum(max(flops / rate, moved / stream) for flops, moved in passes)
        everything[splits] += alone_s
        if op.id in blocks:
            repeated[splits] += alone_s
    return DeviceCountBound(everything, repeated, count, fast)

"""The least that a step can take, before any table is made: every op in its finest slices, nothing ever sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.parallel.cost.collectives import Floats
from jupyter_autotrain.parallel.cost.roofline import Efficiency
from jupyter_autotrain.parallel.graph.graph import OpGraph


@dataclass(frozen=True, slots=True)
class Floor:
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


def floor_of(graph: OpGraph, cluster: ClusterSpec, efficiency: Efficiency) -> Floor:
    """Gather the figures; linear in the graph."""
    flops, moved, kernels = np.array(list(_passes(graph)), dtype=np.float64).reshape(-1, 3).T
    devices = [device for device, _ in cluster.kinds]
    rate = max(device.matrix_flops_per_s for device in devices) * efficiency.matrix
    stream = max(device.memory_bytes_per_s for device in devices) * efficiency.memory
    launches = float(kernels[(flops > 0) | (moved > 0)].sum())
    return Floor(flops / rate, kernels * efficiency.ramp_flops / rate, moved / stream, launches * efficiency.launch_s)


def _passes(graph: OpGraph) -> Iterator[tuple[float, float, int]]:
    """FLOPs, bytes and kernels of each pass."""
    for op in graph.ops:
        yield op.flops_forward, op.bytes_forward, 1
        yield op.flops_backward, op.bytes_backward, 2

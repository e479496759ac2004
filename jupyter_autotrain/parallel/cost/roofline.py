"""How long a device computes: the roofline with efficiencies that fall for small work."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.cost.collectives import Floats


@dataclass(frozen=True, slots=True)
class Efficiency:
    """What share of the data sheet a kernel reaches.

    Time = max(flops / (peak * matrix) + ramp, bytes / (bandwidth * memory)) + launch.

    Attributes:
        matrix: Share of the matrix peak for large products [1]. Public GEMM measurements on A100 and H100 in
            16 bits give 0.75 to 0.85 at the sizes of transformer layers (power limits and tile edges take the rest).
        ramp_flops: Work [FLOP] at peak rate that filling and draining the device costs per kernel; makes small local
            matrices inefficient: half of `matrix` at this size. 3 GFLOP is 10 us of an A100.
        memory: Share of the memory bandwidth for streams [1]; 0.85 to 0.92 in STREAM-like tests on A100.
        launch_s: Time between dependent kernels [s]; 4 us when the queue is kept full.
    """

    matrix: float = 0.78
    ramp_flops: float = 3e9
    memory: float = 0.87
    launch_s: float = 4e-6


@dataclass(frozen=True, slots=True)
class Roofline:
    """A device with its efficiencies."""

    device: Device
    efficiency: Efficiency = field(default_factory=Efficiency)

    def seconds(self, flops: Floats, moved_bytes: Floats, *, half: bool) -> Floats:
        """Time of one kernel on local shapes; 0 where there is no work.

        Args:
            flops: Local floating point operations (a multiply-add counts twice).
            moved_bytes: Local bytes read and written.
            half: Whether the inputs have 16 bits or fewer.
        """
        peak = self.device.matrix_flops_per_s if half else self.device.matrix32_flops_per_s
        rate = peak * self.efficiency.matrix
        matrix = np.where(flops > 0, (flops + np.minimum(flops, self.efficiency.ramp_flops)) / rate, 0.0)
        work = np.maximum(matrix, self.stream_s(moved_bytes))
        return np.where(work > 0, work + self.efficiency.launch_s, 0.0)

    def stream_s(self, moved_bytes: Floats) -> Floats:
        """Time to move bytes through the device's memory."""
        return np.asarray(moved_bytes / (self.device.memory_bytes_per_s * self.efficiency.memory))

"""Time that a device computes: the roofline with efficiencies that fall for small work."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.arrays import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Shares of the data sheet that a kernel reaches.

    Time = max((flops (1 + idle) + ramp) / (peak * matrix), bytes / (bandwidth * memory)) + launch.

    Attributes:
        matrix: Share of the matrix peak for large products [1]. The data sheet's peak holds at the boost clock; under
            sustained matrix work the power limit leaves about 0.87 of it (A100: 1.2 to 1.25 of 1.41 GHz), and loading
            and storing tiles about 0.91 of that: 0.79, or 246 of an A100's 312 TFLOP/s.
        tile: Elements of the output that a multiprocessor makes at a time [1]; 128 x 256 is the largest tile of the
            vendors' libraries, and the fastest. The last wave of tiles is half empty on average, so that
            idle = multiprocessors * tile / 2 / output elements.
        max_wave_quantization: Where that would be more, smaller tiles keep it to about a quarter [1].
        ramp_flops: Work [FLOP] at peak rate that filling and draining the device costs per kernel; makes small local
            matrices inefficient: half of `matrix` at this size. 3 GFLOP is 10 us of an A100.
        memory: Share of the memory bandwidth [1]: STREAM-like copies reach 0.9, the softmax, dropout and elementwise
            kernels of a training framework 0.75 to 0.85.
        launch_s: Time between dependent kernels [s]; 4 us when the queue is kept full.
        attention: Share of the rate of matrix products that fused attention reaches [1], at most 1.
        update: Share of the rate of other kernels that the optimizer's update reaches [1].
        update_launch_s: Time of the kernels that update one weight, however small [s]; 0 where weights are updated
            together.
    """

    matrix: float = 0.79
    tile: int = 128 * 256
    max_wave_quantization: float = 0.25
    ramp_flops: float = 3e9
    memory: float = 0.8
    launch_s: float = 4e-6
    attention: float = 1.0
    update: float = 1.0
    update_launch_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Work:
    """Local work: floating point operations (a multiply-add counts twice; idle multiprocessors' as well), and bytes.

    `own_bytes` stream while the matrix units work; `other_bytes` belong to followers (a GELU behind a product), which
    run on their own.
    """

    flops: Floats
    own_bytes: Floats
    other_bytes: Floats


@dataclass(frozen=True, slots=True)
class Roofline:
    """A device with its efficiencies."""

    device: Device
    efficiency: Efficiency = field(default_factory=Efficiency)

    def seconds(self, work: Work, *, half: bool | Bools, kernels: int | Ints = 1) -> Floats:
        """Time of some kernels on local shapes; 0 where there is no work.

        Args:
            work: What they do.
            half: Whether the inputs have 16 bits or fewer, for all or for each.
            kernels: How many there are, likewise.
        """
        peak = np.where(half, self.device.matrix_flops_per_s, self.device.matrix32_flops_per_s)
        rate = peak * self.efficiency.matrix
        filled = work.flops + np.minimum(work.flops, kernels * self.efficiency.ramp_flops)
        busy = np.maximum(filled / rate, self.stream_s(work.own_bytes)) + self.stream_s(work.other_bytes)
        return np.where(busy > 0, busy + kernels * self.efficiency.launch_s, 0.0)

    def wave_quantization_loss(self, elements: Floats) -> Floats:
        """Return what the last wave of tiles leaves idle, as a share of a product with so many output elements."""
        wave = self.device.multiprocessors * self.efficiency.tile
        return np.minimum(self.efficiency.max_wave_quantization, wave / 2 / elements)

    def update_s(self, moved_bytes: Floats) -> Floats:
        """Time to update a weight, whose update moves some bytes; 0 where there are none."""
        streamed = self.stream_s(moved_bytes) / self.efficiency.update
        return np.where(moved_bytes > 0, streamed + self.efficiency.update_launch_s, 0.0)

    def stream_s(self, moved_bytes: Floats) -> Floats:
        """Time to move bytes through the device's memory."""
        return np.asarray(moved_bytes / (self.device.memory_bytes_per_s * self.efficiency.memory))

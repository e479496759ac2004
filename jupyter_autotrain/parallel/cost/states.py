"""Parameters of one op: what keeping and updating them costs under each ZeRO level, on the device or on the host."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from jupyter_autotrain.core.devices import Device
from jupyter_autotrain.parallel.cost.collectives import Axis, Floats, all_reduce_over_axes_s, gather_over_axes_s
from jupyter_autotrain.parallel.cost.layout import PARTIAL, Ints, split_of
from jupyter_autotrain.parallel.cost.memory import Optimizer, Zero
from jupyter_autotrain.parallel.cost.roofline import Roofline


@dataclass(frozen=True, slots=True)
class Option:
    """One way to keep an op's parameters; `offload`: the optimizer's states live and are updated on the host."""

    zero: Zero
    offload: bool = False

    def __str__(self) -> str:
        return f"ZeRO-{int(self.zero)}{' on host' if self.offload else ''}"


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Constants of training beside the kernels.

    Attributes:
        optimizer: What it keeps per parameter.
        overlap_slowdown: Share of hidden communication that still costs, since it slows the compute it hides
            behind [1]: 0.126, measured by the Galvatron project (overlap factor 1.126 on NVLink and PCIe).
        host_bytes_per_s: Memory bandwidth of the host per device, for updates on the host [bytes/s]: eight
            DDR4-3200 channels (205 GB/s) for eight devices.
        gathered_blocks: Blocks whose gathered parameters live at once under ZeRO-3: one in use, one prefetched.
    """

    optimizer: Optimizer = field(default_factory=Optimizer)
    overlap_slowdown: float = 0.126
    host_bytes_per_s: float = 25e9
    gathered_blocks: int = 2


@dataclass(frozen=True, slots=True)
class StateTable:
    """Per option (rows) and strategy (columns).

    Attributes:
        options: What the rows are.
        micro_s: Exposed communication per microbatch.
        step_s: Exposed communication once per step.
        update_s: Optimizer's update.
        parameter_bytes: Held per device; gathered ZeRO-3 parameters included.
        gradient_bytes: Held per device.
        optimizer_bytes: Held per device.
    """

    options: tuple[Option, ...]
    micro_s: Floats
    step_s: Floats
    update_s: Floats
    parameter_bytes: Floats
    gradient_bytes: Floats
    optimizer_bytes: Floats

    @property
    def state_bytes(self) -> Floats:
        """All states per device."""
        return self.parameter_bytes + self.gradient_bytes + self.optimizer_bytes


@dataclass(frozen=True, slots=True)
class Weights:
    """One parameter in one op: elements, bytes per element, and where the op's strategies put its gradient."""

    elements: int
    item_bytes: int
    gradient: Ints


@dataclass(frozen=True, slots=True)
class Compute:
    """What the states' communication can hide behind: the op's own forward and backward time, per strategy."""

    forward_s: Floats
    backward_s: Floats


@dataclass(frozen=True, slots=True)
class StatePricer:
    """Prices options; `repeats` is the number of blocks of the op's run."""

    axes: tuple[Axis, ...]
    roofline: Roofline
    assumptions: Assumptions
    options: tuple[Option, ...]

    def table(self, weights: list[Weights], compute: Compute, repeats: int) -> StateTable:
        """Sum over the op's parameters."""
        count = len(compute.forward_s)
        total = np.zeros((6, len(self.options), count))
        for weight in weights:
            held = weight.elements * weight.item_bytes / split_of(weight.gradient, self.axes)
            moves = self._over_replicas(weight.gradient, held)
            for row, option in enumerate(self.options):
                total[:, row] += self._one(weight, held, option, (moves, compute, repeats))
        return StateTable(self.options, *total)

    def exposed(self, communication_s: Floats, compute_s: Floats) -> Floats:
        """What of overlappable communication still shows: the excess, and the slowdown it causes."""
        hidden = np.minimum(communication_s, compute_s)
        return communication_s - hidden * (1 - self.assumptions.overlap_slowdown)

    def _one(
        self, weight: Weights, held: Floats, option: Option, around: tuple[tuple[Floats, Floats], Compute, int]
    ) -> Floats:
        """Rows: micro_s, step_s, update_s, parameter, gradient and optimizer bytes."""
        moves, compute, repeats = around
        replicas = np.where(weight.gradient == PARTIAL, [a.size for a in self.axes], 1).prod(axis=1)
        micro, step = self._communication(moves, option.zero, compute)
        shared = [
            replicas if option.zero >= level else 1 for level in (Zero.OPTIMIZER, Zero.GRADIENTS, Zero.PARAMETERS)
        ]
        elements = held / weight.item_bytes / shared[0]
        state = elements * self.assumptions.optimizer.state_bytes(weight.item_bytes)
        gathered = held * self.assumptions.gathered_blocks / repeats if option.zero is Zero.PARAMETERS else 0.0
        kept = np.minimum(held / shared[2] + gathered, held)
        update = self._update_s(elements, weight.item_bytes, offload=option.offload)
        return np.stack([micro, step, update, kept, held / shared[1], state * (not option.offload)])

    def _communication(self, moves: tuple[Floats, Floats], zero: Zero, compute: Compute) -> tuple[Floats, Floats]:
        """Exposed seconds per microbatch and per step.

        ZeRO-0 all-reduces gradients once per step; 1 scatters gradients and gathers parameters once; 2 scatters in
        every microbatch; 3 gathers for forward and for backward and scatters, in every microbatch.
        """
        reduce_s, move_s = moves
        nothing = np.zeros_like(move_s)
        if zero is Zero.NOTHING:
            return nothing, self.exposed(reduce_s, compute.backward_s)
        scatter, gather = self.exposed(move_s, compute.backward_s), self.exposed(move_s, compute.forward_s)
        if zero is Zero.OPTIMIZER:
            return nothing, scatter + gather
        if zero is Zero.GRADIENTS:
            return scatter, gather
        return gather + self.exposed(2 * move_s, compute.backward_s), nothing

    def _over_replicas(self, gradient: Ints, held: Floats) -> tuple[Floats, Floats]:
        """All-reduce, and gather or scatter, of `held` bytes over the axes with replicas."""
        reduce_s, move_s = np.zeros_like(held), np.zeros_like(held)
        mask = (gradient == PARTIAL) @ (1 << np.arange(len(self.axes)))
        for code in set(mask.tolist()) - {0}:
            axes = tuple(axis for i, axis in enumerate(self.axes) if code >> i & 1)
            rows = mask == code
            reduce_s[rows] = all_reduce_over_axes_s(axes, held[rows])
            move_s[rows] = gather_over_axes_s(axes, held[rows])
        return reduce_s, move_s

    def _update_s(self, elements: Floats, item_bytes: int, *, offload: bool) -> Floats:
        """Read gradient and states, write parameter and states; over the host's memory and link when offloaded."""
        traffic = 2.0 * (self.assumptions.optimizer.state_bytes(item_bytes) + item_bytes)
        if not offload:
            return self.roofline.stream_s(elements * traffic)
        device: Device = self.roofline.device
        link = 2.0 * item_bytes / device.host_bytes_per_s
        return np.asarray(elements * (link + traffic / self.assumptions.host_bytes_per_s))

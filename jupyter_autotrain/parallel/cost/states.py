"""Parameters of one op: what keeping and updating them costs under each ZeRO level, on the device or on the host."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from jupyter_autotrain.parallel.cost.collectives import Axis, Floats, amortised_s
from jupyter_autotrain.parallel.cost.layout import PARTIAL, Ints, split_of
from jupyter_autotrain.parallel.cost.memory import Optimizer, Zero
from jupyter_autotrain.parallel.cost.roofline import Roofline


@dataclass(frozen=True, slots=True)
class Option:
    """One way to keep an op's parameters.

    Attributes:
        zero: What replicas share out.
        offload: The optimizer's states live and are updated on the host.
        host_table: A table that is only looked up lives there as well, and looked-up rows come to the device; for
            other parameters the same as `offload`.
    """

    zero: Zero
    offload: bool = False
    host_table: bool = False

    def __str__(self) -> str:
        return "table on host" if self.host_table else f"ZeRO-{int(self.zero)}{' on host' if self.offload else ''}"


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Constants of training beside the kernels.

    Attributes:
        optimizer: What it keeps per parameter.
        overlap_slowdown: Share of hidden communication that still costs, since it slows the compute it hides
            behind [1]: 0.126, measured by the Galvatron project (overlap factor 1.126 on NVLink and PCIe).
        host_bytes_per_s: Memory bandwidth of the host per device, for updates on the host [bytes/s]: eight
            DDR4-3200 channels (205 GB/s) for eight devices.
        bucket_bytes: Gradients and parameters travel in buckets of this size, which share one latency [bytes]: 25 MiB,
            the default of torch's DistributedDataParallel.
        gathered_blocks: Blocks whose gathered parameters live at once under ZeRO-3: one in use, one prefetched.
    """

    optimizer: Optimizer = field(default_factory=Optimizer)
    overlap_slowdown: float = 0.126
    host_bytes_per_s: float = 25e9
    bucket_bytes: float = 25 * 2**20
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
    """One parameter in one op: elements, bytes per element, and where the op's strategies put its gradient.

    Of a table that is only looked up, `rows_bytes` says per strategy what a rank looks up in each of `microbatches`.
    """

    elements: int
    item_bytes: int
    gradient: Ints
    rows_bytes: Floats | None = None
    microbatches: int = 1


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
        rows = [int(option.zero) for option in self.options]
        host = np.array([option.offload for option in self.options])[:, None]
        total = np.zeros((6, len(rows), len(compute.forward_s)))
        for weight in weights:
            levels = self._levels(weight, compute, repeats)
            micro, step, kept, gradient, elements = (level[rows] for level in levels)
            state = elements * self.assumptions.optimizer.state_bytes(weight.item_bytes)
            update = self._update_s(elements, weight)
            if host.any():
                update = np.where(host, self._host_update_s(elements, weight), update)
                state = np.where(host, 0.0, state)
            for row, part in enumerate(self._or_on_host(weight, (micro, step, update, kept, gradient, state))):
                total[row] += part
        return StateTable(self.options, *total)

    def _or_on_host(self, weight: Weights, parts: tuple[Floats, ...]) -> tuple[Floats, ...]:
        """The parts of a table, with those of its place on the host where an option wants it there.

        In each microbatch its rows come up the link and their gradients go down, after ranks with the same slice have
        gathered each other's; only rows that were looked up are updated (as torch's SparseAdam does), by every rank
        for all replicas. Nothing hides behind compute, and nothing stays on the device.
        """
        if weight.rows_bytes is None or not any(option.host_table for option in self.options):
            return parts
        on_host = np.array([option.host_table for option in self.options])[:, None]
        rows, gather_s = weight.rows_bytes, np.zeros_like(weight.rows_bytes)
        micro_s = 2 * rows / self.roofline.device.host_bytes_per_s
        for axis, placed in reversed(list(zip(self.axes, weight.gradient.T, strict=True))):
            rows = np.where(placed == PARTIAL, rows * axis.size, rows)
            gather_s += np.where(placed == PARTIAL, amortised_s(axis.gather, rows, self.assumptions.bucket_bytes), 0.0)
        touched = weight.microbatches * rows / weight.item_bytes
        update_s = touched * self._traffic(weight) / self.assumptions.host_bytes_per_s
        nothing = np.zeros_like(rows)
        found = (micro_s + gather_s, nothing, update_s, nothing, nothing, nothing)
        return tuple(np.where(on_host, there, here) for there, here in zip(found, parts, strict=True))

    def exposed(self, communication_s: Floats, compute_s: Floats) -> Floats:
        """What of overlappable communication still shows: the excess, and the slowdown it causes."""
        hidden = np.minimum(communication_s, compute_s)
        return communication_s - hidden * (1 - self.assumptions.overlap_slowdown)

    def _levels(self, weight: Weights, compute: Compute, repeats: int) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """By ZeRO level: exposed seconds per microbatch and per step, parameter and gradient bytes, updated elements.

        ZeRO-0 all-reduces gradients once per step; 1 scatters gradients and gathers parameters once; 2 scatters in
        every microbatch; 3 gathers for forward and for backward and scatters, in every microbatch.
        """
        held = weight.elements * weight.item_bytes / split_of(weight.gradient, self.axes)
        shared = held / self._replicas(weight.gradient)
        wide = self.assumptions.optimizer.gradient_item_bytes(weight.item_bytes) / weight.item_bytes
        reduces_s, moves_s = self._over_replicas(weight.gradient, np.stack([held * wide, held]))
        reduce_s, (scatter_s, gather_s) = reduces_s[0], moves_s
        scatter, gather = self.exposed(scatter_s, compute.backward_s), self.exposed(gather_s, compute.forward_s)
        both, nothing = self.exposed(gather_s + scatter_s, compute.backward_s), np.zeros_like(held)
        micro = np.stack([nothing, nothing, scatter, gather + both])
        step = np.stack([self.exposed(reduce_s, compute.backward_s), scatter + gather, gather, nothing])
        gathered = np.minimum(held, shared + held * self.assumptions.gathered_blocks / repeats)
        kept, gradient = np.stack([held, held, held, gathered]), wide * np.stack([held, held, shared, shared])
        return micro, step, kept, gradient, np.stack([held, shared, shared, shared]) / weight.item_bytes

    def _replicas(self, gradient: Ints) -> Floats:
        count = np.ones(len(gradient))
        for index, axis in enumerate(self.axes):
            count = np.where(gradient[:, index] == PARTIAL, count * axis.size, count)
        return count

    def _over_replicas(self, gradient: Ints, held: Floats) -> tuple[Floats, Floats]:
        """All-reduce, and gather or scatter, of `held` bytes over the axes with replicas, inner axes first."""
        one_by_one, move_s, left = np.zeros_like(held), np.zeros_like(held), held
        for index in range(len(self.axes) - 1, -1, -1):
            axis, shared = self.axes[index], gradient[:, index] == PARTIAL
            if not shared.any():
                continue
            one_by_one += np.where(shared, amortised_s(axis.reduce, held, self.assumptions.bucket_bytes), 0.0)
            move_s += np.where(shared, amortised_s(axis.gather, left, self.assumptions.bucket_bytes), 0.0)
            left = np.where(shared, left / axis.size, left)
        return np.minimum(one_by_one, 2 * move_s), move_s

    def _traffic(self, weight: Weights) -> float:
        """Bytes per element: gradient read for the norm and the update, then zeroed; states read and written.

        The parameter is written from its master copy, or read and written where it is its own.
        """
        optimizer, item = self.assumptions.optimizer, weight.item_bytes
        written = 1.0 if item < 4 else 2.0
        return 2.0 * optimizer.state_bytes(item) + 3.0 * optimizer.gradient_item_bytes(item) + written * item

    def _update_s(self, elements: Floats, weight: Weights) -> Floats:
        return self.roofline.stream_s(elements * self._traffic(weight))

    def _host_update_s(self, elements: Floats, weight: Weights) -> Floats:
        """Gradients down and parameters up the link, the update in the host's memory."""
        link = 2.0 * weight.item_bytes / self.roofline.device.host_bytes_per_s
        return np.asarray(elements * (link + self._traffic(weight) / self.assumptions.host_bytes_per_s))

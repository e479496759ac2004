"""Parameters of one op: what keeping and updating them costs under each ZeRO level, on the device or on the host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from jupyter_autotrain.parallel.cost.collectives import Axis, Floats, amortised_s
from jupyter_autotrain.parallel.cost.layout import PARTIAL, Ints, split_of
from jupyter_autotrain.parallel.cost.memory import Optimizer, Zero
from jupyter_autotrain.parallel.cost.roofline import Roofline


@dataclass(frozen=True, slots=True)
class StateSharding:
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

    options: tuple[StateSharding, ...]
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
class _Pieces:
    """Parameters with their strategies one below the other; every array has one entry per row of `gradient`."""

    gradient: Ints
    whole_bytes: Floats
    item_bytes: Floats
    wide: Floats
    forward_s: Floats
    backward_s: Floats
    repeats: Floats


Asked = tuple[Sequence[Weights], Compute, int]


@dataclass(frozen=True, slots=True)
class StatePricer:
    """Prices options, for many ops in one go."""

    axes: tuple[Axis, ...]
    roofline: Roofline
    assumptions: Assumptions
    options: tuple[StateSharding, ...]

    def tables(self, asked: Sequence[Asked]) -> list[StateTable]:
        """Sums over each op's parameters; asked by these, what to hide behind, and the number of its run's blocks."""
        totals = [np.zeros((6, len(self.options), len(compute.forward_s))) for _, compute, _ in asked]
        owners = [index for index, (weights, _, _) in enumerate(asked) for _ in weights]
        each = [(weight, compute, repeats) for weights, compute, repeats in asked for weight in weights]
        for owner, (weight, _, _), part in zip(owners, each, self._parts(each) if each else (), strict=True):
            totals[owner] += self._or_on_host(weight, part)
        return [StateTable(self.options, *total) for total in totals]

    def _parts(self, each: Sequence[tuple[Weights, Compute, int]]) -> list[Floats]:
        """(6, options, strategies) of each parameter, in the order of `StateTable`."""
        weights, computes, repeats = zip(*each, strict=True)
        lengths = [len(weight.gradient) for weight in weights]
        optimizer = self.assumptions.optimizer

        def rows(values: Iterable[float]) -> Floats:
            return np.repeat(np.array(list(values), dtype=np.float64), lengths)

        piece = _Pieces(
            gradient=np.concatenate([weight.gradient for weight in weights]),
            whole_bytes=rows(weight.elements * weight.item_bytes for weight in weights),
            item_bytes=rows(weight.item_bytes for weight in weights),
            wide=rows(optimizer.gradient_item_bytes(weight.item_bytes) / weight.item_bytes for weight in weights),
            forward_s=np.concatenate([compute.forward_s for compute in computes]),
            backward_s=np.concatenate([compute.backward_s for compute in computes]),
            repeats=rows(repeats),
        )
        zero = [int(option.zero) for option in self.options]
        micro, step, kept, gradient, elements = (level[zero] for level in self._levels(piece))
        state = elements * rows(optimizer.state_bytes(weight.item_bytes) for weight in weights)
        traffic = rows(self._traffic(weight) for weight in weights)
        update = self.roofline.stream_s(elements * traffic)
        if any(option.offload for option in self.options):
            host = np.array([option.offload for option in self.options])[:, None]
            update = np.where(host, self._host_update_s(elements, piece.item_bytes, traffic), update)
            state = np.where(host, 0.0, state)
        together = np.stack([micro, step, update, kept, gradient, state])
        return np.split(together, np.cumsum(lengths)[:-1], axis=2)

    def _or_on_host(self, weight: Weights, parts: Floats) -> Floats:
        """The parts of a parameter, with those of its place on the host where an option wants it there.

        In each microbatch its rows come up the link and their gradients go down, after ranks with the same slice have
        gathered each other's; only rows that were looked up are updated (as torch's SparseAdam does), by every rank
        for all replicas. Nothing hides behind compute, and nothing stays on the device.
        """
        if weight.rows_bytes is None or not any(option.host_table for option in self.options):
            return parts
        on_host = np.array([option.host_table for option in self.options])[:, None]
        rows = weight.rows_bytes
        gather_s = np.zeros_like(weight.rows_bytes)
        micro_s = 2 * rows / self.roofline.device.host_bytes_per_s
        for axis, placed in reversed(list(zip(self.axes, weight.gradient.T, strict=True))):
            rows = np.where(placed == PARTIAL, rows * axis.size, rows)
            gather_s += np.where(placed == PARTIAL, amortised_s(axis.gather, rows, self.assumptions.bucket_bytes), 0.0)
        touched = weight.microbatches * rows / weight.item_bytes
        update_s = touched * self._traffic(weight) / self.assumptions.host_bytes_per_s
        nothing = np.zeros_like(rows)
        there = np.stack([micro_s + gather_s, nothing, update_s, nothing, nothing, nothing])
        return np.where(on_host, there[:, None, :], parts)

    def exposed(self, communication_s: Floats, compute_s: Floats) -> Floats:
        """What of overlappable communication still shows: the excess, and the slowdown it causes."""
        hidden = np.minimum(communication_s, compute_s)
        return communication_s - hidden * (1 - self.assumptions.overlap_slowdown)

    def _levels(self, piece: _Pieces) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """By ZeRO level: exposed seconds per microbatch and per step, parameter and gradient bytes, updated elements.

        ZeRO-0 all-reduces gradients once per step; 1 scatters gradients and gathers parameters once; 2 scatters in
        every microbatch; 3 gathers for forward and for backward and scatters, in every microbatch.
        """
        held = piece.whole_bytes / split_of(piece.gradient, self.axes)
        shared = held / self._replicas(piece.gradient)
        reduces_s, moves_s = self._over_replicas(piece.gradient, np.stack([held * piece.wide, held]))
        reduce_s = reduces_s[0]
        (scatter_s, gather_s) = moves_s
        scatter = self.exposed(scatter_s, piece.backward_s)
        gather = self.exposed(gather_s, piece.forward_s)
        both = self.exposed(gather_s + scatter_s, piece.backward_s)
        nothing = np.zeros_like(held)
        micro = np.stack([nothing, nothing, scatter, gather + both])
        step = np.stack([self.exposed(reduce_s, piece.backward_s), scatter + gather, gather, nothing])
        gathered = np.minimum(held, shared + held * self.assumptions.gathered_blocks / piece.repeats)
        kept = np.stack([held, held, held, gathered])
        gradient = piece.wide * np.stack([held, held, shared, shared])
        return micro, step, kept, gradient, np.stack([held, shared, shared, shared]) / piece.item_bytes

    def _replicas(self, gradient: Ints) -> Floats:
        count = np.ones(len(gradient))
        for index, axis in enumerate(self.axes):
            count = np.where(gradient[:, index] == PARTIAL, count * axis.size, count)
        return count

    def _over_replicas(self, gradient: Ints, held: Floats) -> tuple[Floats, Floats]:
        """All-reduce, and gather or scatter, of `held` bytes over the axes with replicas, inner axes first."""
        one_by_one = np.zeros_like(held)
        move_s = np.zeros_like(held)
        left = held
        for index in range(len(self.axes) - 1, -1, -1):
            axis = self.axes[index]
            shared = gradient[:, index] == PARTIAL
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
        optimizer = self.assumptions.optimizer
        item = weight.item_bytes
        written = 1.0 if item < 4 else 2.0
        return 2.0 * optimizer.state_bytes(item) + 3.0 * optimizer.gradient_item_bytes(item) + written * item

    def _host_update_s(self, elements: Floats, item_bytes: Floats, traffic: Floats) -> Floats:
        """Gradients down and parameters up the link, the update in the host's memory."""
        link = 2.0 * item_bytes / self.roofline.device.host_bytes_per_s
        return np.asarray(elements * (link + traffic / self.assumptions.host_bytes_per_s))

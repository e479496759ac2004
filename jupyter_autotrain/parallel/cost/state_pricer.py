"""What keeping and updating parameters costs under each ZeRO level, on the device or on the host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from jupyter_autotrain.parallel.arrays import Floats, Ints
from jupyter_autotrain.parallel.cost.collectives import Axis, amortised_s
from jupyter_autotrain.parallel.cost.layout import PARTIAL, shard_counts
from jupyter_autotrain.parallel.cost.roofline import Roofline
from jupyter_autotrain.parallel.cost.states import Assumptions, StateSharding, StateTable


@dataclass(frozen=True, slots=True)
class OpParameter:
    """One parameter in one op: elements, bytes per element, and where the op's strategies put its gradient.

    Of a table that is only looked up, `rows_bytes` is what a rank looks up in each of `microbatches`, per strategy.
    """

    elements: int
    item_bytes: int
    gradient: Ints
    rows_bytes: Floats | None = None
    microbatches: int = 1


@dataclass(frozen=True, slots=True)
class ComputeTime:
    """What the states' communication can hide behind: the op's own forward and backward time, per strategy."""

    forward_s: Floats
    backward_s: Floats


@dataclass(frozen=True, slots=True)
class _Stacked:
    """Parameters with their strategies one below the other; every array has one entry per row of `gradient`."""

    gradient: Ints
    whole_bytes: Floats
    item_bytes: Floats
    wide: Floats
    forward_s: Floats
    backward_s: Floats
    repeats: Floats


OpStates = tuple[Sequence[OpParameter], ComputeTime, int]  # parameters, what to hide behind, blocks of the run


@dataclass(frozen=True, slots=True)
class StatePricer:
    """Prices state shardings, for many ops in one go."""

    axes: tuple[Axis, ...]
    roofline: Roofline
    assumptions: Assumptions
    state_shardings: tuple[StateSharding, ...]

    def tables(self, ops: Sequence[OpStates]) -> list[StateTable]:
        """One table per op, summed over its parameters."""
        totals = [np.zeros((6, len(self.state_shardings), len(compute.forward_s))) for _, compute, _ in ops]
        owners = [index for index, (weights, _, _) in enumerate(ops) for _ in weights]
        each = [(weight, compute, repeats) for weights, compute, repeats in ops for weight in weights]
        for owner, (weight, _, _), part in zip(owners, each, self._parts(each) if each else (), strict=True):
            totals[owner] += self._or_on_host(weight, part)
        return [StateTable(self.state_shardings, *total) for total in totals]

    def _parts(self, each: Sequence[tuple[OpParameter, ComputeTime, int]]) -> list[Floats]:
        """(6, state shardings, strategies) of each parameter, in the order of `StateTable`."""
        weights, computes, repeats = zip(*each, strict=True)
        lengths = [len(weight.gradient) for weight in weights]
        optimizer = self.assumptions.optimizer

        def rows(values: Iterable[float]) -> Floats:
            return np.repeat(np.array(list(values), dtype=np.float64), lengths)

        stacked = _Stacked(
            gradient=np.concatenate([weight.gradient for weight in weights]),
            whole_bytes=rows(weight.elements * weight.item_bytes for weight in weights),
            item_bytes=rows(weight.item_bytes for weight in weights),
            wide=rows(optimizer.gradient_item_bytes(weight.item_bytes) / weight.item_bytes for weight in weights),
            forward_s=np.concatenate([compute.forward_s for compute in computes]),
            backward_s=np.concatenate([compute.backward_s for compute in computes]),
            repeats=rows(repeats),
        )
        zero = [int(state_sharding.zero) for state_sharding in self.state_shardings]
        micro, step, kept, gradient, elements = (level[zero] for level in self._levels(stacked))
        state = elements * rows(optimizer.state_bytes(weight.item_bytes) for weight in weights)
        traffic = rows(self._traffic(weight) for weight in weights)
        update = self.roofline.stream_s(elements * traffic)
        if any(state_sharding.offload for state_sharding in self.state_shardings):
            host = np.array([state_sharding.offload for state_sharding in self.state_shardings])[:, None]
            update = np.where(host, self._host_update_s(elements, stacked.item_bytes, traffic), update)
            state = np.where(host, 0.0, state)
        together = np.stack([micro, step, update, kept, gradient, state])
        return np.split(together, np.cumsum(lengths)[:-1], axis=2)

    def _or_on_host(self, weight: OpParameter, parts: Floats) -> Floats:
        """The parts of a parameter, with those on the host where a state sharding keeps it there.

        In each microbatch its rows come up the link and their gradients go down, after ranks with the same slice have
        gathered each other's; only rows that were looked up are updated (as torch's SparseAdam does), by every rank
        for all replicas. Nothing hides behind compute, and nothing stays on the device.
        """
        if weight.rows_bytes is None or not any(state_sharding.host_table for state_sharding in self.state_shardings):
            return parts
        on_host = np.array([state_sharding.host_table for state_sharding in self.state_shardings])[:, None]
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

    def _levels(self, stacked: _Stacked) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """By ZeRO level: exposed seconds per microbatch and per step, parameter and gradient bytes, updated elements.

        ZeRO-0 all-reduces gradients once per step; 1 scatters gradients and gathers parameters once; 2 scatters in
        every microbatch; 3 gathers for forward and for backward and scatters, in every microbatch.
        """
        held = stacked.whole_bytes / shard_counts(stacked.gradient, self.axes)
        shared = held / self._replicas(stacked.gradient)
        reduces_s, moves_s = self._over_replicas(stacked.gradient, np.stack([held * stacked.wide, held]))
        reduce_s = reduces_s[0]
        (scatter_s, gather_s) = moves_s
        scatter = self.exposed(scatter_s, stacked.backward_s)
        gather = self.exposed(gather_s, stacked.forward_s)
        both = self.exposed(gather_s + scatter_s, stacked.backward_s)
        nothing = np.zeros_like(held)
        micro = np.stack([nothing, nothing, scatter, gather + both])
        step = np.stack([self.exposed(reduce_s, stacked.backward_s), scatter + gather, gather, nothing])
        gathered = np.minimum(held, shared + held * self.assumptions.gathered_blocks / stacked.repeats)
        kept = np.stack([held, held, held, gathered])
        gradient = stacked.wide * np.stack([held, held, shared, shared])
        return micro, step, kept, gradient, np.stack([held, shared, shared, shared]) / stacked.item_bytes

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

    def _traffic(self, weight: OpParameter) -> float:
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

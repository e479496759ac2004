"""Ways to keep an op's parameters, gradients and optimizer states: by ZeRO level, on the device or on the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from jupyter_autotrain.parallel.arrays import Floats, Ints
from jupyter_autotrain.parallel.cost.collectives import AlphaBeta, Axis, amortised_s
from jupyter_autotrain.parallel.cost.layout import PARTIAL, REPLICATE, shard_counts
from jupyter_autotrain.parallel.cost.memory import Optimizer, ZeroLevel
from jupyter_autotrain.parallel.cost.roofline import Roofline

FREE = AlphaBeta(0.0, 0.0)
HYBRID_ROW = len(ZeroLevel)  # of hybrid sharding, behind the ZeRO levels


@dataclass(frozen=True, slots=True)
class StateSharding:
    """One way to keep an op's parameters.

    Attributes:
        zero: What replicas share out.
        offload: The optimizer's states live and are updated on the host.
        host_table: A table that is only looked up lives there as well, and looked-up rows come to the device; for
            other parameters the same as `offload`.
        inner: Only replicas on the innermost axis share out; between the other axes shares are replicated (hybrid
            sharding, HSDP).
    """

    zero: ZeroLevel
    offload: bool = False
    host_table: bool = False
    inner: bool = False

    def __str__(self) -> str:
        if self.host_table:
            return "table on host"
        if self.inner:
            return "hybrid sharding"
        return f"ZeRO-{int(self.zero)}" + (" on host" if self.offload else "")


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Constants of training, apart from the kernels.

    Attributes:
        optimizer: What it keeps per parameter.
        overlap_slowdown: Share of hidden communication that still costs, since it slows the compute it hides
            behind [1]: 0.126, measured by the Galvatron project (overlap factor 1.126 on NVLink and PCIe).
        host_bytes_per_s: Memory bandwidth of the host per device, for updates on the host [bytes/s]: eight
            DDR4-3200 channels (205 GB/s) for eight devices.
        bucket_bytes: Gradients and parameters travel in buckets of this size, which share one latency [bytes]: 25 MiB,
            the default of torch's DistributedDataParallel.
        gather_bytes: Parameters that ranks gather at a time where they share them out, and gradients that they scatter
            [bytes]: those of a layer, which share one latency.
        gathered_blocks: Blocks whose gathered parameters live at once under ZeRO-3: one in use, one prefetched.
        scatter: Time of a reduce-scatter over that of an all-gather of as many bytes [1]; gloo reduces all of it.
        sharing: What gathering or scattering parameters takes beside the collective, which copies them in and out.
        replicating: What all-reducing gradients takes beside the collective, likewise.
        moving: What changing the layout of an activation takes beside the collective, likewise.
        shared_update_s: What updating one parameter takes more where ranks have parts of it [s].
        imbalance: Tokens of the rank whose experts get most of them, over the mean of the ranks: 1.25, the capacity
            at which under 1 % of tokens find their expert full (Fedus et al. 2022, Switch Transformers, section 2.2).
            All are computed: no token is dropped.
    """

    optimizer: Optimizer = field(default_factory=Optimizer)
    overlap_slowdown: float = 0.126
    host_bytes_per_s: float = 25e9
    bucket_bytes: float = 25 * 2**20
    gather_bytes: float = 25 * 2**20
    gathered_blocks: int = 2
    scatter: float = 1.0
    sharing: AlphaBeta = FREE
    replicating: AlphaBeta = FREE
    moving: AlphaBeta = FREE
    shared_update_s: float = 0.0
    imbalance: float = 1.25


@dataclass(frozen=True, slots=True)
class StateTable:
    """Per state sharding (rows) and strategy (columns).

    Attributes:
        state_shardings: What the rows are.
        micro_s: Exposed communication per microbatch.
        step_s: Exposed communication once per step.
        update_s: Optimizer's update.
        parameter_bytes: Held per device; gathered ZeRO-3 parameters included.
        gradient_bytes: Held per device.
        optimizer_bytes: Held per device.
    """

    state_shardings: tuple[StateSharding, ...]
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
    """Time that the states' communication can hide behind: the op's own forward and backward, per strategy."""

    forward_s: Floats
    backward_s: Floats


@dataclass(frozen=True, slots=True)
class _Stacked:
    """Parameters with their strategies one below the other; every array has one entry per row of `gradient`."""

    gradient: Ints
    whole_bytes: Floats
    item_bytes: Floats
    wide: Floats
    state_bytes: Floats
    traffic: Floats
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
        stacked = self._stacked(each)
        zero = [HYBRID_ROW if sharding.inner else int(sharding.zero) for sharding in self.state_shardings]
        micro, step, kept, gradient, elements = (level[zero] for level in self._levels(stacked))
        state = elements * stacked.state_bytes
        update = self.roofline.update_s(elements * stacked.traffic) + self._part_update_s(stacked.gradient)
        host = np.array([state_sharding.offload for state_sharding in self.state_shardings])[:, None]
        if host.any():
            update = np.where(host, self._host_update_s(elements, stacked.item_bytes, stacked.traffic), update)
            state = np.where(host, 0.0, state)
        together = np.stack([micro, step, update, kept, gradient, state])
        ends = np.cumsum([len(weight.gradient) for weight, _, _ in each])
        return np.split(together, ends[:-1], axis=2)

    def _stacked(self, each: Sequence[tuple[OpParameter, ComputeTime, int]]) -> _Stacked:
        optimizer = self.assumptions.optimizer
        table = np.array(
            [
                (
                    weight.elements * weight.item_bytes,
                    weight.item_bytes,
                    optimizer.gradient_item_bytes(weight.item_bytes) / weight.item_bytes,
                    optimizer.state_bytes(weight.item_bytes),
                    self._traffic(weight),
                    repeats,
                )
                for weight, _, repeats in each
            ],
            dtype=np.float64,
        )
        weights, computes, _ = zip(*each, strict=True)
        whole_bytes, item_bytes, wide, state_bytes, traffic, repeats = np.repeat(
            table, [len(weight.gradient) for weight in weights], axis=0
        ).T
        return _Stacked(
            gradient=np.concatenate([weight.gradient for weight in weights]),
            whole_bytes=whole_bytes,
            item_bytes=item_bytes,
            wide=wide,
            state_bytes=state_bytes,
            traffic=traffic,
            forward_s=np.concatenate([compute.forward_s for compute in computes]),
            backward_s=np.concatenate([compute.backward_s for compute in computes]),
            repeats=repeats,
        )

    def _or_on_host(self, weight: OpParameter, parts: Floats) -> Floats:
        """Return the parts of a parameter, with those on the host where a state sharding keeps it there.

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
        """Return what of overlappable communication still shows: the excess, and the slowdown it causes."""
        hidden = np.minimum(communication_s, compute_s)
        return communication_s - hidden * (1 - self.assumptions.overlap_slowdown)

    def _levels(self, stacked: _Stacked) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """By ZeRO level: exposed seconds per microbatch and per step, parameter and gradient bytes, updated elements.

        ZeRO-0 all-reduces gradients once per step; 1 scatters gradients and gathers parameters once; 2 scatters in
        every microbatch; 3 gathers for forward and for backward and scatters, in every microbatch.
        """
        held = stacked.whole_bytes / shard_counts(stacked.gradient, self.axes)
        shared = held / self._replicas(stacked.gradient)
        reduce_s, scatter_s, gather_s = self._over_replicas(stacked.gradient, held * stacked.wide, held)
        scatter = self.exposed(scatter_s, stacked.backward_s)
        gather = self.exposed(gather_s, stacked.forward_s)
        both = self.exposed(gather_s + scatter_s, stacked.backward_s)
        nothing = np.zeros_like(held)
        micro = [nothing, nothing, scatter, gather + both]
        step = [self.exposed(reduce_s, stacked.backward_s), scatter + gather, gather, nothing]
        kept = [held, held, held, self._gathered(stacked, held, shared)]
        part = [held, shared, shared, shared]
        if any(sharding.inner for sharding in self.state_shardings):
            inner = self._inner_level(stacked, held)
            for rows, row in zip((micro, step, kept, part), inner, strict=True):
                rows.append(row)
        gradient = stacked.wide * np.stack([held, held, *part[2:]])
        return np.stack(micro), np.stack(step), np.stack(kept), gradient, np.stack(part) / stacked.item_bytes

    def _gathered(self, stacked: _Stacked, held: Floats, shared: Floats) -> Floats:
        """Bytes of parameters under ZeRO-3: the share, and the blocks that are gathered at a time."""
        return np.minimum(held, shared + held * self.assumptions.gathered_blocks / stacked.repeats)

    def _inner_level(self, stacked: _Stacked, held: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the row of hybrid sharding: seconds per microbatch and step, parameter bytes, and a rank's share.

        As ZeRO-3 on the innermost axis with replicas; over the others, gradients are all-reduced once per step.
        """
        replicated = stacked.gradient == PARTIAL
        places = np.arange(replicated.shape[1])
        innermost = np.where(replicated, places, -1).max(axis=1, initial=-1)
        inside = np.where(places == innermost[:, None], stacked.gradient, REPLICATE)
        outside = np.where(places == innermost[:, None], REPLICATE, stacked.gradient)
        shared = held / self._replicas(inside)
        _, scatter_s, gather_s = self._over_replicas(inside, held * stacked.wide, held)
        reduce_s, _, _ = self._over_replicas(outside, shared * stacked.wide, shared)
        gather = self.exposed(gather_s, stacked.forward_s)
        both = self.exposed(gather_s + scatter_s, stacked.backward_s)
        step = self.exposed(reduce_s, stacked.backward_s)
        return gather + both, step, self._gathered(stacked, held, shared), shared

    def _replicas(self, gradient: Ints) -> Floats:
        count = np.ones(len(gradient))
        for index, axis in enumerate(self.axes):
            count = np.where(gradient[:, index] == PARTIAL, count * axis.size, count)
        return count

    def _over_replicas(self, gradient: Ints, wide: Floats, held: Floats) -> tuple[Floats, Floats, Floats]:
        """All-reduce and scatter of `wide` bytes, gather of `held` bytes, over axes with replicas, inner ones first."""
        assumptions = self.assumptions
        whole = np.stack([wide, held])
        one_by_one, around_reduce, moves, around_moves = (np.zeros_like(whole) for _ in range(4))
        left = whole
        for index in range(len(self.axes) - 1, -1, -1):
            axis = self.axes[index]
            shared = gradient[:, index] == PARTIAL
            if not shared.any():
                continue
            one_by_one += np.where(shared, amortised_s(axis.reduce, whole, assumptions.bucket_bytes), 0.0)
            around_reduce += np.where(shared, self._around_reduce(gradient, whole), 0.0)
            moves += np.where(shared, amortised_s(axis.gather, left, assumptions.gather_bytes), 0.0)
            around_moves += np.where(shared, amortised_s((assumptions.sharing,), left, assumptions.gather_bytes), 0.0)
            left = np.where(shared, left / axis.size, left)
        reduce_s = np.minimum(one_by_one, 2 * moves) + around_reduce
        return reduce_s[0], moves[0] * assumptions.scatter + around_moves[0], moves[1] + around_moves[1]

    def _around_reduce(self, gradient: Ints, whole: Floats) -> Floats:
        """Return what an all-reduce of gradients takes beside the collective: split weights go layer by layer."""
        assumptions = self.assumptions
        replicated = amortised_s((assumptions.replicating,), whole, assumptions.bucket_bytes)
        split = amortised_s((assumptions.sharing,), whole, assumptions.gather_bytes)
        return np.where((gradient >= 0).any(axis=1), split, replicated)

    def _part_update_s(self, gradient: Ints) -> Floats:
        """(state shardings, strategies) of what the update takes more where a rank has a part of a parameter."""
        split = (gradient >= 0).any(axis=1)
        replicated = (gradient == PARTIAL).any(axis=1)
        shares = np.array([sharding.zero > ZeroLevel.NONE for sharding in self.state_shardings])[:, None]
        return np.where(split | (shares & replicated), self.assumptions.shared_update_s, 0.0)

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

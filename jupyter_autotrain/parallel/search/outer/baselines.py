"""Well-known plans, costed like any other: what is written by hand without a search.

Each baseline is a restriction of strategies plus a few outer choices; within it the same solvers fill in the rest, so a
baseline never costs more than it has to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from jupyter_autotrain.core.sizes import format_memory
from jupyter_autotrain.parallel.arrays import Ints
from jupyter_autotrain.parallel.cost.layout import NONE
from jupyter_autotrain.parallel.cost.memory import Recompute, Schedule, ZeroLevel
from jupyter_autotrain.parallel.cost.model import Restriction
from jupyter_autotrain.parallel.cost.states import StateSharding
from jupyter_autotrain.parallel.graph.graph import LoopRole, Op
from jupyter_autotrain.parallel.search.outer.branch_and_bound import solve_candidate
from jupyter_autotrain.parallel.search.outer.context import SearchContext
from jupyter_autotrain.parallel.search.request.space import Candidate, batch_size, divisors, mesh_of, microbatch_limit
from jupyter_autotrain.parallel.search.stage.outcome import Outcome

TENSOR = 8  # devices of one chassis, the widest tensor split of Megatron-LM


@dataclass(frozen=True, slots=True)
class Baseline:
    """A named family of plans; the first candidate that fits is taken."""

    name: str
    candidates: Callable[[SearchContext], Iterator[Candidate]]
    restriction: Restriction
    zero: ZeroLevel
    modes: tuple[Recompute, ...]


def _batch_loop(op: Op) -> int:
    return next((i for i, loop in enumerate(op.loops) if loop.role is LoopRole.BATCH and loop.shardable), NONE)


def data_only(op: Op, table: Ints) -> Ints:
    """Every axis along the batch; ops without a batch are not split."""
    rows = table[(table == _batch_loop(op)).all(axis=1)]
    return rows if len(rows) else table[:1]


def megatron(op: Op, table: Ints) -> Ints:
    """The last axis along features, heads, experts or nothing, the others along the batch (Shoeybi et al. 2019)."""
    banned = [i for i, loop in enumerate(op.loops) if loop.role in {LoopRole.BATCH, LoopRole.SEQUENCE}]
    fits = ~np.isin(table[:, -1], banned) if table.shape[1] else np.ones(len(table), dtype=bool)
    rows = table[fits & (table[:, :-1] == _batch_loop(op)).all(axis=1)]
    return rows if len(rows) else table[:1]


def all_baselines() -> tuple[Baseline, ...]:
    """Pure data parallel, fully sharded, Megatron with tensor 8, Megatron 3-D."""
    none = (Recompute.NONE,)
    full = (Recompute.FULL,)
    return (
        Baseline("data parallel", _flat, data_only, ZeroLevel.NONE, none),
        Baseline("fully sharded", _flat, data_only, ZeroLevel.PARAMETERS, none),
        Baseline("megatron tensor 8", _tensor, megatron, ZeroLevel.NONE, none),
        Baseline("megatron 3-D", _three_d, megatron, ZeroLevel.OPTIMIZER, none),
        Baseline("megatron 3-D, recompute", _three_d, megatron, ZeroLevel.OPTIMIZER, full),
    )


def price_baselines(context: SearchContext) -> Iterator[tuple[str, Outcome | None, str]]:
    """Each baseline's name and plan, or why there is none: it does not apply, or does not fit."""
    for baseline in all_baselines():
        context.check_deadline()
        yield baseline.name, *_price(context, baseline)


def _price(context: SearchContext, baseline: Baseline) -> tuple[Outcome | None, str]:
    if baseline.modes == (Recompute.FULL,) and context.chain is None:
        return None, "the model has no repeated blocks to recompute"
    settings = replace(context.settings, state_shardings=(StateSharding(baseline.zero),))
    narrowed = replace(context, settings=settings, modes=baseline.modes, restriction=baseline.restriction)
    reason = "the batch or the device count does not divide that way"
    for candidate in baseline.candidates(context):
        result = solve_candidate(narrowed, candidate)
        if result.outcome:
            return result.outcome, ""
        if result.least_bytes < inf:
            reason = f"needs {format_memory(result.least_bytes, up=True)} per device"
    return None, reason


def _flat(context: SearchContext) -> Iterator[Candidate]:
    if batch_size(context.graph) % context.cluster.devices == 0:
        yield Candidate(1, mesh_of((context.cluster.devices,) if context.cluster.devices > 1 else ()))


def _tensor(context: SearchContext) -> Iterator[Candidate]:
    devices = context.cluster.devices
    if devices % TENSOR == 0 and batch_size(context.graph) % (devices // TENSOR) == 0:
        yield Candidate(1, mesh_of(tuple(n for n in (devices // TENSOR, TENSOR) if n > 1)))


def _three_d(context: SearchContext) -> Iterator[Candidate]:
    """Tensor 8, then the fewest stages that fit, data for the rest, microbatches of one sample per replica."""
    devices = context.cluster.devices
    batch = microbatch_limit(context.graph)
    if devices % TENSOR or context.chain is None:
        return
    for stages in divisors(devices // TENSOR):
        replicas = devices // TENSOR // stages
        if stages > 1 and stages <= context.chain.run.count and batch % replicas == 0:
            shape = tuple(n for n in (replicas, TENSOR) if n > 1)
            yield Candidate(stages, mesh_of(shape), batch // replicas, Schedule.ONE_F_ONE_B)

"""The tables of a plan: candidates, and what a rank of each stage holds and sends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from jupyter_autotrain.core.json import JsonValue
from jupyter_autotrain.core.sizes import format_bytes, format_memory
from jupyter_autotrain.parallel.plan.decision_costs import DecisionCosts
from jupyter_autotrain.parallel.plan.formatting import ms
from jupyter_autotrain.parallel.plan.plan_data import PlanData
from jupyter_autotrain.parallel.plan.traffic import sent_bytes
from jupyter_autotrain.parallel.search import Alternative, Cost

KINDS: Final = {
    "data parallel": "data",
    "fully sharded": "data",
    "megatron tensor 8": "model",
    "megatron 3-D": "hybrid",
    "megatron 3-D, recompute": "hybrid",
}


def candidate_rows(plan: PlanData) -> Iterator[dict[str, JsonValue]]:
    """The found plan, the well-known ones, then the best other outer choices."""
    found = Alternative(_outer(plan), plan.cost, True)
    yield _candidate("found", "found", found)
    for name, baseline in plan.solution.baselines.items():
        yield _candidate(name, KINDS.get(name, "other"), baseline)
    for other in plan.candidates[1:]:
        yield _candidate(other.what, "other", other)


def rank_rows(plan: PlanData, costs: DecisionCosts) -> Iterator[dict[str, JsonValue]]:
    """One row per stage: memory by kind, the limit, and bytes sent per axis."""
    size = plan.mesh.devices
    for rank, stage in zip(plan.cost.ranks, plan.stages, strict=True):
        device = plan.cluster.slowest(rank.stage * size, (rank.stage + 1) * size)
        yield {
            "stage": rank.stage,
            "device": stage.device,
            "ranks": rank.ranks,
            "blocks": stage.blocks,
            "parameter_bytes": rank.parameter_bytes,
            "gradient_bytes": rank.gradient_bytes,
            "optimizer_bytes": rank.optimizer_bytes,
            "activation_bytes": rank.activation_bytes,
            "peak_bytes": rank.peak_bytes,
            "limit_bytes": device.limit_bytes(plan.request.limits.memory_bytes),
            "sent_bytes": dict(sent_bytes(costs, rank.stage)),
        }


def _candidate(name: str, kind: str, found: Alternative) -> dict[str, JsonValue]:
    cost = found.cost
    times = cost_fields(cost) if cost else dict.fromkeys(_COST_KEYS)
    return {
        "name": name,
        "kind": kind,
        "what": _AXIS.sub("", found.what),
        "fits": found.fits,
        "reason": found.reason,
        **times,
    }


_COST_KEYS: Final = (
    "step_s",
    "compute_s",
    "communication_s",
    "bubble_s",
    "optimizer_s",
    "peak_memory_bytes",
    "sent_bytes",
)


_AXIS: Final = re.compile(r"\b[a-f]=(?=\d)")
"""Axes that no plan has named yet."""


def cost_fields(cost: Cost) -> dict[str, JsonValue]:
    """A plan's seconds and bytes by name."""
    return {key: None if getattr(cost, key) is None else float(getattr(cost, key)) for key in _COST_KEYS}


HEADS: Final = ("plan", "step", "memory per rank", "sent per rank", "split")


def comparison_rows(plan: PlanData) -> Iterator[tuple[str, ...]]:
    """The found plan beside the well-known ones, in words: a row for each, under `HEADS`."""
    for row in candidate_rows(plan):
        if row["kind"] != "other":
            step = row["step_s"]
            peak = row["peak_memory_bytes"]
            sent = row["sent_bytes"]
            words = (_cell(step, ms), _cell(peak, format_memory), _cell(sent, format_bytes))
            yield str(row["name"]), *words, str(row["what"] if row["fits"] else row["reason"])


def _cell(value: JsonValue, unit: Callable[[float], str]) -> str:
    return unit(value) if isinstance(value, float) else "-"


def _outer(plan: PlanData) -> str:
    parts = [str(plan.mesh)]
    if len(plan.stages) > 1:
        parts.append(f"{len(plan.stages)} stages, {plan.schedule}")
    if plan.microbatches > 1:
        parts.append(f"{plan.microbatches} microbatches")
    return ", ".join(parts)

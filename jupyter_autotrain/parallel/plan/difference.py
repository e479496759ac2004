"""Differences between two plans."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from jupyter_autotrain.agent.sizes import format_memory
from jupyter_autotrain.parallel.cost.memory import Recompute
from jupyter_autotrain.parallel.graph.graph import Op
from jupyter_autotrain.parallel.plan.formatting import aligned, html_table, ms
from jupyter_autotrain.parallel.plan.plan_data import PlanData, weights_of

HEADS: Final = ("what", "this plan", "the other")


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that differs; `count` ops of equal path differ alike (0 for the plan as a whole)."""

    what: str
    before: str
    after: str
    count: int = 0


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """All changes, the plan's own first; empty when both plans do the same. `str` of it is a table."""

    changes: tuple[Change, ...]

    def __bool__(self) -> bool:
        return bool(self.changes)

    def __str__(self) -> str:
        if not self.changes:
            return "The plans do the same."
        return aligned(HEADS, self._rows())

    __repr__ = __str__

    def _rows(self) -> list[tuple[str, ...]]:
        return [(c.what + (f" (x{c.count})" if c.count > 1 else ""), c.before, c.after) for c in self.changes]

    def _repr_html_(self) -> str:
        return html_table(HEADS, self._rows()) if self.changes else f"<p>{self}</p>"


def difference(this: PlanData, other: PlanData) -> PlanDifference:
    """Return changes from `this` to `other`; layers whose ops change alike are one change."""
    ours = _whole(this)
    theirs = _whole(other)
    changes = [Change(key, ours[key], theirs[key]) for key in ours if ours[key] != theirs[key]]
    here = _decisions(this)
    there = _decisions(other)
    found: Counter[tuple[str, str, str]] = Counter()
    for name in (*here, *(n for n in there if n not in here)):
        before = here.get(name, "not there")
        after = there.get(name, "not there")
        if before != after:
            found[_pattern(name), before, after] += 1
    changes += [Change(*key, count) for key, count in found.items()]
    return PlanDifference(tuple(changes))


def _whole(plan: PlanData) -> dict[str, str]:
    cost = plan.cost
    return {
        "cluster": str(plan.cluster),
        "plan": plan.solution.name,
        "mesh": str(plan.mesh),
        "stages": " + ".join(str(stage.blocks) for stage in plan.stages),
        "microbatches": str(plan.microbatches),
        "schedule": str(plan.schedule) if len(plan.stages) > 1 else "no stages",
        "step": ms(cost.step_s),
        "compute": ms(cost.compute_s),
        "communication": ms(cost.communication_s),
        "bubble": ms(cost.bubble_s),
        "memory per rank": format_memory(cost.peak_memory_bytes),
    }


def _decisions(plan: PlanData) -> dict[str, str]:
    return {op.name: _decision(plan, op) for op in plan.graph.ops}


def _decision(plan: PlanData, op: Op) -> str:
    """Return how an op is cut, whatever the mesh is called: `batch/4 feature/8, ZeRO-1`."""
    decided = plan.strategies[op.name]
    states = decided.states
    cuts: dict[str, int] = {}
    for loop, size in zip(decided.split_loops(op), plan.mesh.shape, strict=True):
        if loop:
            cuts[str(loop.role)] = cuts.get(str(loop.role), 1) * size
    parts = [" ".join(f"{key}/{size}" for key, size in sorted(cuts.items())) or "whole"]
    if states.zero and weights_of(plan.graph, op):
        parts.append(f"ZeRO-{int(states.zero)}")
    if states.offload:
        parts.append("table on host" if states.host_table else "optimizer on host")
    if decided.recompute is not Recompute.NONE:
        parts.append(f"recompute {decided.recompute}")
    return ", ".join(parts)


def _pattern(name: str) -> str:
    return ".".join("*" if part.isdigit() else part for part in name.split("."))

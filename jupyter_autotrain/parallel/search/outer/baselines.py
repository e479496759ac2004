"""Well-known plans, as an expert tries them: each with its best degrees, microbatches and recompute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from operator import attrgetter
from typing import Final

from jupyter_autotrain.agent.sizes import format_memory
from jupyter_autotrain.parallel.cost.memory import ZeroLevel
from jupyter_autotrain.parallel.search.outer.layouts import Layout, Split
from jupyter_autotrain.parallel.search.outer.uniform import HYBRID, UniformPlan, UniformPlans
from jupyter_autotrain.parallel.search.stage.outcome import Outcome

WORSE = 2  # numbers of microbatches that make a plan slower before more are given up
TENSOR: Final = frozenset((Split.TENSOR, Split.SEQUENCE))


@dataclass(frozen=True, slots=True)
class Baseline:
    """A named family of uniform plans, of which the fastest that fits is taken; `split` are its inner axes."""

    name: str
    splits: frozenset[Split]
    staged: bool
    holds: Callable[[UniformPlan], bool]


def _is_ddp(plan: UniformPlan) -> bool:
    return plan.states.zero is ZeroLevel.NONE


def _is_fsdp(plan: UniformPlan) -> bool:
    return plan.states.zero is ZeroLevel.PARAMETERS


def _is_megatron(plan: UniformPlan) -> bool:
    return plan.layout.dimensions > 0 and plan.states.zero <= ZeroLevel.OPTIMIZER


BASELINES: Final = (
    Baseline("DDP", frozenset((Split.NONE,)), False, _is_ddp),
    Baseline("FSDP", frozenset((Split.NONE,)), False, _is_fsdp),
    Baseline("HSDP", frozenset((Split.HYBRID,)), False, lambda plan: plan.states == HYBRID),
    Baseline("FSDP + tensor", TENSOR, False, _is_fsdp),
    Baseline("Megatron", TENSOR | {Split.NONE}, True, _is_megatron),
)


def price_baselines(uniform: UniformPlans) -> Iterator[tuple[str, Outcome | None, str]]:
    """Yield each baseline's name and plan, or why there is none: it does not apply, or does not fit."""
    for baseline in BASELINES:
        found = _Fastest(uniform, baseline)
        for layout in sorted(_layouts(uniform, baseline), key=found.bound_s):
            uniform.context.progress.check()
            found.look_at(layout)
        yield baseline.name, uniform.outcome(found.best) if found.best else None, found.reason()


def _layouts(uniform: UniformPlans, baseline: Baseline) -> list[Layout]:
    every = list(uniform.layouts())
    without = {Split.TENSOR} if any(layout.split is Split.SEQUENCE for layout in every) else set()
    splits = baseline.splits - without  # sequence parallelism costs nothing beside tensor parallelism
    return [layout for layout in every if layout.split in splits and (baseline.staged or layout.stages == 1)]


@dataclass
class _Fastest:
    """The fastest plan of a family so far, and the least memory of those that do not fit."""

    uniform: UniformPlans
    baseline: Baseline
    best: UniformPlan | None = None
    least_bytes: float = inf

    def bound_s(self, layout: Layout) -> float:
        """Return the seconds of a layout's kernels alone, at least."""
        return min(map(self.uniform.context.compute_bound_s, self.uniform.candidates(layout)), default=inf)

    def look_at(self, layout: Layout) -> None:
        """Price a layout's candidates by rising microbatches, until more of them have made it slower twice."""
        worse = 0
        for candidate in self.uniform.candidates(layout):
            if worse == WORSE or (self.best and self.bound_s(layout) >= self.best.step_s):
                return
            held = list(filter(self.baseline.holds, self.uniform.priced(layout, candidate)))
            self.least_bytes = min([self.least_bytes, *map(attrgetter("bytes"), held)])
            fitting = sorted((plan for plan in held if plan.fits), key=attrgetter("step_s", "bytes"))
            if fitting and (self.best is None or fitting[0].step_s < self.best.step_s):
                self.best = fitting[0]
            elif fitting:
                worse += 1

    def reason(self) -> str:
        """Return why there is no plan; "" where there is one."""
        if self.best:
            return ""
        if self.least_bytes < inf:
            return f"needs {format_memory(self.least_bytes, up=True)} per device at least"
        if self.baseline.splits == {Split.HYBRID} and len(self.uniform.context.cluster.levels) == 1:
            return "needs more than one chassis"
        return "the batch, the layers or the devices do not divide that way"

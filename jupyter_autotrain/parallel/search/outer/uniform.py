"""Uniform plans, such as a person writes by hand: one treatment for all layers, priced without any solver.

A uniform plan splits samples over one axis (or two tiers of it, for hybrid sharding), may split one more thing over an
inner axis, cuts the layers into equal stages, and keeps all parameters and all layers alike. Since nothing is left to
choose for single ops, its cost is a sum over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from jupyter_autotrain.parallel.cost.memory import Recompute, Schedule, ZeroLevel
from jupyter_autotrain.parallel.cost.model import Restriction
from jupyter_autotrain.parallel.cost.states import StateSharding
from jupyter_autotrain.parallel.search.factors.factors import CostBreakdown
from jupyter_autotrain.parallel.search.outer.context import SearchContext
from jupyter_autotrain.parallel.search.outer.layouts import Layout, Split, open_splits, restriction_to
from jupyter_autotrain.parallel.search.outer.uniform_costs import StageShares
from jupyter_autotrain.parallel.search.request.request import (
    Candidate,
    StrategySpace,
    batch_size,
    divisors,
    mesh_of,
    microbatch_counts,
    microbatch_limit,
    stage_counts,
)
from jupyter_autotrain.parallel.search.stage.outcome import Outcome

HYBRID = StateSharding(ZeroLevel.PARAMETERS, inner=True)
MOST_DIMENSIONS = 2  # of a layout beside data: stages, and an inner axis
CHUNKS = 2  # of layers per device, where the schedule interleaves them


@dataclass(frozen=True, slots=True)
class _Kind:
    """Uniform plans that differ in degrees and microbatches only; `axes`: whether there is each axis."""

    split: Split
    stages: int
    axes: tuple[bool, bool]
    states: StateSharding
    mode: Recompute


@dataclass(frozen=True, slots=True)
class UniformPlan:
    """A priced uniform plan; `fits` tells whether every stage keeps within its memory."""

    layout: Layout
    candidate: Candidate
    states: StateSharding
    mode: Recompute
    step_s: float
    bytes: float
    fits: bool


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes that the fullest rank of a uniform plan holds, and whether every rank keeps within its memory."""

    parameters: float
    gradients: float
    optimizer: float
    activations: float
    fits: bool


@dataclass
class UniformPlans:
    """The uniform plans of a search, each candidate priced once.

    Attributes:
        context: The space of the search.
        space: Numbers of stages and microbatches, schedules, levels and modes that are open.
        mesh: The only shape of a mesh; None: any.
        accepts: Whether a plan may be one of them; None: every plan may. What is refused once is not looked at any
            further in other degrees.
    """

    context: SearchContext
    space: StrategySpace
    mesh: tuple[int, ...] | None = None
    accepts: Callable[[Outcome], bool] | None = None
    _restrictions: dict[tuple[Split, bool, bool], Restriction] = field(default_factory=dict, repr=False)
    _priced: dict[tuple[Layout, Candidate], tuple[UniformPlan, ...]] = field(default_factory=dict, repr=False)

    def layouts(self, most_dimensions: int = MOST_DIMENSIONS) -> Iterator[Layout]:
        """Yield every layout that is open on these devices, with so many kinds of parallelism at most."""
        few = (layout for layout in self._open() if layout.dimensions <= most_dimensions)
        return self._accepted(few) if self.accepts else few

    def _accepted(self, layouts: Iterable[Layout]) -> Iterator[Layout]:
        for layout in layouts:
            self.context.progress.check()
            is_open = next(self.candidates(layout), None) is not None
            if is_open and any(self.may_be(layout, states, self.modes[0]) for states in self.shardings(layout)):
                yield layout

    def may_be(self, layout: Layout, states: StateSharding, mode: Recompute) -> bool:
        """Return whether a plan of a kind may be one of these, by the first layout of that kind."""
        axes = (layout.data > 1, layout.inner > 1)
        kind = _Kind(layout.split, layout.stages, axes, states, mode)
        return self.context.cache.get(bool, kind, lambda: self._accepts_first(layout, states, mode))

    def _accepts_first(self, layout: Layout, states: StateSharding, mode: Recompute) -> bool:
        for candidate in islice(self.candidates(layout), 1):
            for plan in self.priced(layout, candidate):
                if (plan.states, plan.mode) == (states, mode):
                    return self.is_accepted(plan)
        return False

    def is_accepted(self, plan: UniformPlan) -> bool:
        """Return whether a plan may be one of these."""
        return self.accepts is None or self.accepts(self.outcome(plan))

    def _open(self) -> Iterator[Layout]:
        blocks = self.context.chain.run.count if self.context.chain else 1
        for stages in stage_counts(self.context.cluster.devices, self.space, blocks):
            if stages == 1 or blocks % stages == 0:
                size = self.context.cluster.devices // stages
                every = [Layout(stages, Split.NONE, size), *self._with_inner_axis(stages, size)]
                yield from filter(self._is_open, every)

    def _with_inner_axis(self, stages: int, size: int) -> Iterator[Layout]:
        """Yield layouts whose inner axis stays within a chassis."""
        chassis = self.context.cluster.levels[0].size
        shares_out = ZeroLevel.PARAMETERS in self.space.zero
        if stages == 1 and size > chassis > 1 and size % chassis == 0 and shares_out:
            yield Layout(stages, Split.HYBRID, size // chassis, chassis)
        for inner in divisors(chassis)[1:]:
            if size % inner == 0:
                for split in open_splits(self.context.graph):
                    yield Layout(stages, split, size // inner, inner)

    def _is_open(self, layout: Layout) -> bool:
        shape = mesh_of((layout.data, layout.inner)).shape
        divides_batch = batch_size(self.context.graph) % layout.sample_ranks == 0
        return divides_batch and len(shape) <= self.space.max_axes and self.mesh in {None, shape}

    def candidates(self, layout: Layout) -> Iterator[Candidate]:
        """Yield a layout's candidates: numbers of microbatches, and schedules where there are stages."""
        mesh = mesh_of((layout.data, layout.inner))
        samples = max(1, microbatch_limit(self.context.graph) // layout.sample_ranks)
        for count in self.space.microbatches or microbatch_counts(samples):
            if samples % count:
                continue
            if layout.stages == 1:
                yield Candidate(1, mesh, count)
                continue
            if Schedule.ONE_F_ONE_B in self.space.schedules:
                yield Candidate(layout.stages, mesh, count, Schedule.ONE_F_ONE_B)
            assert self.context.chain is not None
            even = self.context.chain.run.count % (layout.stages * CHUNKS) == 0 and count % layout.stages == 0
            if even and Schedule.INTERLEAVED in self.space.schedules:
                yield Candidate(layout.stages, mesh, count, Schedule.INTERLEAVED, CHUNKS)

    def priced(self, layout: Layout, candidate: Candidate) -> tuple[UniformPlan, ...]:
        """Return a candidate's plans, one for each way to keep parameters and each recompute mode."""
        key = (layout, candidate)
        if key not in self._priced:
            self._priced[key] = tuple(self._price(layout, candidate))
        return self._priced[key]

    def _price(self, layout: Layout, candidate: Candidate) -> Iterator[UniformPlan]:
        shares = StageShares.of(self._kept_so(layout), candidate)
        step_s = shares.step_s()
        held = shares.bytes()
        fits = np.asarray((held <= shares.limits()).all(axis=0))
        peak = held.max(axis=0)
        for row, states in enumerate(self.shardings(layout)):
            for column, mode in enumerate(shares.modes):
                at = (row, column)
                yield UniformPlan(layout, candidate, states, mode, float(step_s[at]), float(peak[at]), bool(fits[at]))

    def held(self) -> Iterator[Held]:
        """Yield what plans hold that hold least: cut into the most microbatches, with everything shared out."""
        for layout in self.layouts():
            for candidate in list(self.candidates(layout))[-1:]:
                shares = StageShares.of(self._kept_so(layout), candidate)
                held = shares.bytes()
                fits = np.asarray((held <= shares.limits()).all(axis=0))
                for row, column in np.ndindex(*fits.shape):
                    stage = held[:, row, column].argmax()
                    load = CostBreakdown(*shares.loads[stage, row, column].tolist())
                    activations = load.act_bytes * float(shares.alive()[stage])
                    states = (load.parameter_bytes, load.gradient_bytes, load.optimizer_bytes)
                    yield Held(*states, activations, bool(fits[row, column]))

    def outcome(self, plan: UniformPlan) -> Outcome:
        """Return a plan as the solvers give theirs."""
        shares = StageShares.of(self._kept_so(plan.layout), plan.candidate)
        row = self.shardings(plan.layout).index(plan.states)
        stages = shares.stages(row, shares.modes.index(plan.mode), plan.states)
        bound_s = self.context.compute_bound_s(plan.candidate)
        return Outcome(plan.candidate, tuple(stages), bound_s, tuple(shares.models))

    def shardings(self, layout: Layout) -> tuple[StateSharding, ...]:
        """Return the ways to keep parameters that a layout has."""
        if layout.split is Split.HYBRID:
            return (HYBRID,)
        levels = self.space.zero if layout.sample_ranks > 1 else (min(self.space.zero),)
        return tuple(map(StateSharding, levels))

    def _kept_so(self, layout: Layout) -> SearchContext:
        """Return the context that is narrowed to a layout, with the ways to keep parameters that it may use."""
        settings = replace(self.context.settings, state_shardings=self.shardings(layout))
        return replace(self.narrowed(layout), settings=settings, modes=self.modes)

    @property
    def modes(self) -> tuple[Recompute, ...]:
        """Recompute modes: only layers recompute."""
        return self.context.modes if self.context.chain else (Recompute.NONE,)

    def narrowed(self, layout: Layout) -> SearchContext:
        """Return the context in which every op has the one strategy of a layout."""
        key = (layout.split, layout.data > 1, layout.inner > 1)
        if key not in self._restrictions:
            self._restrictions[key] = restriction_to(self.context.graph, layout)
        return replace(self.context, restriction=self._restrictions[key])

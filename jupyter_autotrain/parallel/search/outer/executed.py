"""Plans that run, for the search: layouts, levels and recompute modes that the table of choices has as executed.

Each is searched on its own: of each op one strategy, one way to keep all parameters, and the recompute mode of each
layer open. What `apply` learns to run is found here as soon as its row in `parallel.choices` says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from jupyter_autotrain.parallel import choices
from jupyter_autotrain.parallel.search.outer.branch_and_bound import BranchAndBound, Part
from jupyter_autotrain.parallel.search.outer.context import SearchContext
from jupyter_autotrain.parallel.search.outer.uniform import UniformPlans
from jupyter_autotrain.parallel.search.request.request import Candidate, Method, Mode, SearchRequest, StrategySpace
from jupyter_autotrain.parallel.search.solution import decision_of
from jupyter_autotrain.parallel.search.stage.outcome import Outcome


def runs(outcome: Outcome) -> bool:
    """Return whether a plan has executed choices only."""
    return choices.runs(outcome.models[0].graph, decision_of(outcome))


def is_searched_so(request: SearchRequest) -> bool:
    """Return whether a request is answered with a plan that runs, if there is one, by a search among those alone."""
    searched = request.mode in {Mode.AUTO_PARALLEL, Mode.HYBRID_PARALLEL} and request.search is not Method.EXHAUSTIVE
    return request.execute and searched and not request.pins.ops


def uniform_plans(request: SearchRequest, context: SearchContext, space: StrategySpace) -> UniformPlans:
    """Return the uniform plans that may be the answer to a request."""
    is_open = None if not is_searched_so(request) else runs
    return UniformPlans(context, space, request.pins.mesh, is_open)


def executed_parts(uniform: UniformPlans) -> Iterator[Part]:
    """Yield what is searched at once: the candidates of a layout, with one way to keep parameters."""
    for layout in uniform.layouts():
        candidates = list(uniform.candidates(layout))
        for sharding in uniform.shardings(layout):
            modes = tuple(mode for mode in uniform.modes if uniform.may_be(layout, sharding, mode))
            if modes:
                settings = replace(uniform.context.settings, state_shardings=(sharding,))
                yield replace(uniform.narrowed(layout), settings=settings, modes=modes), candidates


def first_executed(search: BranchAndBound, uniform: UniformPlans, *, at_once: bool = False) -> None:
    """Record the fastest uniform plan that runs, which takes no solver; the bound is that of the kernels alone.

    Args:
        search: What to record it in.
        uniform: The plans that run.
        at_once: Whether to take the first that fits.

    Raises:
        OutOfTime: The time is spent.
    """
    candidates = list[Candidate]()
    for layout in uniform.layouts():
        for candidate in uniform.candidates(layout):
            if at_once and search.best:
                return
            uniform.context.progress.check()
            candidates.append(candidate)
            plans = uniform.priced(layout, candidate)
            search.least_bytes = min([search.least_bytes, *(plan.bytes for plan in plans)])
            faster = [plan for plan in plans if plan.fits and plan.step_s < search.cutoff_s]
            for plan in sorted(faster, key=lambda plan: (plan.step_s, plan.bytes)):
                if search.update_incumbent(uniform.outcome(plan)):
                    break
    search.bound_s = min(map(uniform.context.compute_bound_s, candidates), default=inf)

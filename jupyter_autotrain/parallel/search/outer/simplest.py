"""The simplest plan within a share of the best: what the cost model cannot tell apart is decided by simplicity.

The order of simplicity is total, see `Simplicity`. Plans are looked at in that order: uniform ones first, by the number
of kinds of parallelism; then those that keep one data axis but treat some ops, layers or parameters apart; then what
the search has seen. A greater share only adds plans to choose from, so that it never gives a more complex one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from jupyter_autotrain.parallel.cost.memory import Recompute
from jupyter_autotrain.parallel.cost.states import StateSharding
from jupyter_autotrain.parallel.search.naming import (
    INNER_WORDS,
    axis_sizes,
    different_axes,
    named_mesh,
    ops_apart,
    recompute_modes,
    state_shardings,
)
from jupyter_autotrain.parallel.search.outer.branch_and_bound import solve_candidate
from jupyter_autotrain.parallel.search.outer.context import SearchContext
from jupyter_autotrain.parallel.search.outer.device_subset_search import DeviceSubsetSearch
from jupyter_autotrain.parallel.search.outer.executed import uniform_plans
from jupyter_autotrain.parallel.search.outer.layouts import Layout, Split
from jupyter_autotrain.parallel.search.outer.progress import ProgressMonitor
from jupyter_autotrain.parallel.search.outer.search_run import AT_ONCE_OPS, SearchRun
from jupyter_autotrain.parallel.search.outer.uniform import UniformPlan, UniformPlans
from jupyter_autotrain.parallel.search.request.request import Candidate, Method, Mode, SearchRequest
from jupyter_autotrain.parallel.search.stage.outcome import Outcome

PUBLISHED = frozenset(("A100-40GB", "A100-80GB"))
"""Devices whose predicted step times a test holds to published ones."""
SHARE_PUBLISHED = 0.03
SHARE = 0.05
LEAST_GAIN = 0.05  # of devices, for them to be used
ROOM = 0.1  # share of the memory that is left over where memory is not tight
KINDS = 2  # of parallelism that a uniform plan may have beside data parallelism
MOST_SOLVED = 24  # plans that treat something apart, each a few milliseconds


def default_share(devices: Iterable[str]) -> float:
    """Return the error of the cost model on some devices, below which it cannot tell plans apart."""
    return SHARE_PUBLISHED if PUBLISHED.issuperset(devices) else SHARE


@dataclass(frozen=True, slots=True, order=True)
class Simplicity:
    """The place of a plan in the order of simplicity: what comes first here counts first, less is simpler.

    Attributes:
        tiers: Mesh axes beyond one for each kind of parallelism, which some op splits otherwise.
        levels: Ways in which parameters are kept (ZeRO levels, on the host) beyond one.
        treatments: Ways in which equal layers are treated beyond one.
        apart: Ops that an axis splits along something else than it is named for; those of equal layers once.
        uneven: Whether stages hold different numbers of layers.
        kinds: Tensor, pipeline, expert and context parallelism, each 2; hybrid sharding 1.
        tight: Whether less than a tenth of the memory is left over.
        extras: Accumulation, recompute, offload and interleaved layers, one each.
        bytes: Peak memory of a rank.
        step_s: Seconds of a step.
        name: The candidate's.
    """

    tiers: int
    levels: int
    treatments: int
    apart: int
    uneven: bool
    kinds: int
    tight: bool
    extras: int
    bytes: float
    step_s: float
    name: str

    @classmethod
    def of_uniform(cls, plan: UniformPlan, limit_bytes: float) -> Simplicity:
        """Return the place of a uniform plan."""
        extras = _extras(plan.candidate, {plan.mode}, {plan.states})
        kinds = 2 * plan.layout.dimensions + (plan.layout.split is Split.HYBRID)
        tight = plan.bytes > (1 - ROOM) * limit_bytes
        name = f"{plan.candidate} {plan.layout.split} {plan.states} {plan.mode}"
        return cls(0, 0, 0, 0, False, kinds, tight, extras, plan.bytes, plan.step_s, name)

    @classmethod
    def of(cls, outcome: Outcome, limit_bytes: float) -> Simplicity:
        """Return the place of any plan."""
        states = state_shardings(outcome)
        words = axis_sizes(named_mesh(outcome.models[0], outcome.stages[0])).keys()
        used = sum(word in words for word in INNER_WORDS) + (outcome.candidate.stages > 1)
        return cls(
            tiers=len(different_axes(outcome)) - len(words),
            levels=max(0, len(states) - 1),
            treatments=_treatments(outcome),
            apart=len(ops_apart(outcome)),
            uneven=len({len(stage.blocks) for stage in outcome.stages}) > 1,
            kinds=2 * used + any(sharding.inner for sharding in states),
            tight=outcome.bytes > (1 - ROOM) * limit_bytes,
            extras=_extras(outcome.candidate, set(recompute_modes(outcome)), states),
            bytes=outcome.bytes,
            step_s=outcome.step_s,
            name=str(outcome.candidate),
        )


def _extras(candidate: Candidate, modes: set[Recompute], states: set[StateSharding]) -> int:
    again = bool(modes - {Recompute.NONE})
    offload = any(sharding.offload for sharding in states)
    return (candidate.microbatches > 1 and candidate.stages == 1) + again + offload + (candidate.chunks > 1)


def _treatments(outcome: Outcome) -> int:
    """Return ways in which layers are treated, beyond one for each kind of layer."""
    chosen = {op: choice for stage in outcome.stages for op, choice in stage.choices.items()}
    more = 0
    for run in outcome.models[0].graph.repeated_blocks:
        firsts = range(run.start, run.start + run.length * run.count, run.length)
        ways = {tuple(map(chosen.get, range(first, first + run.length))) for first in firsts}
        more += len(ways) - 1
    return more


def simplest_answer(search_run: SearchRun, subset_search: DeviceSubsetSearch) -> Outcome:
    """Return the answer of a search: the best plan, or the simplest within the share of it that the request allows.

    Devices that gain less than `LEAST_GAIN` are left out.
    """
    best = subset_search.best.best
    assert best is not None
    request = search_run.request
    if not _is_free(request):
        return best
    context = replace(subset_search.best.context, progress=ProgressMonitor())
    seen = [outcome for outcome in subset_search.best.outcomes if outcome.models[0].cluster == context.cluster]
    is_huge = context.chain is None and len(context.graph.ops) > AT_ONCE_OPS
    quick = is_huge or not search_run.search.complete
    effort = 0.0 if quick else request.limits.effort
    answer = simplest(uniform_plans(request, context, search_run.space), best, seen, request.simplicity, effort)
    if request.space.all_devices or effort < 1:
        return answer
    return _on_fewer_devices(search_run, subset_search, answer)


def _is_free(request: SearchRequest) -> bool:
    """Return whether a request leaves a choice between plans, and asks for a simple one."""
    searched = request.mode in {Mode.AUTO_PARALLEL, Mode.HYBRID_PARALLEL} and request.search is not Method.EXHAUSTIVE
    return request.simplicity > 0 and searched and request.pins.mesh is None and not request.pins.ops


def _on_fewer_devices(search_run: SearchRun, subset_search: DeviceSubsetSearch, answer: Outcome) -> Outcome:
    """Return the simplest plan on the fewest devices that is nearly as fast as the answer, else the answer."""
    most_s = answer.step_s * (1 + LEAST_GAIN)
    for part in subset_search.nearly_as_fast(most_s, answer.models[0].cluster.devices):
        context = replace(search_run.search.context.for_cluster(part), progress=ProgressMonitor())
        found = simplest_uniform(uniform_plans(search_run.request, context, search_run.space), most_s)
        if found:
            return found
    return answer


def simplest(
    uniform: UniformPlans, best: Outcome, seen: Iterable[Outcome], share: float, effort: float = 1.0
) -> Outcome:
    """Return the simplest plan whose step takes at most (1 + share) times that of the best.

    Args:
        uniform: The uniform plans on the devices of the best.
        best: The best plan.
        seen: Other plans on these devices that the search found.
        share: Above 0.
        effort: As of `SearchLimits`; below 1 only data parallelism is looked at beside those seen.
    """
    most_s = best.step_s * (1 + share)
    most_kinds = KINDS if effort >= 1 else 0
    found = simplest_uniform(uniform, most_s, most_kinds)
    return found or _simplest_of(uniform, [best, *seen], most_s, MOST_SOLVED if effort >= 1 else 0)


def simplest_uniform(uniform: UniformPlans, most_s: float, most_kinds: int = KINDS) -> Outcome | None:
    """Return the simplest uniform plan, by rising numbers of kinds of parallelism; None where none is fast enough."""
    by_kinds: dict[int, list[Layout]] = {}
    for layout in uniform.layouts(most_kinds):
        by_kinds.setdefault(2 * layout.dimensions + (layout.split is Split.HYBRID), []).append(layout)
    for _, layouts in sorted(by_kinds.items()):
        found = [plan for layout in layouts for plan in _fast_enough(uniform, layout, most_s)]
        limits = uniform.context.limits
        found.sort(key=lambda plan: Simplicity.of_uniform(plan, max(limits(plan.candidate))))
        answer = next(filter(uniform.is_accepted, found), None)
        if answer:
            return uniform.outcome(answer)
    return None


def _fast_enough(uniform: UniformPlans, layout: Layout, most_s: float) -> Iterator[UniformPlan]:
    for candidate in uniform.candidates(layout):
        if uniform.context.compute_bound_s(candidate) <= most_s:
            priced = uniform.priced(layout, candidate)
            for plan in priced:
                if plan.fits and plan.step_s <= most_s:
                    yield plan


def _simplest_of(uniform: UniformPlans, seen: list[Outcome], most_s: float, most_solved: int) -> Outcome:
    """Return the simplest of the plans seen and of some that treat something apart on a mesh of a uniform one."""
    solved = islice(_apart(uniform, most_s), most_solved) if uniform.context.chain and not uniform.accepts else ()
    fast = [outcome for outcome in (*seen, *solved) if outcome.step_s <= most_s]
    limits = uniform.context.limits
    answer: Outcome = min(fast, key=lambda outcome: Simplicity.of(outcome, max(limits(outcome.candidate))))
    return answer


def _apart(uniform: UniformPlans, most_s: float) -> Iterator[Outcome]:
    """Yield plans on the meshes of uniform ones in which layers and parameters, or ops, need not be treated alike."""
    layouts = sorted(uniform.layouts(), key=lambda layout: layout.dimensions)
    looked_at: set[Candidate] = set()
    for layout in layouts:
        for candidate in uniform.candidates(layout):
            if uniform.context.compute_bound_s(candidate) <= most_s:
                narrowed = [uniform.narrowed(layout)] if layout.split is not Split.HYBRID else []
                if candidate not in looked_at:
                    narrowed += [uniform.context, *_kept_alike(uniform.context)]
                looked_at.add(candidate)
                results = (solve_candidate(context, candidate) for context in narrowed)
                yield from (result.outcome for result in results if result.outcome)


def _kept_alike(context: SearchContext) -> Iterator[SearchContext]:
    """Yield the contexts in which all parameters are kept alike, and nothing is recomputed."""
    modes = (Recompute.NONE,) if Recompute.NONE in context.modes else context.modes[:1]
    for sharding in context.settings.state_shardings:
        settings = replace(context.settings, state_shardings=(sharding,))
        yield replace(context, settings=settings, modes=modes)

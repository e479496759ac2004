"""Blocks are shared out among pipeline stages as memory allows, under a bound that holds for every partition."""

from itertools import product
from math import inf

import pytest

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.errors import InfeasibleError
from jupyter_autotrain.parallel.cost.memory import Recompute, Schedule
from jupyter_autotrain.parallel.graph.prepare import prepare
from jupyter_autotrain.parallel.search import Pins, SearchLimits, SearchRequest, StrategySpace, solve
from jupyter_autotrain.parallel.search.factors.lagrangian import Bracket, DualPoint, NoPlan, Relaxation, maximise_dual
from jupyter_autotrain.parallel.search.outer.progress import ProgressMonitor
from jupyter_autotrain.parallel.search.outer.search_run import SearchRun
from jupyter_autotrain.parallel.search.stage.partition_solver import solve_partition, solve_partitions
from tests.example_graphs import gpt

GRAPH = prepare(gpt(width=256, layers=12, heads=8, sequence=512, batch=64, vocabulary=1000))
PINS = Pins(stages=4, microbatches=8, schedule=Schedule.ONE_F_ONE_B, recompute=Recompute.NONE)


def piped(memory_bytes, pins=PINS):
    return solve(
        GRAPH, "4xA100", SearchRequest(pins=pins, baselines=False, limits=SearchLimits(memory_bytes=memory_bytes))
    )


def test_where_an_even_share_does_not_fit_early_stages_hold_fewer_blocks():
    roomy = piped(1e9)
    tight = piped(0.4e9)
    assert [stage.blocks for stage in roomy.decision.stages] == [3, 3, 3, 3]
    assert tight.decision.stages[0].blocks < 3
    assert tight.cost.peak_memory_bytes <= 0.4e9
    assert tight.cost.step_s > roomy.cost.step_s


def test_the_least_memory_of_a_pipeline_does_and_less_does_not():
    with pytest.raises(InfeasibleError) as refused:
        piped(0.2e9)
    least = refused.value.least_memory_bytes
    assert piped(least).cost.peak_memory_bytes <= least
    with pytest.raises(InfeasibleError):
        piped(least * 0.98)


@pytest.mark.parametrize("schedule", [Schedule.ONE_F_ONE_B, Schedule.GPIPE])
@pytest.mark.parametrize("memory_bytes", [inf, 0.6e9, 0.35e9, 0.25e9])
def test_no_partition_beats_the_bound_at_any_multiplier(schedule, memory_bytes):
    graph = prepare(gpt(width=256, layers=6, heads=8, sequence=512, batch=64, vocabulary=20000))
    asked = SearchRequest(
        pins=Pins(stages=3, schedule=schedule),
        space=StrategySpace(microbatches=(4, 8)),
        limits=SearchLimits(memory_bytes),
    )
    search_run = SearchRun.of(graph, ClusterSpec.parse("3x2xA100"), asked, ProgressMonitor(lambda: 0.0))
    shares = [counts for counts in product(range(1, 5), repeat=3) if sum(counts) == 6]
    for candidate in search_run.candidates:
        pipeline = search_run.search.context.pipeline(candidate)
        best_s = min(reached_s(pipeline, counts) for counts in shares)
        multipliers = [0.0, *(pipeline.multiplier() * times for times in (0.3, 1.0, 3.0)), 1e-10, 1e-9]
        assert max(map(pipeline.bound_within_s, multipliers)) <= best_s * (1 + 1e-9), candidate
        if best_s < inf:
            assert reached_s(pipeline) <= 1.25 * best_s, candidate


def reached_s(pipeline, counts=None):
    """Seconds of a step with so many blocks per stage, else of the partition chosen; infinite where it does not fit."""
    try:
        outcome = solve_partitions(pipeline) if counts is None else solve_partition(pipeline, counts)
    except NoPlan:
        return inf
    return outcome.step_s


def test_time_for_proof_changes_the_gap_and_never_makes_a_plan_slower():
    asked = [
        SearchRequest(limits=SearchLimits(memory_bytes=3e9, proof_s=seconds), baselines=False) for seconds in (0.0, inf)
    ]
    graph = prepare(gpt(width=1024, layers=8, heads=16, sequence=512, batch=64, vocabulary=8000))
    short, whole = (solve(graph, "2x8xA100", request) for request in asked)
    assert short.bound_s <= whole.bound_s <= whole.cost.step_s <= short.cost.step_s
    assert short.gap >= whole.gap


def test_a_bound_that_no_multiplier_betters_keeps_its_own():
    heavy = DualPoint(1.0, 10.0, "heavy")
    light = DualPoint(9.0, 1.0, "light")
    found = maximise_dual(
        lambda multiplier: Relaxation(1.0, heavy), Bracket(heavy, light, 5.0, multiplier=0.7), limit=4.0
    )
    assert (found.bound_s, found.multiplier) == (5.0, 0.7)

"""Every plan holds every op once: partitions of blocks over stages lose nothing, whatever the memory and the counts."""

from dataclasses import replace
from itertools import product
from math import inf
from random import Random

import numpy as np
import pytest

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.errors import InfeasibleError, InvariantError
from jupyter_autotrain.parallel.cost.memory import Recompute, Schedule
from jupyter_autotrain.parallel.graph.prepare import prepare
from jupyter_autotrain.parallel.search import Pins, SearchLimits, SearchRequest, solve
from jupyter_autotrain.parallel.search.outer.progress import ProgressMonitor
from jupyter_autotrain.parallel.search.outer.search_run import SearchRun
from jupyter_autotrain.parallel.search.stage.outcome import check_blocks, check_cover
from jupyter_autotrain.parallel.search.stage.partition import minimax_partition
from jupyter_autotrain.parallel.search.stage.partition_solver import _lightest, solve_partition
from tests.example_graphs import gpt

SIZES = {"width": 128, "heads": 4, "sequence": 128, "batch": 64, "vocabulary": 512}
ONE_F_ONE_B = Schedule.ONE_F_ONE_B


def piped(layers, stages, microbatches, schedule=ONE_F_ONE_B, recompute=None):
    graph = gpt(layers=layers, **SIZES)
    pins = Pins(stages=stages, microbatches=microbatches, schedule=schedule, recompute=recompute)
    search_run = SearchRun.of(
        graph, ClusterSpec.parse(f"{stages}xA100"), SearchRequest(pins=pins), ProgressMonitor(lambda: 0.0)
    )
    (candidate,) = search_run.candidates
    return search_run.search.context.pipeline(candidate)


def within(pipeline, limit_bytes):
    return replace(pipeline, limits=[limit_bytes] * len(pipeline.limits))


@pytest.mark.parametrize("recompute", [None, Recompute.NONE, Recompute.FULL])
@pytest.mark.parametrize("seed", range(8))
def test_partitions_of_any_number_of_blocks_over_any_number_of_stages_lose_none(seed, recompute):
    draw = Random(seed)
    stages = draw.choice((2, 3, 4, 6, 8))
    layers = draw.randint(stages, 40)
    microbatches = draw.choice((4, 8, 16, 64))
    pipeline = piped(layers, stages, microbatches, draw.choice((ONE_F_ONE_B, Schedule.GPIPE)), recompute)
    even_bytes = max(pipeline.problem(i, n).lightest().bytes for i, n in enumerate(pipeline.even_partition()))
    for share in (2.0, 1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.5, 0.4):
        partition_bounds = within(pipeline, even_bytes * share).partition_bounds()
        for multiplier in (0.0, 1e-11, 1e-9):
            for counts in (
                partition_bounds.partition(multiplier),
                partition_bounds.fitting(multiplier),
                partition_bounds.lightest(),
            ):
                assert counts is None or (sum(counts) == layers and min(counts) >= 1), (share, multiplier)


@pytest.mark.parametrize("recompute", [None, Recompute.NONE])
@pytest.mark.parametrize(("stages", "layers"), [(2, 5), (2, 9), (3, 8), (3, 11), (4, 9)])
def test_what_fits_is_found_wherever_looking_at_every_partition_finds_it(stages, layers, recompute):
    pipeline = piped(layers, stages, 16, recompute=recompute)
    every = [counts for counts in product(range(1, layers), repeat=stages) if sum(counts) == layers]
    most = range(1, layers - stages + 2)
    lightest = {(i, n): pipeline.problem(i, n).lightest().bytes for i in range(stages) for n in most}
    needs = {}
    for counts in every:
        needs[counts] = max(lightest[i, n] for i, n in enumerate(counts))
    for share in (0.9, 0.99, 1.0001, 1.1, 1.4, 2.0):
        limit_bytes = min(needs.values()) * share
        limited = within(pipeline, limit_bytes)
        counts = limited.partition_bounds().fitting()
        assert (counts is not None) == (share > 1), share
        if counts:
            assert needs[tuple(counts)] <= limit_bytes
            outcome = solve_partition(limited, counts, end=_lightest(limited, counts)[0])
            assert [len(stage.blocks) for stage in outcome.stages] == counts


def widest(values, counts):
    return max(values[i, n] for i, n in enumerate(counts))


@pytest.mark.parametrize("seed", range(60))
def test_the_least_level_of_a_table_is_that_of_every_partition_looked_at(seed):
    draw = np.random.default_rng(seed)
    stages = int(draw.integers(2, 5))
    blocks = int(draw.integers(5, 11))
    rows = draw.random((stages, blocks - stages + 2)).cumsum(axis=1)
    values = np.where(rows > draw.uniform(0.8, 6.0), inf, rows)
    values[:, 1] = rows[:, 1]
    every = [counts for counts in product(range(1, blocks), repeat=stages) if sum(counts) == blocks]
    best = min(widest(values, counts) for counts in every)
    found = minimax_partition(values, blocks)
    assert (found is None) == (best == inf)
    if found:
        assert sum(found) == blocks
        assert widest(values, found) == best


def test_a_plan_that_memory_makes_uneven_holds_every_block_and_every_op():
    """Early stages hold so few blocks that the last ones need far more than their even share."""
    graph = prepare(gpt(layers=80, **SIZES))
    pins = Pins(stages=4, microbatches=64, schedule=ONE_F_ONE_B, recompute=Recompute.NONE)
    asked = SearchRequest(pins=pins, baselines=False, limits=SearchLimits(memory_bytes=1.0))
    with pytest.raises(InfeasibleError) as refused:
        solve(graph, "4xA100", asked)
    for share in (1.0, 1.05, 1.1, 1.2, 1.3, 1.5):
        limits = SearchLimits(memory_bytes=refused.value.least_memory_bytes * share)
        plan = solve(graph, "4xA100", replace(asked, limits=limits))
        assert sum(stage.blocks for stage in plan.decision.stages) == 80
        stages = [plan.decision.ops[op.name].stage for op in graph.ops]
        assert set(stages) == {0, 1, 2, 3}
        assert stages == sorted(stages)


def test_stages_that_lose_an_op_or_hold_one_twice_are_no_plan():
    check_cover(["ab", "c"], "abc")
    with pytest.raises(InvariantError, match="'c'"):
        check_cover(["ab"], "abc")
    with pytest.raises(InvariantError, match="'b'"):
        check_cover(["ab", "bc"], "abc")


def test_stages_that_lose_a_block_are_no_plan():
    check_blocks([range(2), range(2, 5)], 5)
    for blocks in ([range(2), range(2, 4)], [range(2), range(3, 5)], [range(3), range(2, 5)], [range(5), range(5, 5)]):
        with pytest.raises(InvariantError, match="5 blocks"):
            check_blocks(blocks, 5)


def test_a_partition_that_does_not_hold_all_blocks_is_never_solved():
    pipeline = piped(8, 4, 16)
    with pytest.raises(InvariantError, match="8 blocks"):
        solve_partition(pipeline, [2, 2, 2, 1])

"""From a candidate to its plan: how many blocks each stage holds, and the best plan of each within its memory.

Variables: n_i, the blocks of stage i; the decisions inside each stage (see `stage_problem`).
Objective: minimise T = m max t + (sum t - max t)/v + once-per-step work, ties of compared plans by memory
    (see `problem.rank`).
Constraints: each stage within its memory with its own number of microbatches alive; every block in one stage;
    neighbouring stages meet in one layout, that of the first stage, which has the least room.
Recurrence: partitions are tried in turn: even, then that of the bound (see `partition_bounds`; by speed where devices
    differ), then one that leaves every stage room for its lightest plan.
Complexity: at most three stage problems (first, middle, last) per kind of device and partition.
Source: PipeDream (Narayanan et al. 2019) for the partition, restricted to equal blocks.
Oracle: tests/oracle/test_search_partition.py::test_what_fits_is_found_wherever_looking_at_every_partition_finds_it
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import inf
from operator import attrgetter

import numpy as np

from jupyter_autotrain.parallel.cost.pipeline import p2p_s
from jupyter_autotrain.parallel.search.factors.lagrangian import DoesNotFit, Pruned, Unknown
from jupyter_autotrain.parallel.search.stage.outcome import Outcome, Stage, check_blocks
from jupyter_autotrain.parallel.search.stage.partition import greedy_partition
from jupyter_autotrain.parallel.search.stage.pipeline_problem import PipelineProblem
from jupyter_autotrain.parallel.search.stage.stage_problem import StageSolution


def solve_partitions(
    pipeline: PipelineProblem, cutoff_s: float = inf, multiplier: float = 0.0, *, only_even: bool = False
) -> Outcome:
    """Return the best plan found within each stage's limit.

    Args:
        pipeline: The candidate.
        cutoff_s: Give up (with `Pruned`) once nothing faster is possible.
        multiplier: Of a similar candidate, tried first.
        only_even: Whether to share the blocks out evenly, or not at all.

    Raises:
        DoesNotFit: No plan of some stage fits, in any partition.
        Pruned: Nothing faster than `cutoff_s` can exist.
        Unknown: Nothing was found in the partitions tried.
    """
    if pipeline.candidate.stages == 1:
        return single_stage_outcome(pipeline, pipeline.full_chain().minimise(pipeline.limits[0], cutoff_s, multiplier))
    if only_even:
        return solve_partition(pipeline, pipeline.even_partition(), cutoff_s, multiplier)
    best, least = _try_partition(pipeline, pipeline.even_partition(), cutoff_s, multiplier)
    counts = pipeline.even_partition()
    if pipeline.candidate.chunks == 1:
        counts = _balanced_partition(pipeline, best.multiplier if best else multiplier)
    if counts != pipeline.even_partition():
        to_beat_s = min(cutoff_s, best.step_s) if best else cutoff_s
        other, other_least = _try_partition(pipeline, counts, to_beat_s, multiplier)
        best = min(filter(None, (best, other)), key=attrgetter("rank"), default=None)
        least = min(least, other_least)
    return best or _fitting(pipeline, least, cutoff_s, multiplier)


def single_stage_outcome(pipeline: PipelineProblem, found: StageSolution) -> Outcome:
    """Return the outcome of a candidate of one stage."""
    run = pipeline.chain.run
    plan = found.point.assignment
    stage = Stage(range(run.count), plan.choices(run, 0), plan.breakdown, 0.0, 1.0, pipeline.device(0))
    return Outcome(pipeline.candidate, (stage,), found.bound_s, tuple(pipeline.models), found.multiplier)


def solve_partition(
    pipeline: PipelineProblem,
    counts: Sequence[int],
    cutoff_s: float = inf,
    multiplier: float = 0.0,
    end: int | None = None,
) -> Outcome:
    """Get the best plan found of one partition, its stages meeting in the layout `end`, the first one's best if None.

    Raises:
        DoesNotFit: No plan of some stage fits.
        Pruned: It is no faster than `cutoff_s`.
        InvariantError: The partition is not one of all blocks.
    """
    shares = [range(stop - count, stop) for count, stop in zip(counts, accumulate(counts), strict=True)]
    check_blocks(shares, pipeline.chain.run.count)
    stages = list[Stage]()
    solved = dict[object, StageSolution]()
    slack_s = cutoff_s * pipeline.candidate.rounds / pipeline.candidate.microbatches
    begin: int | None = None
    for index, (count, blocks) in enumerate(zip(counts, shares, strict=True)):
        key = (index == 0, index == len(counts) - 1, count, id(pipeline.models[index]), pipeline.limits[index])
        if key not in solved:
            problem = pipeline.problem(index, count, begin, end)
            solved[key] = problem.minimise(pipeline.limits[index], slack_s, multiplier)
            multiplier = solved[key].multiplier
        plan = solved[key].point.assignment
        begin = end = plan.states[-1][1] if begin is None else begin
        choices = plan.choices(pipeline.chain.run, blocks.start)
        send_s = _send_s(pipeline, index, begin)
        stages.append(Stage(blocks, choices, plan.breakdown, send_s, pipeline.alive(index), pipeline.device(index)))
    multiplier = max(fastest.multiplier for fastest in solved.values())
    return Outcome(pipeline.candidate, tuple(stages), pipeline.bound_s(), tuple(pipeline.models), multiplier)


def _try_partition(
    pipeline: PipelineProblem, counts: Sequence[int], cutoff_s: float, multiplier: float
) -> tuple[Outcome | None, float]:
    """Return a partition's outcome, or the least memory that would do, all stages meeting in their lightest layout."""
    try:
        return solve_partition(pipeline, counts, cutoff_s, multiplier), inf
    except Pruned:
        return None, inf
    except DoesNotFit:
        pass  # the layout between the stages may be too heavy
    end, least = _lightest(pipeline, counts)
    if least > min(pipeline.limits):
        return None, least
    try:
        return solve_partition(pipeline, counts, cutoff_s, multiplier, end), inf
    except (DoesNotFit, Pruned):
        return None, inf


def _lightest(pipeline: PipelineProblem, counts: Sequence[int]) -> tuple[int, float]:
    """Return the layout that the lightest first stage ends in, and what the fullest stage then needs."""
    first = pipeline.problem(0, counts[0]).lightest()
    end = first.assignment.states[-1][1]
    later = (pipeline.problem(stage, counts[stage], end) for stage in range(1, len(counts)))
    return end, max(first.bytes, *(problem.lightest().bytes for problem in later))


def _fitting(pipeline: PipelineProblem, least_bytes: float, cutoff_s: float, multiplier: float) -> Outcome:
    """Where no better partition fits, the best that leaves every stage room for its lightest plan."""
    partition_bounds = pipeline.partition_bounds()
    if not partition_bounds or least_bytes == inf:
        raise Unknown(least_bytes)
    counts = partition_bounds.fitting(multiplier)
    if not counts:
        lightest = partition_bounds.lightest() or pipeline.even_partition()
        raise DoesNotFit(min(least_bytes, _lightest(pipeline, lightest)[1]))
    outcome, still_least = _try_partition(pipeline, counts, cutoff_s, multiplier)
    if not outcome:
        raise Unknown(min(least_bytes, still_least))
    return outcome


def _balanced_partition(pipeline: PipelineProblem, multiplier: float) -> list[int]:
    """Blocks per stage by time: within memory where all devices are equal, else by their speed."""
    bounds = pipeline.partition_bounds()
    if bounds:
        return bounds.partition(multiplier) or pipeline.even_partition()
    full_chain = pipeline.full_chain()
    pieces = full_chain.solve(full_chain.weights(0.0)).point.assignment.pieces
    block_s = pieces[1].breakdown.micro_s if len(pieces) > 2 else pieces[0].breakdown.micro_s
    first_s = max(0.0, pieces[0].breakdown.micro_s - block_s)
    last_s = pieces[-1].breakdown.micro_s
    rates = [pipeline.device(stage).matrix_flops_per_s for stage in range(len(pipeline.models))]
    slowness = [max(rates) / rate for rate in rates]
    beside_s = [first_s * slowness[0], *[0.0] * (len(rates) - 2), last_s * slowness[-1]]
    return greedy_partition([block_s * slow for slow in slowness], beside_s, pipeline.chain.run.count)


def _send_s(pipeline: PipelineProblem, stage: int, end: int) -> float:
    """Messages of one microbatch at a stage's borders, both ways; half at the pipeline's ends."""
    model = pipeline.models[stage]
    ends = pipeline.chain.end(0)
    candidate = pipeline.candidate
    rows = np.unravel_index(end, [len(model.op(op).table) for op in ends])
    span = pipeline.cluster.link_groups(model.mesh.devices, candidate.stages)
    borders = 1 if stage in {0, candidate.stages - 1} else 2
    return p2p_s(model, span, dict(zip(ends, map(int, rows), strict=True))) * borders * candidate.chunks

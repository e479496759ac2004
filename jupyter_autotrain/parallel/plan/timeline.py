"""One step as segments on a time axis, per pipeline stage: what a rank computes, waits for, and idles.

Stages run their schedule's own order of forward and backward passes (GPipe; 1F1B, Narayanan et al. 2019; interleaved,
Narayanan et al. 2021), each pass with the time that the cost model gives it, and start one when the stage before (or
behind, for gradients) has sent it. The result is stretched to the predicted step where uneven stages make the two
differ. A schedule with more passes than `MOST_PASSES` is shown in one piece per stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain

from jupyter_autotrain.parallel.cost.activations import MODES
from jupyter_autotrain.parallel.cost.memory import Schedule
from jupyter_autotrain.parallel.plan.decision_costs import DecisionCosts
from jupyter_autotrain.parallel.plan.traffic import forward_passes, stage_ops
from jupyter_autotrain.parallel.search import Cost

MOST_PASSES = 192


class Activity(StrEnum):
    """An activity of a rank."""

    FORWARD = "forward"
    BACKWARD = "backward"
    COMMUNICATION = "communication"
    OPTIMIZER = "optimizer"
    BUBBLE = "bubble"


@dataclass(frozen=True, slots=True)
class TimeSegment:
    """A rank of `stage` does one thing from `start_s` to `stop_s`; `microbatch` is -1 where there is none."""

    stage: int
    start_s: float
    stop_s: float
    what: Activity
    microbatch: int = -1


@dataclass(frozen=True, slots=True)
class Passes:
    """Seconds of one microbatch on a stage (communication is what is exposed), and of what runs once per step."""

    forward_s: float = 0.0
    forward_move_s: float = 0.0
    backward_s: float = 0.0
    backward_move_s: float = 0.0
    sync_s: float = 0.0
    update_s: float = 0.0

    @property
    def lengths(self) -> tuple[float, float]:
        """Forward and backward with their communication."""
        return self.forward_s + self.forward_move_s, self.backward_s + self.backward_move_s


@dataclass(frozen=True, slots=True)
class _Pass:
    """One chunk's forward or backward pass of one microbatch."""

    forward: bool
    chunk: int
    microbatch: int


def timeline(costs: DecisionCosts, cost: Cost) -> tuple[TimeSegment, ...]:
    """Segments of one step, by stage and time, without holes: what is not busy is bubble."""
    decision = costs.decision
    stages = [_with_messages(passes_of(costs, i), cost, i) for i in range(len(decision.stages))]
    count = decision.microbatches * decision.chunks
    passes = _spans(decision.schedule, stages, (decision.microbatches, decision.chunks))
    end = cost.step_s - max(p.sync_s + p.update_s for p in stages)
    if 2 * count * len(stages) > MOST_PASSES:
        spans = [list(_one_piece(row, i)) for i, row in enumerate(passes)]
    else:
        spans = [list(chain.from_iterable(row)) for row in passes]
    made = max(row[-1].stop_s for row in spans)
    stretch = end / made if made > 0 else 1.0
    rows = zip(spans, stages, strict=True)
    return tuple(segment for row, once in rows for segment in _filled(row, once, stretch, cost.step_s))


def passes_of(costs: DecisionCosts, stage: int) -> Passes:
    """Sum over the stage's ops and the edges into them, without messages to other stages."""
    model = costs.models[stage]
    total = [0.0] * 6
    here = stage_ops(costs, stage)
    folded = costs.folded
    for node in folded.nodes:
        count = sum(op in here for op in node.ops)
        if not count:
            continue
        op = folded.first_op(node)
        table = model.op(op.id)
        mode = MODES.index(costs.op_decision(op).recompute)
        sharding_row = costs.state_sharding_row(op)
        states = table.states
        row = costs.row(op)
        for place, value in (
            (0, table.forward_s[row]),
            (2, table.backward_s[row] + table.recompute_s[mode, row]),
            (3, states.micro_s[sharding_row, row]),
            (4, states.step_s[sharding_row, row]),
            (5, states.update_s[sharding_row, row]),
        ):
            total[place] += count * float(value)
    for edge in folded.edges:
        count = sum(reader in here for reader in edge.readers)
        if count:
            reader = costs.graph.ops[edge.readers[0]]
            table_of_edge = next(e for e in model.edges_into(reader.id) if e.tensor == edge.operand.tensor)
            at = costs.row(costs.graph.ops[table_of_edge.source]), costs.row(reader)
            again = forward_passes(costs, reader) - 1
            total[1] += count * float(table_of_edge.forward_s[at])
            total[3] += count * float(table_of_edge.backward_s[at] + again * table_of_edge.forward_s[at])
    return Passes(*total)


def _with_messages(passes: Passes, cost: Cost, stage: int) -> Passes:
    """Add the messages between stages: what the prediction has beyond the stage's own work, half each way."""
    own = sum(passes.lengths)
    extra = max(0.0, cost.ranks[stage].micro_s - own) / 2 if len(cost.ranks) > 1 else 0.0
    return replace(passes, forward_move_s=passes.forward_move_s + extra, backward_move_s=passes.backward_move_s + extra)


def order_of(schedule: Schedule, stage: int, stages: int, counts: tuple[int, int]) -> list[_Pass]:
    """Return the order in which a stage runs its passes; `counts` are microbatches and chunks."""
    microbatches, chunks = counts
    total = microbatches * chunks
    warm = stages - stage - 1 if chunks == 1 else 2 * (stages - stage - 1) + (chunks - 1) * stages
    warm = total if schedule is Schedule.GPIPE else min(total, warm)
    ahead = [_pass(k, True, stages, counts) for k in range(total)]
    back = [_pass(k, False, stages, counts) for k in range(total)]
    steady = [p for pair in zip(ahead[warm:], back[: total - warm], strict=True) for p in pair]
    return [*ahead[:warm], *steady, *back[total - warm :]]


def _pass(number: int, forward: bool, stages: int, counts: tuple[int, int]) -> _Pass:
    """Return the k-th pass of one direction: microbatches go in rounds of one per stage through all chunks."""
    microbatches, chunks = counts
    if chunks == 1:
        return _Pass(forward, 0, number)
    chunk = number // stages % chunks
    microbatch = number // (stages * chunks) * stages + number % stages
    return _Pass(forward, chunk if forward else chunks - 1 - chunk, min(microbatch, microbatches - 1))


def _spans(schedule: Schedule, stages: Sequence[Passes], counts: tuple[int, int]) -> list[list[list[TimeSegment]]]:
    """Per stage its passes in order, each as its segments; every pass starts as early as it can."""
    count = len(stages)
    chunks = counts[1]
    orders = [order_of(schedule, i, count, counts) for i in range(count)]
    ends: dict[tuple[bool, int, int], float] = {}
    clocks = [0.0] * count
    at = [0] * count
    spans: list[list[list[TimeSegment]]] = [[] for _ in stages]
    moved = True
    while moved:
        moved = False
        for stage, order in enumerate(orders):
            while at[stage] < len(order):
                one = order[at[stage]]
                ready = _ready(one, stage, (count, chunks), ends)
                if ready is None:
                    break
                parts = list(_parts(stages[stage], one, stage, max(clocks[stage], ready), chunks))
                clocks[stage] = parts[-1].stop_s
                ends[one.forward, one.chunk * count + stage, one.microbatch] = clocks[stage]
                spans[stage].append(parts)
                at[stage] += 1
                moved = True
    return spans


def _ready(one: _Pass, stage: int, size: tuple[int, int], ends: dict[tuple[bool, int, int], float]) -> float | None:
    """When a pass's input is there; None while it is not known."""
    stages, chunks = size
    place = one.chunk * stages + stage
    last = stages * chunks - 1
    if one.forward:
        return 0.0 if place == 0 else ends.get((True, place - 1, one.microbatch))
    if place == last:
        return ends.get((True, place, one.microbatch))
    return ends.get((False, place + 1, one.microbatch))


def _parts(passes: Passes, one: _Pass, stage: int, start_s: float, chunks: int) -> Iterator[TimeSegment]:
    """Compute, then communication, of one pass."""
    compute, move = (
        (passes.forward_s, passes.forward_move_s) if one.forward else (passes.backward_s, passes.backward_move_s)
    )
    middle = start_s + compute / chunks
    yield TimeSegment(stage, start_s, middle, Activity.FORWARD if one.forward else Activity.BACKWARD, one.microbatch)
    if move:
        yield TimeSegment(stage, middle, middle + move / chunks, Activity.COMMUNICATION, one.microbatch)


def _one_piece(row: Sequence[Sequence[TimeSegment]], stage: int) -> Iterator[TimeSegment]:
    """All passes of a stage as forward, backward and communication in one piece each, where the stage is busy."""
    parts = [part for one in row for part in one]
    start = parts[0].start_s
    stop = parts[-1].stop_s
    busy = sum(part.stop_s - part.start_s for part in parts)
    idle = (stop - start) - busy
    for what in (Activity.FORWARD, Activity.COMMUNICATION, Activity.BACKWARD):
        length = sum(part.stop_s - part.start_s for part in parts if part.what is what)
        if length:
            yield TimeSegment(stage, start, start + length, what)
            start += length
    if idle > 1e-9 * stop:
        yield TimeSegment(stage, start, stop, Activity.BUBBLE)


def _filled(row: Sequence[TimeSegment], once: Passes, stretch: float, step_s: float) -> Iterator[TimeSegment]:
    """Yield the row stretched, its holes as bubbles, then gradients, optimizer and whatever the step waits for."""
    stage = row[0].stage
    now = 0.0
    tail = [(once.sync_s, Activity.COMMUNICATION), (once.update_s, Activity.OPTIMIZER)]
    for segment in row:
        start = segment.start_s * stretch
        stop = segment.stop_s * stretch
        if start > now * (1 + 1e-9) + 1e-12:
            yield TimeSegment(stage, now, start, Activity.BUBBLE)
        if stop > start:
            yield replace(segment, start_s=start, stop_s=stop)
        now = stop
    for length, what in tail:
        if length:
            yield TimeSegment(stage, now, now + length, what)
            now += length
    if now < step_s * (1 - 1e-9):
        yield TimeSegment(stage, now, step_s, Activity.BUBBLE)

"""Why an op is split as it is: what every other split would cost, with the rest of the plan as it stands.

With strategy r for the op, weights kept by option o, and all neighbours as planned, a step takes

    m (forward(r) + backward(r) + again(r)) + m sum_edges move(r) + m micro(o, r) + sync(o, r) + update(o, r)

seconds of the op's own, and its rank holds state(o, r) + in_flight * activations(r) bytes for it. Each split is shown
with the option that is fastest within the memory limit. Time: one row of tables, whatever the depth of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from math import inf

import numpy as np

from jupyter_autotrain.core.sizes import format_memory
from jupyter_autotrain.parallel.cost.activations import MODES
from jupyter_autotrain.parallel.cost.collectives import Floats
from jupyter_autotrain.parallel.cost.layout import Ints
from jupyter_autotrain.parallel.cost.memory import Recompute
from jupyter_autotrain.parallel.cost.model import CostModel, EdgeTable
from jupyter_autotrain.parallel.graph.graph import Op
from jupyter_autotrain.parallel.plan.folded import Folded
from jupyter_autotrain.parallel.plan.pricing import Pricing
from jupyter_autotrain.parallel.plan.record import PlanRecord
from jupyter_autotrain.parallel.plan.units import aligned, ms

SHOWN = 6


@dataclass(frozen=True, slots=True)
class Way:
    """One way to split an op; seconds of a whole step, bytes held by a rank, both of one such op.

    Attributes:
        split: Mesh axis → role and name of the loop it splits, in words.
        loops: Per mesh axis the name of the loop it splits, or None: what a pin takes.
        zero: ZeRO level of its weights.
        option: How they are kept, in words; "" where it has none.
        compute_s: Forward, backward and recomputation.
        input_move_s: Layout changes of its inputs and their gradients.
        output_move_s: Layout changes of its outputs and their gradients.
        weight_s: Gradients, gathered weights and optimizer.
        held_bytes: States and activations.
        fits: Whether a plan that does it so, everything else as it is, keeps within the limit.
    """

    split: str
    loops: tuple[str | None, ...]
    zero: int
    option: str
    compute_s: float
    input_move_s: float
    output_move_s: float
    weight_s: float
    held_bytes: float
    fits: bool

    @property
    def seconds(self) -> float:
        """Everything together."""
        return self.compute_s + self.input_move_s + self.output_move_s + self.weight_s


@dataclass(frozen=True, slots=True)
class Explanation:
    """An op's split, the runner-up, and why that lost; `str` of it reads as text.

    Attributes:
        op: The op.
        count: Ops of equal form and decision that the plan has.
        chosen: What the plan does.
        runner_up: The fastest other split; None when there is no other.
        ways: All splits, fastest first.
        why: Why the runner-up lost, in milliseconds and bytes.
    """

    op: str
    count: int
    chosen: Way
    runner_up: Way | None
    ways: tuple[Way, ...]
    why: str

    def __str__(self) -> str:
        rows = [
            (
                "chosen" if way == self.chosen else "",
                _words(way),
                *map(ms, (way.seconds, way.compute_s, way.input_move_s, way.output_move_s, way.weight_s)),
                format_memory(way.held_bytes),
                "" if way.fits else "does not fit",
            )
            for way in dict.fromkeys((self.chosen, *self.ways[:SHOWN]))
        ]
        heads = ("", "split", "per step", "compute", "inputs", "outputs", "weights", "memory", "")
        times = f", one of {self.count} alike" if self.count > 1 else ""
        return f"{self.op}{times}\n{aligned(heads, rows)}\n{self.why}"

    __repr__ = __str__


def explain(record: PlanRecord, name: str) -> Explanation:
    """See `Plan.explain`."""
    op = record.op(name)
    folded = Folded(record)
    count = len(folded.nodes[folded.node_of[op.id]].ops)
    pricing = Pricing(record)
    model = pricing.models[pricing.strategy(op).stage]
    found = _ways(pricing, model, op, count)
    row = pricing.row(op)
    chosen = _way(found, model, op, (pricing.option_row(op), row))
    others = [_best(found, model, op, r) for r in range(len(model.op(op.id).table)) if r != row]
    ways = sorted(_distinct(others), key=lambda way: way.seconds)
    rival = ways[0] if ways else None
    why = _why(chosen, rival, record) if rival else "No other split is possible."
    return Explanation(op.name, count, chosen, rival, tuple(sorted((chosen, *ways), key=lambda w: w.seconds)), why)


@dataclass(frozen=True)
class _Table:
    """(option, strategy) costs of an op among its neighbours."""

    pricing: Pricing
    compute_s: Floats
    input_s: Floats
    output_s: Floats
    weight_s: Floats
    held: Floats
    room: float
    """Bytes that a rank may still take for one such op, counted from nothing."""


def _ways(pricing: Pricing, model: CostModel, op: Op, count: int) -> _Table:
    record = pricing.record
    strategy = pricing.strategy(op)
    table = model.op(op.id)
    mode = MODES.index(strategy.recompute)
    m = record.microbatches
    states = table.states
    alive = record.stages[strategy.stage].in_flight
    inputs, outputs, kept = (np.zeros(len(table.table)) for _ in range(3))
    for edge in model.edges_into(op.id):
        seconds, held = _edge(pricing, model, edge, op.id)
        inputs += m * seconds
        kept += held
    for reader in {c for out in op.outputs for c in record.graph.consumers.get(out.tensor, ())}:
        for edge in model.edges_into(reader):
            if edge.source == op.id:
                seconds, held = _edge(pricing, model, edge, op.id)
                outputs += m * seconds
                kept += held
    held = states.state_bytes + alive * (table.act_bytes[mode] + kept)
    row = pricing.row(op)
    spare = record.solution.limit_bytes - record.cost.ranks[strategy.stage].peak_bytes
    return _Table(
        pricing,
        m * (table.forward_s + table.backward_s + table.recompute_s[mode]),
        inputs,
        outputs,
        m * states.micro_s + states.step_s + states.update_s,
        held,
        float(held[pricing.option_row(op), row]) + max(0.0, spare) / count,
    )


def _edge(pricing: Pricing, model: CostModel, edge: EdgeTable, op: int) -> tuple[Floats, Floats]:
    """Seconds and kept bytes of an edge for each strategy of `op`, its other end as planned."""
    other = pricing.record.graph.ops[edge.source if edge.target == op else edge.target]
    row = pricing.row(other)
    at = (row, slice(None)) if edge.target == op else (slice(None), row)
    strategy = pricing.strategy(pricing.record.graph.ops[edge.target])
    again = 2 if strategy.recompute is Recompute.FULL and model.graph_analysis.repeats[edge.target] > 1 else 1
    kept = edge.act_bytes[MODES.index(strategy.recompute)]
    return np.asarray(again * edge.forward_s[at] + edge.backward_s[at]), np.asarray(kept[at])


def _best(found: _Table, model: CostModel, op: Op, row: int) -> Way:
    """A split with its fastest option within the limit, or its lightest one."""
    options = range(len(model.op(op.id).states.options))
    fitting = [o for o in options if found.held[o, row] <= found.room]
    option = (
        min(fitting, key=lambda o: float(found.weight_s[o, row]))
        if fitting
        else min(options, key=lambda o: float(found.held[o, row]))
    )
    return _way(found, model, op, (option, row))


def _way(found: _Table, model: CostModel, op: Op, at: tuple[int, int]) -> Way:
    option, row = at
    split = model.op(op.id).table[row]
    kept = model.op(op.id).states.options[option]
    weighs = bool(model.op(op.id).states.state_bytes.any())
    return Way(
        _split(op, split, model.mesh.axes),
        tuple(op.loops[i].name if i >= 0 else None for i in split),
        int(kept.zero) if weighs else 0,
        str(kept) if weighs else "",
        float(found.compute_s[row]),
        float(found.input_s[row]),
        float(found.output_s[row]),
        float(found.weight_s[at]),
        float(found.held[at]),
        bool(found.held[at] <= found.room * (1 + 1e-12)),
    )


def _split(op: Op, loops: Ints, axes: tuple[str, ...]) -> str:
    words = [f"{axis}: {op.loops[i].role}" if i >= 0 else f"{axis}: whole" for axis, i in zip(axes, loops, strict=True)]
    named = [f"{w} ({op.loops[i].name})" if i >= 0 else w for w, i in zip(words, loops, strict=True)]
    return ", ".join(named) or "one device"


def _distinct(ways: list[Way]) -> list[Way]:
    """The fastest way of each split in words."""
    ordered = sorted(ways, key=lambda way: (way.split, way.seconds))
    return [next(same) for _, same in groupby(ordered, key=lambda way: way.split)]


def _words(way: Way) -> str:
    return way.split + (f"; {way.option}" if way.option not in {"", "ZeRO-0"} else "")


_PARTS: Mapping[str, str] = {
    "compute_s": "compute",
    "input_move_s": "moving inputs",
    "output_move_s": "moving outputs",
    "weight_s": "weights",
}


def _why(chosen: Way, rival: Way, record: PlanRecord) -> str:
    """One sentence on time, one on memory."""
    slower = rival.seconds - chosen.seconds
    parts = [(getattr(rival, key) - getattr(chosen, key), word) for key, word in _PARTS.items()]
    detail = ", ".join(f"{word} {'+' if d > 0 else '-'}{ms(abs(d))}" for d, word in parts if abs(d) > 1e-7)
    more = rival.held_bytes - chosen.held_bytes
    memory = (
        f"{format_memory(abs(more))} {'more' if more > 0 else 'less'} memory per rank" if more else "the same memory"
    )
    what = f"The runner-up ({_words(rival)})"
    if not rival.fits:
        limit = format_memory(record.solution.limit_bytes)
        return f"{what} needs {memory} in each such op: over the limit of {limit}; it is {_than(slower)} ({detail})."
    if slower >= 0:
        return f"{what} is {_than(slower)} per step ({detail or 'nothing else differs'}), with {memory}."
    proof = f"the whole plan is at most {record.gap:.1%} from the best" if record.gap < inf else "the rest decides"
    return f"{what} is {_than(slower)} here by itself ({detail}), with {memory}; {proof}."


def _than(slower: float) -> str:
    return "just as fast" if abs(slower) < 1e-9 else f"{ms(abs(slower))} {'slower' if slower > 0 else 'faster'}"

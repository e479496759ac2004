"""Pins that a plan does not follow, in words: each pin takes effect, is refused before the search, or is told here."""

from __future__ import annotations

from collections.abc import Iterator

from jupyter_autotrain.parallel.cost.memory import Recompute, Schedule, ZeroLevel
from jupyter_autotrain.parallel.decision import Decision, OpDecision
from jupyter_autotrain.parallel.graph.graph import Op, OpGraph, TensorKind
from jupyter_autotrain.parallel.search import Pins
from jupyter_autotrain.parallel.search.request.pins import pin_of


def unmet_pins(pins: Pins, graph: OpGraph, decision: Decision) -> Iterator[str]:
    """Yield a sentence for each pin that a decision does not follow."""
    yield from _outer(pins, decision)
    yield from _zero(pins, graph, decision)
    yield from _recompute(pins, graph, decision)
    apart = [op.name for op in graph.ops if not _follows(pins, op, decision.ops[op.name])]
    if apart:
        yield f"Pinned splits are not followed by {len(apart)} ops, first {apart[0]}: the mode decides them."


def _outer(pins: Pins, decision: Decision) -> Iterator[str]:
    stages = len(decision.stages)
    if pins.mesh and tuple(size for size in pins.mesh if size > 1) != decision.mesh.shape:
        yield f"The pinned mesh {pins.mesh} has no effect: the plan has {decision.mesh}."
    if pins.stages and pins.stages != stages:
        yield f"Pinned stages {pins.stages} have no effect: the plan has {stages}."
    if pins.microbatches and pins.microbatches != decision.microbatches:
        yield f"Pinned microbatches {pins.microbatches} have no effect: the plan has {decision.microbatches}."
    if pins.schedule not in {None, Schedule.NONE, decision.schedule}:
        used = decision.schedule if stages > 1 else "no pipeline stages"
        yield f"The pinned schedule {pins.schedule} has no effect: the plan has {used}."


def _zero(pins: Pins, graph: OpGraph, decision: Decision) -> Iterator[str]:
    if pins.zero is None:
        return
    weights = {t.id for t in graph.tensors if t.kind is TensorKind.PARAMETER and t.trainable}
    levels = set[ZeroLevel]()
    for op in graph.ops:
        if not weights.isdisjoint(x.tensor for x in op.inputs):
            levels.add(decision.ops[op.name].states.zero)
    if pins.zero > ZeroLevel.NONE and decision.mesh.devices == 1:
        yield f"Pinned ZeRO-{pins.zero:d} has no effect: no ranks have the same weights."
    elif levels - {pins.zero}:
        yield f"Pinned ZeRO-{pins.zero:d} is not followed: some weights are kept at ZeRO-{min(levels - {pins.zero}):d}."


def _recompute(pins: Pins, graph: OpGraph, decision: Decision) -> Iterator[str]:
    """Tell where layers do not recompute as pinned: only those of the deepest stack of equal layers do."""
    if pins.recompute in {None, Recompute.NONE}:
        return
    firsts = [run.start + block * run.length for run in graph.repeated_blocks for block in range(run.count)]
    following = sum(decision.ops[graph.ops[first].name].recompute is pins.recompute for first in firsts)
    if not following:
        yield f"Pinned recompute {pins.recompute} has no effect: no layers of the model repeat."
    elif following < len(firsts):
        yield f"Pinned recompute {pins.recompute} is of {following} of {len(firsts)} layers, of the deepest stack."


def _follows(pins: Pins, op: Op, decided: OpDecision) -> bool:
    wanted = pin_of(pins, op)
    if wanted is None:
        return True
    if len(wanted) != len(decided.loops):
        return False
    for name, loop in zip(wanted, decided.split_loops(op), strict=True):
        if (name is None) is not (loop is None) or (loop is not None and name not in {loop.name, loop.role}):
            return False
    return True

"""From a cost model to tables for the solvers, and from decisions back to seconds and bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from jupyter_autotrain.parallel.arrays import Floats
from jupyter_autotrain.parallel.cost.activations import MODES
from jupyter_autotrain.parallel.cost.memory import Recompute
from jupyter_autotrain.parallel.cost.model import CostModel, mode_index
from jupyter_autotrain.parallel.cost.ops import OpTable
from jupyter_autotrain.parallel.cost.redistribution import EdgeTable
from jupyter_autotrain.parallel.cost.states import StateSharding
from jupyter_autotrain.parallel.search.factors.problem import CostTable, Factor, Problem

MODE_VARIABLE = -1  # the variable that stands for a block's recompute mode, beside those of its ops
Modes = Sequence[Recompute]
NO_RECOMPUTE = (Recompute.NONE,)


@dataclass(frozen=True, slots=True)
class LagrangianWeights:
    """Weights of seconds and bytes in a table: the terms of the Lagrangian.

    value = time_weight * (rounds * micro_s + step_s) + multiplier * (state_bytes + in_flight * act_bytes)

    Attributes:
        time_weight: 1; 0 for bytes alone; 1j for bytes first and ties by seconds: numpy orders complex numbers by
            their real parts (bytes), and equal ones by their imaginary parts (seconds), both exact.
        multiplier: The Lagrange multiplier of memory: seconds per byte at the peak.
        in_flight: Microbatches alive at the peak.
        rounds: Microbatches that a step lasts, bubble included; the model's microbatches unless given.
    """

    multiplier: float = 0.0
    in_flight: float = 1.0
    rounds: float = 0.0
    time_weight: complex = 1.0

    def micro_weight(self, model: CostModel) -> complex:
        """Return what the seconds of one microbatch weigh."""
        return self.time_weight * (self.rounds or model.microbatches)


@dataclass(frozen=True, slots=True)
class CostBreakdown:
    """Costs of some ops for one rank. `micro` is per microbatch, `step` once per step; bytes are held at the peak."""

    compute_micro_s: float = 0.0
    communication_micro_s: float = 0.0
    communication_step_s: float = 0.0
    optimizer_s: float = 0.0
    parameter_bytes: float = 0.0
    gradient_bytes: float = 0.0
    optimizer_bytes: float = 0.0
    act_bytes: float = 0.0

    def __add__(self, other: CostBreakdown) -> CostBreakdown:
        return CostBreakdown(
            self.compute_micro_s + other.compute_micro_s,
            self.communication_micro_s + other.communication_micro_s,
            self.communication_step_s + other.communication_step_s,
            self.optimizer_s + other.optimizer_s,
            self.parameter_bytes + other.parameter_bytes,
            self.gradient_bytes + other.gradient_bytes,
            self.optimizer_bytes + other.optimizer_bytes,
            self.act_bytes + other.act_bytes,
        )

    @property
    def micro_s(self) -> float:
        """One microbatch, forward and backward."""
        return self.compute_micro_s + self.communication_micro_s

    @property
    def step_s(self) -> float:
        """Once per step."""
        return self.communication_step_s + self.optimizer_s

    @property
    def state_bytes(self) -> float:
        """Parameters, gradients and optimizer states."""
        return self.parameter_bytes + self.gradient_bytes + self.optimizer_bytes

    def seconds(self, microbatches: int) -> float:
        """Busy time of a step without a pipeline."""
        return microbatches * self.micro_s + self.step_s

    def bytes(self, in_flight: float = 1.0) -> float:
        """Peak memory with `in_flight` microbatches alive."""
        return self.state_bytes + in_flight * self.act_bytes


@dataclass(frozen=True, slots=True)
class OpChoice:
    """The choice for one op: row of its strategy table, how to keep its parameters, and its block's mode."""

    strategy: int
    state_sharding: StateSharding
    mode: Recompute = Recompute.NONE


def op_values(model: CostModel, table: OpTable, modes: Modes, weights: LagrangianWeights) -> Floats:
    """(modes, strategies) weighted cost over a whole step, parameters kept the best way."""
    rows = list(map(mode_index, modes))
    compute = (table.forward_s + table.backward_s) + table.recompute_s[rows]
    values = weights.micro_weight(model) * compute + state_sharding_values(model, table, weights).min(axis=0)
    if weights.multiplier:
        values = values + weights.multiplier * weights.in_flight * table.act_bytes[rows]
    return np.asarray(values)


def state_sharding_values(model: CostModel, table: OpTable, weights: LagrangianWeights) -> Floats:
    """(state shardings, strategies) weighted cost of keeping an op's parameters."""
    states = table.states
    values = weights.micro_weight(model) * states.micro_s + weights.time_weight * (states.step_s + states.update_s)
    return np.asarray(values + weights.multiplier * states.state_bytes if weights.multiplier else values)


def edge_values(model: CostModel, edge: EdgeTable, modes: Modes, weights: LagrangianWeights) -> Floats:
    """(modes, sources, targets) weighted cost of moving a tensor over a whole step; full recompute moves it twice."""
    repeats = model.graph_analysis.repeats[edge.target] > 1
    seconds = edge.forward_s + edge.backward_s
    again = [seconds + edge.forward_s if repeats and mode is Recompute.FULL else seconds for mode in modes]
    values = weights.micro_weight(model) * np.array(again)
    if weights.multiplier and edge.act_bytes.any():
        values = values + weights.multiplier * weights.in_flight * edge.act_bytes[list(map(mode_index, modes))]
    return np.asarray(values)


def tables_of(model: CostModel, ops: Iterable[int], modes: Modes, weights: LagrangianWeights) -> list[CostTable]:
    """Tables of some ops and of the edges into them; the recompute mode comes first where there is a choice."""

    def table(scope: tuple[int, ...], values: Floats) -> CostTable:
        return CostTable((MODE_VARIABLE, *scope), values) if len(modes) > 1 else CostTable(scope, values[0])

    found = []
    for op in ops:
        found.append(table((op,), op_values(model, model.op(op), modes, weights)))
        found += [table((e.source, op), edge_values(model, e, modes, weights)) for e in model.edges_into(op)]
    return found


def problem_of(model: CostModel, check: Callable[[], None] | None = None) -> Problem:
    """Return the whole graph as one problem, without recompute: op variables by id, state shardings behind them.

    For graphs without repeated blocks, and as the form in which tests compare solvers. An op with one strategy is no
    variable. `check` is called for each op and may raise to stop.
    """
    factors: list[Factor] = []
    for op in range(len(model.graph.ops)):
        if check:
            check()
        factors += _factors_of(model, op)
    sizes = {v: n for f in factors for v, n in zip(f.scope, f.seconds.shape, strict=True)}
    return Problem(sizes, tuple(factors))


def _factors_of(model: CostModel, op: int) -> Iterator[Factor]:
    table = model.op(op)
    behind = len(model.graph.ops) + op
    yield _factor((op,), model.microbatches * (table.forward_s + table.backward_s), table.act_bytes[0])
    for e in model.edges_into(op):
        yield _factor((e.source, op), model.microbatches * (e.forward_s + e.backward_s), e.act_bytes[0])
    if table.states.state_bytes.any():
        yield _factor((behind, op), state_sharding_values(model, table, LagrangianWeights()), table.states.state_bytes)


def _factor(scope: tuple[int, ...], seconds: Floats, held: Floats) -> Factor:
    """Return a factor over those of `scope` that have a choice."""
    if 1 in seconds.shape:
        scope = tuple(v for v, size in zip(scope, seconds.shape, strict=True) if size > 1)
        return Factor(scope, seconds.squeeze(), held.squeeze())
    return Factor(scope, seconds, held)


def choices_of(
    model: CostModel, strategies: Mapping[int, int], mode: Recompute, weights: LagrangianWeights
) -> dict[int, OpChoice]:
    """Complete strategies by the best way to keep parameters at these weights."""
    found = {}
    for op, row in strategies.items():
        table = model.op(op)
        best = int(state_sharding_values(model, table, weights)[:, row].argmin())
        found[op] = OpChoice(row, table.states.state_shardings[best], mode)
    return found


def cost_breakdown_of(model: CostModel, chosen: Mapping[int, OpChoice], ops: Iterable[int]) -> CostBreakdown:
    """Return what `ops` cost, with the edges into them; sources of edges must be among the chosen."""
    total = np.zeros(len(fields(CostBreakdown)))
    for op in ops:
        total += _op_load(model, chosen[op], op)
        for edge in model.edges_into(op):
            total += _edge_load(edge, chosen, model)
    return CostBreakdown(*total.tolist())


def _op_load(model: CostModel, choice: OpChoice, op: int) -> Floats:
    table = model.op(op)
    row = choice.strategy
    mode = MODES.index(choice.mode)
    states = table.states
    sharding_row = table.states.state_shardings.index(choice.state_sharding)
    return np.array(
        [
            table.forward_s[row] + table.backward_s[row] + table.recompute_s[mode, row],
            states.micro_s[sharding_row, row],
            states.step_s[sharding_row, row],
            states.update_s[sharding_row, row],
            states.parameter_bytes[sharding_row, row],
            states.gradient_bytes[sharding_row, row],
            states.optimizer_bytes[sharding_row, row],
            table.act_bytes[mode, row],
        ]
    )


def _edge_load(edge: EdgeTable, chosen: Mapping[int, OpChoice], model: CostModel) -> Floats:
    mode = chosen[edge.target].mode
    at = (chosen[edge.source].strategy, chosen[edge.target].strategy)
    again = 2 if mode is Recompute.FULL and model.graph_analysis.repeats[edge.target] > 1 else 1
    seconds = again * edge.forward_s[at] + edge.backward_s[at]
    return np.array([0.0, seconds, 0.0, 0.0, 0.0, 0.0, 0.0, edge.act_bytes[(MODES.index(mode), *at)]])

"""From a solver's outcome, rows of cost tables, to the `Decision` that everything after the search reads.

Time: linear in the ops; ops of repeated blocks that are decided alike share one `OpDecision`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import numpy as np

from jupyter_autotrain.core.cluster import MeshSpec
from jupyter_autotrain.parallel.cost.layout import NONE, as_placements, input_layouts, output_layouts
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.cost.states import StateSharding
from jupyter_autotrain.parallel.decision import REPLICATED_STATES, Decision, OpDecision, StageDecision
from jupyter_autotrain.parallel.graph.graph import LoopRole, Op
from jupyter_autotrain.parallel.search.factors.factors import OpChoice
from jupyter_autotrain.parallel.search.stage.outcome import Outcome, Stage

AXIS_WORDS: Final[Mapping[LoopRole, str]] = MappingProxyType(
    {
        LoopRole.BATCH: "data",
        LoopRole.SEQUENCE: "sequence",
        LoopRole.FEATURE: "tensor",
        LoopRole.HEAD: "tensor",
        LoopRole.EXPERT: "expert",
        LoopRole.SPATIAL: "spatial",
        LoopRole.OTHER: "tensor",
    }
)


def decision_of(outcome: Outcome) -> Decision:
    """Everything that an outcome decides."""
    model = outcome.models[0]
    candidate = outcome.candidate
    ops: dict[str, OpDecision] = {}
    for index, stage in enumerate(outcome.stages):
        ops.update(_stage_ops(model, index, stage))
    return Decision(
        mesh=_named_mesh(model, outcome.stages[0]),
        stages=tuple(StageDecision(stage.device.name, len(stage.blocks)) for stage in outcome.stages),
        microbatches=candidate.microbatches,
        schedule=candidate.schedule,
        chunks=candidate.chunks,
        ops=ops,
    )


def op_decision(op: Op, loops: Sequence[int | None], states: StateSharding = REPLICATED_STATES) -> OpDecision:
    """The decision of an op whose loops are split so; placements follow from the loop nest."""
    row = np.array([[NONE if loop is None else loop for loop in loops]], dtype=np.int64)
    return OpDecision(
        tuple(loops),
        tuple(as_placements(input_layouts(op, x, row)[0]) for x in op.inputs),
        tuple(as_placements(output_layouts(op, x, row)[0]) for x in op.outputs),
        tuple(as_placements(output_layouts(op, x, row)[0]) for x in op.inputs),
        states,
    )


def _stage_ops(model: CostModel, index: int, stage: Stage) -> Iterator[tuple[str, OpDecision]]:
    alike: dict[tuple[int, OpChoice], OpDecision] = {}
    for op_id, choice in sorted(stage.choices.items()):
        op = model.graph.ops[op_id]
        key = (model.block_representative(op_id), choice)
        if key not in alike:
            row = model.table_rows(op_id)[choice.strategy].tolist()
            loops = [None if loop == NONE else loop for loop in row]
            alike[key] = replace(op_decision(op, loops, choice.state_sharding), recompute=choice.mode, stage=index)
        yield op.name, alike[key]


def _named_mesh(model: CostModel, stage: Stage) -> MeshSpec:
    """Name each axis by the role that it splits most work along."""
    weights: list[dict[str, float]] = [defaultdict(float) for _ in model.mesh.axes]
    alike = Counter((model.block_representative(op_id), choice.strategy) for op_id, choice in stage.choices.items())
    for (op_id, row), count in alike.items():
        op = model.graph.ops[op_id]
        for axis, loop in enumerate(model.table_rows(op_id)[row].tolist()):
            word = "replica" if loop == NONE else AXIS_WORDS[op.loops[loop].role]
            weights[axis][word] += count * (1 + op.flops_forward)
    names: list[str] = []
    for counter in weights:
        name = max(counter, key=lambda word: counter[word], default="replica")
        same = sum(other.rstrip("0123456789") == name for other in names)
        names.append(f"{name}{same + 1}" if same else name)
    return replace(model.mesh, axes=tuple(names))

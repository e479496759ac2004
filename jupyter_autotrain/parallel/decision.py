"""The decisions of a plan, as one immutable value.

Search makes a `Decision`, plan prices, explains, draws and prints it, JSON keeps it as it is, and it says everything
that is needed to execute the plan. It holds no cost. Ops have the names and loops of the graph that was searched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jupyter_autotrain.core.cluster import MeshSpec
from jupyter_autotrain.parallel.cost.layout import Placements
from jupyter_autotrain.parallel.cost.memory import Recompute, Schedule, ZeroLevel
from jupyter_autotrain.parallel.cost.states import StateSharding
from jupyter_autotrain.parallel.graph.graph import Loop, Op

REPLICATED_STATES = StateSharding(ZeroLevel.NONE)


@dataclass(frozen=True, slots=True)
class OpDecision:
    """The execution of one op.

    Attributes:
        loops: For each mesh axis the index in `Op.loops` of the loop that it splits, or None.
        inputs: Placements in which the op reads its inputs, parameters among them; in the order of `Op.inputs`.
        outputs: Placements in which it leaves its outputs; in the order of `Op.outputs`.
        input_gradients: Placements in which its backward pass leaves the gradients of its inputs.
        states: Where its parameters, their gradients and optimizer states live, and what replicas share out of them.
        recompute: What of its block's activations is computed again.
        stage: Pipeline stage.
    """

    loops: tuple[int | None, ...]
    inputs: tuple[Placements, ...]
    outputs: tuple[Placements, ...]
    input_gradients: tuple[Placements, ...]
    states: StateSharding = REPLICATED_STATES
    recompute: Recompute = Recompute.NONE
    stage: int = 0

    def split_loops(self, op: Op) -> tuple[Loop | None, ...]:
        """For each mesh axis the loop of `op` that it splits, or None."""
        return tuple(None if index is None else op.loops[index] for index in self.loops)


@dataclass(frozen=True, slots=True)
class StageDecision:
    """A pipeline stage: the kind of its devices (of several the slowest), and how many repeated blocks it holds."""

    device: str
    blocks: int


@dataclass(frozen=True, slots=True)
class Decision:
    """A whole plan.

    Attributes:
        mesh: Axes over the devices of one stage, named by what they mostly split.
        stages: Pipeline stages in order, each on the next `mesh.devices` devices of the cluster.
        microbatches: Parts of the batch.
        schedule: Order of microbatches.
        chunks: Chunks of layers per device (interleaved schedule).
        ops: Op name → its decision.
    """

    mesh: MeshSpec
    stages: tuple[StageDecision, ...]
    microbatches: int
    schedule: Schedule
    chunks: int
    ops: Mapping[str, OpDecision]

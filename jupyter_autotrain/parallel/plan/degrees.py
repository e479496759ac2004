"""The degrees of a plan: what every tool's configuration is made of."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod

from jupyter_autotrain.parallel.cost.memory import Recompute, ZeroLevel
from jupyter_autotrain.parallel.graph.graph import LoopRole
from jupyter_autotrain.parallel.plan.plan_data import PlanData
from jupyter_autotrain.parallel.plan.recipes import compute_format
from jupyter_autotrain.parallel.search.request.request import batch_size


@dataclass(frozen=True, slots=True)
class Degrees:
    """A plan in the numbers that tools ask for.

    Attributes:
        nodes: Machines.
        processes: One for each device.
        data: Ranks, or groups of them, that have samples of their own; those of an expert axis among them.
        shards: Of these, how many share out one copy of the states; 1 where each has its own.
        tensor: Ranks that share each layer.
        context: Ranks that share each sequence, in all ops.
        expert: Ranks that share the experts, which mostly are some of those of `data`.
        pipeline: Stages.
        chunks: Chunks of layers on each stage.
        layers: Repeated blocks.
        is_sequence_split: Whether ranks of the tensor axis share the sequence between products.
        zero: What of the states is shared out.
        recompute: Mode of most layers.
        samples: Of a rank in one microbatch.
        microbatches: Accumulated in a step, or in flight between stages.
        batch: Samples of a step.
        half: "bfloat16" where weights are computed with so; "" for the model's own format.
        offload: Whether optimizer states live on the host.
        beside: What of the plan these numbers do not say.
    """

    nodes: int
    processes: int
    data: int
    shards: int
    tensor: int
    context: int
    expert: int
    pipeline: int
    chunks: int
    layers: int
    is_sequence_split: bool
    zero: ZeroLevel
    recompute: Recompute
    samples: int
    microbatches: int
    batch: int
    half: str
    offload: bool
    beside: tuple[str, ...]

    @property
    def replicas(self) -> int:
        """Copies of the states."""
        return self.data // self.shards

    @property
    def per_node(self) -> int:
        """Processes of a machine."""
        return self.processes // self.nodes

    @classmethod
    def of(cls, plan: PlanData) -> Degrees:
        """Return the degrees of a plan."""
        mesh = plan.mesh
        sizes = Counter(mesh.axes)
        for word in sizes:
            sizes[word] = prod(size for axis, size in zip(mesh.axes, mesh.shape, strict=True) if axis == word)
        data = sizes["data"] or 1
        if _splits(plan, "expert", LoopRole.BATCH):
            data *= sizes["expert"]
        processes = mesh.devices * len(plan.stages)
        chassis = min(plan.cluster.levels[0].size, processes)
        zero = max(plan.zero, default=ZeroLevel.NONE)
        hybrid = any(decided.states.inner for decided in plan.strategies.values())
        batch = batch_size(plan.graph)
        modes = Counter(plan.recompute)
        return cls(
            nodes=processes // chassis if processes % chassis == 0 else 1,
            processes=processes,
            data=data,
            shards=_shards(mesh.shape[-1] if hybrid else data, zero),
            tensor=sizes["tensor"] or 1,
            context=sizes["context"] or 1,
            expert=sizes["expert"] or 1,
            pipeline=len(plan.stages),
            chunks=plan.decision.chunks,
            layers=sum(modes.values()),
            is_sequence_split=_splits(plan, "tensor", LoopRole.SEQUENCE),
            zero=zero,
            recompute=max(modes, key=lambda mode: modes[mode], default=Recompute.NONE),
            samples=max(1, batch // data // plan.microbatches),
            microbatches=plan.microbatches,
            batch=batch,
            half=compute_format(plan.graph),
            offload=bool(plan.offloaded),
            beside=tuple(_beside(plan, modes)),
        )


def _shards(ranks: int, zero: ZeroLevel) -> int:
    return 1 if zero is ZeroLevel.NONE else ranks


def _splits(plan: PlanData, name: str, role: LoopRole) -> bool:
    """Return whether an axis of that name splits loops of a role in some ops."""
    for op in plan.graph.ops:
        for axis, loop in zip(plan.mesh.axes, plan.strategies[op.name].split_loops(op), strict=True):
            if axis == name and loop is not None and loop.role is role:
                return True
    return False


def _beside(plan: PlanData, modes: Counter[Recompute]) -> list[str]:
    found = []
    if len(modes) > 1:
        words = ", ".join(f"{mode} in {count}" for mode, count in modes.items())
        found.append(f"recompute differs by layer ({words} of them); here it is that of most")
    if len(plan.zero) > 1:
        levels = ", ".join(str(int(level)) for level in plan.zero)
        found.append(f"weights are kept at several ZeRO levels ({levels}); here all are at the highest")
    if plan.solution.name.endswith(" apart"):
        found.append("some ops are split otherwise than the rest; here all are alike")
    return found

"""Degrees as pins: those of Megatron-LM with all that goes with them, and those of a mesh alone.

The tensor axis splits as `graph.tensor_parallel` reads off the graph. The expert axis lies within the replicas: its
ranks have samples of their own, and split the experts of mixtures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from jupyter_autotrain.core.cluster import SHORT_AXES, ClusterSpec
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.cost.layout import exchanged
from jupyter_autotrain.parallel.cost.memory import Recompute, Schedule, ZeroLevel
from jupyter_autotrain.parallel.graph.graph import LoopRole, Op, OpGraph
from jupyter_autotrain.parallel.graph.tensor_parallel import tensor_loops
from jupyter_autotrain.parallel.plan.importers import as_patterns
from jupyter_autotrain.parallel.search import Pins
from jupyter_autotrain.parallel.search.request.request import batch_size


@dataclass(frozen=True, slots=True)
class Megatron:
    """Degrees as Megatron-LM and systems derived from it name them.

    Attributes:
        tensor: Devices that split each layer.
        pipeline: Stages.
        data: Replicas; defaults to devices / (tensor * pipeline).
        expert: Of the replicas, those that share out the experts of mixtures (`--expert-model-parallel-size`).
        sequence_parallel: Split the sequence where layers are not split.
        zero: What replicas share out; 1 is the distributed optimizer.
        recompute: none, selective or full.
        microbatches: Parts of the batch.
        interleaved: Several chunks of layers per stage.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int | None = None
    expert: int = 1
    sequence_parallel: bool = False
    zero: int = 0
    recompute: str = "none"
    microbatches: int | None = None
    interleaved: bool = False

    def pins(self, traced: OpGraph, fused: OpGraph, cluster: ClusterSpec) -> Pins:  # noqa: ARG002 - see `Imported`
        """Degrees as pins.

        Raises:
            PlanError: When they do not multiply to the cluster, or do not divide the batch or the experts.
        """
        data = self._replicas(fused, cluster)
        self._check_experts(fused, data)
        sizes = (data // self.expert, self.expert, self.tensor)
        axes = [axis for axis, size in enumerate(sizes) if size > 1]
        splits = tensor_loops(fused, sequence_parallel=self.sequence_parallel)
        wanted = {}
        for op in fused.ops:
            batch, inner = splits[op.id]
            loops = (batch, *self._of_mixture(op, batch, inner))
            wanted[op.name] = tuple(map(loops.__getitem__, axes))
        schedule = Schedule.INTERLEAVED if self.interleaved else Schedule.ONE_F_ONE_B
        return Pins(
            mesh=tuple(sizes[axis] for axis in axes) or None,
            ops=as_patterns(wanted) if axes else {},
            stages=self.pipeline,
            microbatches=self.microbatches,
            schedule=schedule if self.pipeline > 1 else None,
            zero=ZeroLevel(self.zero),
            recompute=Recompute(self.recompute),
        )

    def _of_mixture(self, op: Op, batch: str | None, inner: str | None) -> tuple[str | None, str | None]:
        """Return the loops of an op that the expert axis and the tensor axis split."""
        found = exchanged(op)
        if self.expert == 1 or not found:
            return batch, inner
        width = (loop.name for loop in op.loops if loop.role is LoopRole.FEATURE and loop.shardable)
        return op.loops[next(iter(found))].name, next(width, None)

    def _check_experts(self, graph: OpGraph, data: int) -> None:
        counts = [op.loops[experts].size for op in graph.ops for experts in exchanged(op)]
        if self.expert == 1 or (counts and not any(count % self.expert for count in (data, *counts))):
            return
        experts = f"mixtures of {min(counts)} experts" if counts else "no mixture of experts"
        raise PlanError(
            f"Expert {self.expert} for a model with {experts}, beside {data} replicas.",
            "An expert axis lies within the replicas, and shares out the experts of mixtures evenly.",
            "Give a degree that divides both, or leave `expert` out.",
        )

    def _within(self) -> str:
        return f" ({self.data // self.expert} x expert {self.expert})" if self.expert > 1 and self.data else ""

    def _replicas(self, graph: OpGraph, cluster: ClusterSpec) -> int:
        inner = self.tensor * self.pipeline
        data = self.data or max(1, cluster.devices // inner)
        if inner * data != cluster.devices:
            degrees = f"Tensor {self.tensor} x pipeline {self.pipeline} x data {data}{self._within()}"
            raise PlanError(
                f"{degrees} is {inner * data} devices.",
                f"The cluster {cluster} has {cluster.devices}.",
                "Change a degree, or leave `data` out: it then takes what is left.",
            )
        parts = self.microbatches or 1
        if batch_size(graph) % (data * parts):
            raise PlanError(
                f"The batch of {batch_size(graph)} is not divided by data {data} x {parts} microbatches.",
                "Every replica gets the same number of samples in every microbatch.",
                "Change the batch of the example inputs, the degree, or the microbatches.",
            )
        return data


@dataclass(frozen=True, slots=True)
class Degrees:
    """The degrees of a mesh alone; levels of ZeRO, recompute, microbatches and the schedule are searched.

    Attributes:
        data: Parts of the batch, each of `expert` ranks.
        tensor: Devices that split each layer.
        pipeline: Stages.
        expert: Ranks that share out the experts of mixtures, each with samples of its own.
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1

    @classmethod
    def named(cls, degrees: Mapping[str, int]) -> Degrees:
        """Return degrees by the names of their axes, long or short (`dp`, `tp`, `pp`, `ep`).

        Raises:
            PlanError: An unknown name, or a degree that is no number from 1.
        """
        known = [field.name for field in fields(cls)]
        found = {SHORT_AXES.get(name, name): degree for name, degree in degrees.items()}
        unknown = next((name for name in found if name not in known), None)
        if unknown is not None:
            near = closest_match(unknown, known, cutoff=0.0)
            raise PlanError(
                f"Unknown axis {unknown!r}.", f"Known: {', '.join(known)}; the nearest is {near!r}.", "Correct it."
            )
        odd = next((name for name, degree in found.items() if type(degree) is not int or degree < 1), None)
        if odd is not None:
            raise PlanError(f"The degree of {odd} is {found[odd]!r}.", "A whole number from 1.", "Correct it.")
        return cls(**found)

    def pins(self, traced: OpGraph, fused: OpGraph, cluster: ClusterSpec) -> Pins:
        """Degrees as pins.

        Raises:
            PlanError: When they do not multiply to the cluster, or do not divide the batch.
        """
        replicas = self.data * self.expert
        found = Megatron(self.tensor, self.pipeline, replicas, self.expert).pins(traced, fused, cluster)
        of_stages = self.pipeline > 1 and self.tensor == 1  # of these, only a data axis beside stages runs
        return Pins(found.mesh, {} if of_stages else found.ops, found.stages)

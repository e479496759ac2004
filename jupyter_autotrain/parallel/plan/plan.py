"""`Plan`: how a model is split, with every question that can be asked about it as a method."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.core.cluster_figures import memory_of
from jupyter_autotrain.core.measurement import Accuracy
from jupyter_autotrain.core.table import Displayable
from jupyter_autotrain.parallel.apply.recipe import Recipe
from jupyter_autotrain.parallel.graph.prepare import PreparedGraph
from jupyter_autotrain.parallel.graph.resize import Extent, resized
from jupyter_autotrain.parallel.plan import text_report
from jupyter_autotrain.parallel.plan.code import check_reading, code
from jupyter_autotrain.parallel.plan.difference import PlanDifference, difference
from jupyter_autotrain.parallel.plan.explanation import Explanation
from jupyter_autotrain.parallel.plan.exports import export
from jupyter_autotrain.parallel.plan.formatting import PrintedTable
from jupyter_autotrain.parallel.plan.html_report import html_report
from jupyter_autotrain.parallel.plan.op_alternatives import explain
from jupyter_autotrain.parallel.plan.plan_data import PlanData
from jupyter_autotrain.parallel.plan.recipes import recipe_of
from jupyter_autotrain.parallel.plan.saving import measurement, plan_from_json, plan_to_json, tell
from jupyter_autotrain.parallel.plan.timeline import TimeSegment, timeline
from jupyter_autotrain.parallel.plan.traffic import with_traffic
from jupyter_autotrain.parallel.plan.view import view
from jupyter_autotrain.parallel.rehearse.outcome import Rehearsal
from jupyter_autotrain.parallel.search import Method, Mode, SearchRequest, Solution, retry_on_interrupt, solve

Model = TypeVar("Model")
Optimizer = TypeVar("Optimizer")
Loader = TypeVar("Loader")
_INTERPRETER = "jupyter_autotrain.parallel.apply.interpreter"
_REHEARSAL = "jupyter_autotrain.parallel.rehearse.rehearsal"
SLIDER_EFFORT = 0.15  # for interactive re-planning, within 0.2 s


@dataclass(frozen=True, repr=False)
class Plan(PlanData, Displayable):
    """The split of a model over a cluster, with the cost of a step and the proof of how good it is."""

    @classmethod
    def of(
        cls, request: SearchRequest, solution: Solution, trace_s: float = 0.0, accuracy: Accuracy | None = None
    ) -> Plan:
        """Return the plan of what `search.solve` found for a request."""
        counted, _ = retry_on_interrupt(lambda: with_traffic(request, solution))
        return cls(request, counted, trace_s, accuracy)

    def explain(self, op: str) -> Explanation:
        """Why an op is split as it is: its runner-up, and what that would cost in time and memory.

        Args:
            op: Name of an op, of an op fused into one, or of a module that has one op.

        Raises:
            PlanError: When the plan has no such op.
        """
        return explain(self, op)

    def diff(self, other: PlanData) -> PlanDifference:
        """Return what another plan does differently, from this one to that."""
        return difference(self, other)

    def what_if(
        self,
        *,
        bandwidth: float = 1.0,
        memory: str | float | None = None,
        devices: int | None = None,
        batch: int | None = None,
        sequence: int | None = None,
    ) -> Plan:
        """Return the plan for another machine or other inputs, by the heuristic search (`recursive_programming`).

        Fast enough for a slider; the model is not traced again.

        Args:
            bandwidth: Factor on every link.
            memory: Memory per device, as text (`"40GB"`) or bytes; also the limit.
            devices: Number of devices.
            batch: Samples of a step.
            sequence: Positions of a sample, where the model has a sequence.

        Raises:
            InfeasibleError: When no split fits.
        """
        memory_bytes = None if memory is None else memory_of(memory)
        cluster = self.full_cluster.scaled(bandwidth=bandwidth, memory_bytes=memory_bytes, devices=devices)
        limits = self.request.limits
        limits = replace(limits, memory_bytes=memory_bytes or limits.memory_bytes, effort=SLIDER_EFFORT)
        request = replace(self.request, search=Method.RECURSIVE_PROGRAMMING, limits=limits, baselines=False)
        if devices and request.mode is Mode.HYBRID_PARALLEL:
            request = replace(request, pins=replace(request.pins, mesh=None, stages=None, ops={}))
        graph = resized(self.graph, Extent(batch, sequence))
        return Plan.of(request, solve(PreparedGraph(graph), cluster, request))

    def table(self) -> PrintedTable:
        """Return what a rank of each stage holds, and sends in a step on each axis."""
        return text_report.rank_table(self)

    def timeline(self) -> tuple[TimeSegment, ...]:
        """One step as segments: compute, exposed communication, bubbles, per stage."""
        return timeline(self.decision_costs(), self.cost)

    def view(self) -> JsonObject:
        """Everything to draw as plain JSON values; the keys are described in `jupyter_autotrain.parallel.plan.view`."""
        return view(self)

    def to_code(self, tool: str = "", *, weights: str | Path | None = None) -> str:
        """Return the plan as code of torch alone, or as a tool's configuration.

        Where the plan runs, the code is its recipe written out: a module with `train(model, loader)` for torchrun,
        accumulation and optimizer with it. Where it is exported only, the first lines say what is left to be done.

        Args:
            tool: `accelerate`, `torchtitan`, `lightning`, `deepspeed`, `megatron` or `trainer` (of transformers); its
                configuration says first what it cannot express.
            weights: Where the code reads the weights of a model on the meta device, as `apply` does: a folder with
                safetensors files, or one file, on each rank's machine. Without it the model has values.

        Raises:
            PlanError: No tool has that name, or weights are given for what does not read them.
        """
        if weights is not None:
            check_reading(self, tool)
        return export(self, tool) if tool else code(self, str(weights or ""))

    def recipe(self) -> Recipe:
        """Return how the plan is executed, as plain data.

        Raises:
            PlanError: The plan has choices that are not executed.
        """
        return recipe_of(self.decision_costs())

    def apply(  # noqa: PLR0913 - the parts of a training loop, and what their steps need
        self,
        model: Model,
        optimizer: Optimizer,
        loader: Loader,
        *,
        schedulers: Iterable[Any] = (),
        max_norm: float | None = None,
        replicas: int = 1,
        weights: str | Path | None = None,
    ) -> tuple[Model, Optimizer, Loader]:
        """Make a training loop run as planned: `model, optimizer, loader = plan.apply(model, optimizer, loader)`.

        Each rank runs the loop as it stands: in the workers of a trial, under torchrun, or alone, where nothing is
        split. The model keeps its class, the optimizer its object. Where ranks share layers, logits stay split by
        classes in training, as one distributed tensor, and are whole in evaluation; losses are plain tensors; the model
        is not compiled (`torch.compile` is for plans without a tensor axis). Losses
        are those of one process, but for the units that are dropped out: ranks with other samples draw other numbers,
        ranks that share layers the same. The loader gives a rank its samples of each batch,
        one microbatch at a time; `optimizer.step` and `zero_grad` act with the last microbatch of a batch. After 20
        steps, rank 0 prints what a step takes and a rank holds beside what is predicted; later plans on such devices
        say how far off it was.

        Args:
            model: A torch module, with the same weights on all ranks or those of rank 0; or on the meta device: then
                each rank makes its own part of the weights only.
            optimizer: An optimizer of the model's parameters, with or without a past.
            loader: A `DataLoader`, or any iterable of whole batches of tensors.
            schedulers: Learning-rate schedulers of the optimizer, needed where the plan accumulates.
            max_norm: Norm that the gradients of all ranks together are clipped to at each step. Where the plan
                accumulates or ranks share layers, clip so and not in the loop, which sees the gradients of some
                microbatches, or parts, only.

            replicas: Groups of ranks that each hold all shards (HSDP), such as one per node; gradients are averaged
                over them.
            weights: Folder, or file, with the safetensors of a model on the meta device, of which each rank reads its
                part, as `save_pretrained` writes it or `snapshot_download` brings it. None: a model on the meta device
                starts at random, each layer drawn by the model's own code, alike on every plan.

        Raises:
            PlanError: The plan has choices that are not executed, or pipeline stages (see `parallelize`), or does not
                fit the processes, optimizer, loader or weights.
        """
        interpreter = import_module(_INTERPRETER)
        found: tuple[Model, Optimizer, Loader] = interpreter.apply(
            self.recipe().in_replicas(replicas),
            model,
            optimizer,
            loader,
            schedulers=schedulers,
            max_norm=max_norm,
            weights=weights,
            tell=self._tell_measured,
        )
        return found

    def parallelize(
        self,
        model: object,
        loss_fn: Callable[[Any, Any], Any] | None = None,
        *,
        optimizer: object,
        schedulers: Iterable[Any] = (),
        max_norm: float | None = None,
        weights: str | Path | None = None,
    ) -> Any:  # noqa: ANN401 - a `Training` of `apply`, which imports torch
        """Make training steps on whole batches run as planned, with pipeline stages or without.

        `train = plan.parallelize(model, loss_fn, optimizer=optimizer)`, then `loss = train.step(batch)` for each batch,
        the same on all ranks; each rank takes its part, and every rank gets the loss. Each rank runs the loop as it
        stands: in the workers of a trial, under torchrun, or alone, where nothing is split. Losses are those of one
        process, but for the units that are dropped out. Batches of other lengths cost a step that is run twice in a
        pipeline: pad them to one.

        Args:
            model: A torch module; ranks start from the weights of rank 0, or on the meta device (see `apply`). With
                stages, a rank keeps its layers only.
            loss_fn: Makes the loss from what the model returns and the target: the batch's `labels`, or its last part.
                None: the model returns its loss.
            optimizer: An optimizer of the model's parameters, with or without a past.
            schedulers: Its learning-rate schedulers, for checkpoints; step them after `train.step`.
            max_norm: Norm that the gradients of all ranks together are clipped to at each step.
            weights: Safetensors of a model on the meta device; see `apply`.

        Returns:
            An object with `step`, `evaluate`, `save_checkpoint`, `load_checkpoint` and `save_pretrained`.

        Raises:
            PlanError: The plan has choices that are not executed, or does not fit the processes, model or optimizer.
        """
        interpreter = import_module(_INTERPRETER)
        words = {"schedulers": schedulers, "max_norm": max_norm, "tell": self._tell_measured}
        return interpreter.parallelize(self.recipe(), model, loss_fn, optimizer, weights=weights, **words)

    def _tell_measured(self, step_s: tuple[float, ...], peak_bytes: tuple[int, ...]) -> None:
        tell(measurement(self, step_s, peak_bytes))

    def rehearse(self, loop: Callable[[], object], *, ranks: Sequence[int] = ()) -> Rehearsal:
        """Run two steps of a loop as ranks of this plan in this process, before that many devices are queued for.

        Nothing is sent: what is found is what depends on the rank, such as an error on one of them, a collective that
        others do not make, or parts that are not equal; not whether losses are right.

        Args:
            loop: A function that makes model, optimizer and loader, calls `plan.apply`, and trains; with few samples,
                and a small model where the real one does not fit here.
            ranks: Those that run; unless given all up to eight, of more the first two, one in the middle and the last.

        Raises:
            PlanError: This process is in a process group.
        """
        found: Rehearsal = import_module(_REHEARSAL).rehearse(loop, self.cluster.devices, ranks)
        return found

    def save_checkpoint(
        self,
        folder: str,
        model: object,
        optimizer: object,
        loader: object,
        *,
        step: int,
        schedulers: Iterable[Any] = (),
    ) -> None:
        """Save what trains as one checkpoint of all ranks, each of which makes this call; the two newest are kept.

        It loads on any other plan that runs, and in one process: `plan.load_checkpoint(folder, model, optimizer,
        loader)`. It is whole or not there at all. In a trial, `checkpoint.path` is the folder that the next attempt
        gets.

        Args:
            folder: Where checkpoints are, the same for all ranks.
            model: As `apply` has returned it, as the next two.
            optimizer: Its optimizer.
            loader: Its loader, whose place in the epoch is saved.
            step: How far the training is.
            schedulers: Learning-rate schedulers of the optimizer.

        Raises:
            PlanError: Microbatches of a step are still to come.
        """
        import_module(_INTERPRETER).save((model, optimizer, loader), schedulers, folder, step)

    def load_checkpoint(
        self, folder: str, model: object, optimizer: object, loader: object, *, schedulers: Iterable[Any] = ()
    ) -> int | None:
        """Go on from the newest checkpoint in a folder, in each rank.

        Weights, optimizer states, schedulers and the place in the epoch are as saved, on any number of ranks. Random
        numbers go on in ranks that the checkpoint has, so that dropout differs on another number of ranks.

        Returns:
            Its step; None where there is none.
        """
        step: int | None = import_module(_INTERPRETER).load((model, optimizer, loader), schedulers, folder)
        return step

    def save_pretrained(self, folder: str, model: object) -> None:
        """Save the trained model as a folder that plain transformers loads (safetensors, `from_pretrained`).

        Each rank makes this call; rank 0 gathers the weights in its host memory and writes.

        Args:
            folder: Where to write.
            model: A model of transformers, as `apply` has returned it.

        Raises:
            PlanError: The model has no `save_pretrained`.
        """
        import_module(_INTERPRETER).save_pretrained(self.recipe(), model, folder)

    def to_html(self) -> str:
        """Return a static page: no script, no network, at most 50 kB."""
        return html_report(self)

    def to_json(self) -> str:
        """Return the plan as JSON text: the keys of `view`, and `record`, from which `from_json` rebuilds it."""
        return plan_to_json(self)

    @classmethod
    def from_json(cls, saved: str) -> Plan:
        """Return the plan of a text made by `to_json`.

        Raises:
            PlanError: Not a plan, or of another version.
        """
        data = plan_from_json(saved)
        return cls(data.request, data.solution, data.trace_s, data.accuracy)

    def __repr__(self) -> str:
        return text_report.summary(self)

    def _repr_html_(self) -> str:
        return html_report(self)

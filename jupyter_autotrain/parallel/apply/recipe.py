"""The recipe of a plan: plain data, made once from its decision, which the interpreter runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.cost.memory import Recompute, Schedule, ZeroLevel


@dataclass(frozen=True, slots=True)
class LayerRecipe:
    """A layer whose weights are gathered, freed and reduced together.

    Attributes:
        path: As in `named_modules`.
        zero: What ranks share out of its weights' states.
        recompute: What of its activations is computed again in the backward pass.
    """

    path: str
    zero: ZeroLevel
    recompute: Recompute


class Layout(StrEnum):
    """The part of an activation (batch, positions, features) that a rank of the tensor axis has."""

    WHOLE = "whole"
    FEATURES = "features"
    POSITIONS = "positions"
    TERMS = "terms of a sum"
    CLASSES = "classes"
    """Its own classes of logits, as one distributed tensor, which the loss meets as it is."""


class WeightSplit(StrEnum):
    """The split of a module's weights over the tensor axis."""

    NONE = "none"
    COLUMNS = "columns"
    ROWS = "rows"
    VOCABULARY = "vocabulary"


@dataclass(frozen=True, slots=True)
class ModuleRecipe:
    """A module that a tensor axis changes.

    Attributes:
        path: As in `named_modules`.
        split: How its weights are split.
        comes: Layout in which its maker leaves its input.
        reads: Layout in which it reads that.
        leaves: Layout in which its readers find its output.
        parts: Equal projections in its weight, of which a rank has its share of each.
        sizes: The same where the projections are unequal, or cut out by their places: features of each.
        is_gathered: Whether the module that holds it has gathered its input, and sums the gradient of that.
    """

    path: str
    split: WeightSplit
    comes: Layout = Layout.WHOLE
    reads: Layout = Layout.WHOLE
    leaves: Layout = Layout.WHOLE
    parts: int = 1
    sizes: tuple[int, ...] = ()
    is_gathered: bool = False


@dataclass(frozen=True, slots=True)
class TensorRecipe:
    """The tensor axis of a plan, the innermost one.

    Attributes:
        ranks: Processes that share each layer.
        modules: Those that it changes, in the order of use.
        regions: First and last layer of each stretch between whose ends ranks have positions of their own.
        gathered: Modules whose input is gathered from those of all ranks before anything in them reads it.
        summed: Modules whose own weights see the positions of their rank only, so that gradients are summed.
        sizes: Attributes of modules, as paths, that hold a size of what is split; those of a rank are a part.
    """

    ranks: int
    modules: tuple[ModuleRecipe, ...]
    regions: tuple[tuple[str, str], ...] = ()
    gathered: tuple[str, ...] = ()
    summed: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExpertRecipe:
    """The expert axis of a plan, the innermost one; its ranks have samples of their own.

    Attributes:
        ranks: Processes that share out the experts of each mixture.
        modules: Paths of the modules that hold stacked experts.
    """

    ranks: int
    modules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PipelineRecipe:
    """The stages of a plan, each on consecutive ranks.

    Attributes:
        stages: How many there are.
        layers: Paths of the equal layers, in the order in which they run.
        ends: For each part, the number of the layer after its last one.
        first: Modules with weights that run before them.
        last: Modules with weights that run after them; of one weight in both, both stages have a copy.
        schedule: Order of microbatches.
        chunks: Parts of each stage, which are not consecutive (interleaved schedule).
    """

    stages: int
    layers: tuple[str, ...]
    ends: tuple[int, ...]
    first: tuple[str, ...]
    last: tuple[str, ...]
    schedule: Schedule
    chunks: int = 1

    @property
    def parts(self) -> int:
        """Return the number of consecutive layers that run together."""
        return self.stages * self.chunks

    def layers_of(self, part: int) -> range:
        """Return the numbers of the layers of a part."""
        return range(self.ends[part - 1] if part else 0, self.ends[part])


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that executing a plan needs: uniform data axes, a tensor axis, and pipeline stages.

    Attributes:
        ranks: All processes.
        replicas: Groups of ranks that each hold all shards (HSDP); 1: shards are spread over all ranks.
        zero: What ranks share out of the states of weights outside the layers; with `NONE` no layer shares either.
        layers: The layers, in order.
        microbatches: Parts of a rank's batch, whose gradients are accumulated.
        compute: Number format of weights in forward and backward pass: "bfloat16" with 32-bit master weights, or "" for
            the model's own.
        weights: Names of the trainable weights that the plan's ops read; the backward pass skips others.
        without_cache: Whether past keys are switched off.
        without_checkpointing: Whether the model's own gradient checkpointing is switched off.
        tensor: What ranks that share layers do; None: each rank has all of its layers.
        pipeline: What stages do; None: each rank runs the whole model.
        experts: What ranks that share out experts do; None: each rank has all experts.
    """

    ranks: int
    replicas: int = 1
    zero: ZeroLevel = ZeroLevel.NONE
    layers: tuple[LayerRecipe, ...] = ()
    microbatches: int = 1
    compute: str = ""
    weights: frozenset[str] = frozenset()
    without_cache: bool = False
    without_checkpointing: bool = False
    tensor: TensorRecipe | None = None
    pipeline: PipelineRecipe | None = None
    experts: ExpertRecipe | None = None

    @property
    def mixtures(self) -> tuple[str, ...]:
        """Return the paths of the modules whose experts lie on several ranks."""
        return self.experts.modules if self.experts else ()

    @property
    def samples(self) -> int:
        """Return the number of ranks of a stage, or groups of a tensor axis, that have samples of their own."""
        stages = self.pipeline.stages if self.pipeline else 1
        return self.ranks // stages // (self.tensor.ranks if self.tensor else 1)

    def check_loop(self) -> None:
        """Check that a loop of forward and backward passes can run this.

        Raises:
            PlanError: It has pipeline stages, with the two lines that run them.
        """
        if self.pipeline:
            raise PlanError(
                f"The plan has {self.pipeline.stages} pipeline stages, and plan.apply is for loops of forward and "
                "backward passes.",
                "Steps on whole batches, which the stages run together.",
                "train = plan.parallelize(model, loss_fn, optimizer=optimizer)\nloss = train.step(batch)",
            )

    def in_replicas(self, replicas: int) -> Recipe:
        """Return the recipe with several groups of ranks that each hold all shards.

        Raises:
            PlanError: The ranks cannot be divided so, or nothing is sharded.
        """
        if replicas == 1:
            return self
        groups = self.samples // self.experts.ranks if self.experts else 0
        if self.experts and (replicas < 1 or groups % replicas):
            raise PlanError(
                f"{replicas} replicas of a plan whose experts lie on {self.experts.ranks} of {self.samples} ranks.",
                "Replicas of which each has all shards, and all experts.",
                f"Give a divisor of {groups}, or leave `replicas` out.",
            )
        if self.zero is ZeroLevel.NONE or not 0 < replicas < self.samples or self.samples % replicas:
            sharded = "no shards" if self.zero is ZeroLevel.NONE else f"shards over {self.samples} ranks"
            raise PlanError(
                f"{replicas} replicas of a plan with {sharded}.",
                "Replicas that divide the ranks of a sharded plan into groups of several.",
                "Plan with pins={'zero': 3}, or leave out `replicas`.",
            )
        return replace(self, replicas=replicas)

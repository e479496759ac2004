"""The mappings inside a header that every cell may have: resources, budget, early stop, ship."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from jupyter_autotrain.core.tuner import EarlyStopOptions
from jupyter_autotrain.header.document import resolve
from jupyter_autotrain.header.quantities import OneOf
from jupyter_autotrain.header.types import AS_INTEGER, AS_NUMBER, Count, Duration, Few, Size, Texts, Workers

ADJACENT = OneOf(("ring", "mesh"))
EARLY_STOPS = ("none", "median", "asha", "hyperband", "curve", "threshold", "patience")
EARLY_STOP_RULE = OneOf(EARLY_STOPS, (("medianstop", "median"), ("curvefitting", "curve")), r"optuna:[A-Za-z]\w{0,80}")


class Section(BaseModel):
    """A mapping of known keys."""

    # Most experiments use few of the sections: their checkers are built when they are first used.
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, arbitrary_types_allowed=True)


class ResourcesSection(Section):
    """The needs of one trial."""

    cpus: Annotated[float, Field(gt=0, le=100_000), AS_NUMBER] | None = Field(
        default=None, description="CPU cores.", examples=["2"]
    )
    memory: Size | None = Field(default=None, description="Memory; a trial that takes more is ended.", examples=["8GB"])
    gpus: Few = Field(
        default=0, description="Number of GPUs, on each node; all workers of a node see them all.", examples=["1"]
    )
    gpu_memory: Size | None = Field(default=None, description="Least memory of each GPU.", examples=["16GB.."])
    adjacent: Annotated[str, ADJACENT] | None = Field(
        default=None,
        description="GPUs (and hosts) that are neighbours by their links: on a ring, or in a rectangle of a mesh.",
        examples=["ring"],
    )
    nodes: Workers = Field(default=1, description="Number of hosts that share one trial.", examples=["2"])
    workers_per_node: Workers = Field(
        default=1, description="Number of processes (ranks) of one trial on each of its hosts.", examples=["4"]
    )


class BudgetSection(Section):
    """When the experiment ends before its trials are used up."""

    time: Duration | None = Field(default=None, description="Wall-clock time of the experiment.", examples=["2h"])
    failures: Count | None = Field(default=None, description="Give up after this many failed trials.", examples=["3"])


class EarlyStopSection(Section):
    """When trials that fall behind are ended."""

    rule: Annotated[str, EARLY_STOP_RULE] = Field(
        default="median", description="The rule that finds them.", examples=["median"]
    )
    warmup_steps: Annotated[int, Field(ge=0, le=10**12), AS_INTEGER] = Field(
        default=0, description="No trial is stopped before it reports this step.", examples=["5"]
    )
    min_trials: Count | None = Field(
        default=None,
        description="How many other trials must have come as far; 3 with median, 1 with curve, else 2.",
        examples=["3"],
    )
    lower: Annotated[float, AS_NUMBER] | None = Field(
        default=None, description="Rule threshold: a trial whose value is below this is stopped.", examples=["0.1"]
    )
    upper: Annotated[float, AS_NUMBER] | None = Field(
        default=None, description="Rule threshold: a trial whose value is above this is stopped.", examples=["10"]
    )
    patience: Count = Field(
        default=10, description="Rule patience: how many reports a trial may not become better.", examples=["5"]
    )
    min_delta: Annotated[float, Field(ge=0), AS_NUMBER] = Field(
        default=0.0, description="Rule patience: a value is better when it is so by more than this.", examples=["0.01"]
    )
    options: Annotated[dict[str, Any], BeforeValidator(resolve)] = Field(
        default_factory=dict,
        description="Arguments of a pruner of Optuna, with `rule: 'optuna:CLASS'`.",
        examples=["{n_startup_trials: 3}"],
    )

    def to_options(self) -> EarlyStopOptions:
        """Return the options as the spec keeps them."""
        return EarlyStopOptions(
            self.warmup_steps, self.min_trials, self.lower, self.upper, self.patience, self.min_delta, self.options
        )


class ShipLimits(Section):
    """The limits of what may be sent."""

    files: Count = Field(default=2000, description="Number of files.", examples=["5000"])
    size: Size = Field(default=300_000_000, description="Bytes of all files and captured data.", examples=["1GB"])


class ShipSection(Section):
    """Files that travel with the cell."""

    files: Texts = Field(
        default=(), description="Files, folders or globs beside the notebook.", examples=["[data/*.csv]"]
    )
    ignore: Texts = Field(default=(), description="Patterns (as in .gitignore) that stay here.", examples=["['*.tmp']"])
    limits: ShipLimits = Field(default=ShipLimits(), description="How much may be sent.", examples=["{size: 1GB}"])

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return what to send, then what stays here, marked by `!`."""
        return (*self.files, *(f"!{pattern}" for pattern in self.ignore))

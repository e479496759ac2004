"""The mappings inside a header: resources, budget, ship, parallel."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from jupyter_autotrain.header.choices import OneOf
from jupyter_autotrain.header.types import AS_INTEGER, AS_NUMBER, Count, Duration, Few, Size, Text, Texts, Workers

PARALLEL_MODES = ("auto_parallel", "hybrid_parallel", "data_parallel", "stand_alone")
SEARCHES = ("recursive_programming", "dynamic_programming", "exhaustive")
EARLY_STOPS = ("none", "median", "asha")
EARLY_STOP_RULE = OneOf(EARLY_STOPS, (("medianstop", "median"),))


class Section(BaseModel):
    """A mapping of known keys."""

    # Most experiments use few of the sections: their checkers are built when they are first used.
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, arbitrary_types_allowed=True)


class ResourcesSection(Section):
    """What one trial needs."""

    cpus: Annotated[float, Field(gt=0, le=100_000), AS_NUMBER] | None = Field(
        default=None, description="CPU cores.", examples=["2"]
    )
    memory: Size | None = Field(default=None, description="Memory; a trial that takes more is ended.", examples=["8GB"])
    gpus: Few = Field(
        default=0, description="Number of GPUs, on each node; all workers of a node see them all.", examples=["1"]
    )
    gpu_memory: Size | None = Field(default=None, description="Least memory of each GPU.", examples=["16GB.."])
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
        description="How many other trials must have come as far; 3 with median, 2 with asha.",
        examples=["3"],
    )


class ShipLimits(Section):
    """How much may be sent."""

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
        """What to send, then what stays here, marked by `!`."""
        return (*self.files, *(f"!{pattern}" for pattern in self.ignore))


class ParallelSection(Section):
    """How a big model is split over devices: planned before the cell is sent, or by `--dry-run` alone."""

    cluster: Text | None = Field(default=None, description="The devices, or a backend.", examples=["2x8xH100"])
    mode: Annotated[str, OneOf(PARALLEL_MODES)] = Field(
        default="auto_parallel", description="What is searched.", examples=["auto_parallel"]
    )
    search: Annotated[str, OneOf(SEARCHES)] = Field(
        default="recursive_programming", description="How it is searched.", examples=[SEARCHES[1]]
    )
    memory_limit: Size | None = Field(default=None, description="Most memory per device.", examples=["80GB"])
    model: Text | None = Field(default=None, description="Expression that gives the model.", examples=["model"])
    inputs: Text | None = Field(default=None, description="Expression that gives example inputs.", examples=["batch"])

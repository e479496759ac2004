"""The section `parallel:`: how a model is split over the workers of a trial."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from jupyter_autotrain.header.document import KeyPath
from jupyter_autotrain.header.quantities import OneOf
from jupyter_autotrain.header.sections import ResourcesSection, Section
from jupyter_autotrain.header.types import AS_NUMBER, Size, Text, Workers

PARALLEL_MODES = ("auto_parallel", "hybrid_parallel", "data_parallel", "stand_alone")
SEARCHES = ("recursive_programming", "dynamic_programming", "exhaustive")
SHORT_AXES: Final = MappingProxyType({"dp": "data", "tp": "tensor", "pp": "pipeline"})


class MeshSection(Section):
    """The degrees of a split, as people name them; what is left out is 1."""

    data: Workers = Field(default=1, description="Parts of the batch; also `dp`.", examples=["2"])
    tensor: Workers = Field(default=1, description="Devices that split each layer; also `tp`.", examples=["2"])
    pipeline: Workers = Field(default=1, description="Stages of layers; also `pp`.", examples=["2"])

    @property
    def devices(self) -> int:
        """The number of devices that the degrees multiply to."""
        return self.data * self.tensor * self.pipeline


def _long_names(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {SHORT_AXES.get(name, name): degree for name, degree in value.items()}


class ParallelSection(Section):
    """The split of a model over devices: planned before the cell is sent, or by `--dry-run` alone."""

    workers: Workers | None = Field(
        default=None,
        description="The number of processes that the plan runs on, on all hosts together. The cell runs it with "
        "`plan.apply(model, optimizer, loader)`: the plan that this section makes of `model` and `inputs`, or without "
        "these the notebook's own `plan`. Without `workers` a plan is only kept with the experiment.",
        examples=["4"],
    )
    mode: Annotated[str, OneOf(PARALLEL_MODES)] = Field(
        default="auto_parallel", description="What is searched.", examples=["auto_parallel"]
    )
    mesh: Annotated[MeshSection, BeforeValidator(_long_names)] | None = Field(
        default=None, description="The degrees; searched where not given.", examples=["{dp: 2, tp: 2}"]
    )
    cluster: Text | None = Field(
        default=None,
        description="The devices, or a backend; with `workers` the backend of the trial unless given.",
        examples=["2x8xH100"],
    )
    memory_limit: Size | None = Field(default=None, description="Most memory per device.", examples=["80GB"])
    simplicity: Annotated[float, Field(ge=0, lt=1), AS_NUMBER] | None = Field(
        default=None,
        description="The share of the step time given up for a simpler plan; 0: the fastest plan. Unless given, what "
        "the cost model cannot tell apart.",
        examples=["0.05"],
    )
    search: Annotated[str, OneOf(SEARCHES)] = Field(
        default="recursive_programming", description="How it is searched.", examples=[SEARCHES[1]]
    )
    model: Text | None = Field(default=None, description="Expression that gives the model.", examples=["model"])
    inputs: Text | None = Field(default=None, description="Expression that gives example inputs.", examples=["batch"])


def worker_contradictions(
    section: ParallelSection | None, resources: ResourcesSection
) -> Iterator[tuple[KeyPath, str, str, str]]:
    """Yield what does not go with the number of workers: (path, found, expected, action)."""
    if section is None or section.workers is None:
        return
    workers = section.workers
    nodes = resources.nodes
    if workers % nodes:
        found = f"{workers} workers on {nodes} nodes"
        yield ("parallel", "workers"), found, f"expected a multiple of {nodes}", "change workers or resources.nodes"
    elif resources.workers_per_node not in {1, workers // nodes}:
        found = f"workers_per_node {resources.workers_per_node} beside {workers} workers in parallel"
        yield ("resources", "workers_per_node"), found, "expected one of the two", "remove workers_per_node"
    if section.mesh and section.mesh.devices != workers:
        found = f"a mesh of {section.mesh.devices} devices for {workers} workers"
        yield ("parallel", "mesh"), found, f"expected degrees that multiply to {workers}", "change mesh or workers"

"""The values of `tuner:`, `constraints:` and `parallel:`: how parameters and the split of a model are searched."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Annotated, Any, Final, cast

from pydantic import BeforeValidator, Field, WithJsonSchema

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.core.cluster import SHORT_AXES
from jupyter_autotrain.core.objective import Constraint
from jupyter_autotrain.header.document import KeyPath, UnfitError, expected_instead, resolve, shown
from jupyter_autotrain.header.quantities import OneOf
from jupyter_autotrain.header.sections.section import ResourcesSection, Section
from jupyter_autotrain.header.types import AS_NUMBER, Size, Text, Workers

TUNERS: Final = ("tpe", "random", "evolution", "cmaes", "gp", "qmc", "grid", "batch", "pbt")
LEARNING: Final = ("tpe", "evolution", "cmaes", "gp", "pbt")
_OTHER_NAMES: Final = {
    "gridsearch": "grid", "batchtuner": "batch", "gptuner": "gp", "cma-es": "cmaes", "nsga2": "evolution",
    "nsgaii": "evolution", "naiveevolution": "evolution", "sobol": "qmc", "pbttuner": "pbt",
}  # fmt: skip
_GROUP: Final = "jupyter_autotrain.tuners"
_CLASS: Final = re.compile(r"optuna:[A-Za-z]\w{0,80}|optunahub:[\w./-]{1,200}:[A-Za-z]\w{0,80}")
_FORM: Final = "expected a name such as tpe, {name: tpe, n_startup_trials: 20}, or {optuna: GPSampler}"
_BOUND: Final = re.compile(r"\s*([^\s<>=,]{1,100})\s*(<=|>=|<|>)\s*([^\s<>=,]{1,40})\s*")
_BOUND_FORM: Final = "expected `METRIC <= NUMBER` or `METRIC >= NUMBER`"


@dataclass(frozen=True, slots=True)
class TunerChoice:
    """A search algorithm by name, with its own options."""

    name: str
    options: JsonObject = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def read_tuner(value: object) -> TunerChoice:
    """Return the search algorithm that is meant.

    Raises:
        UnfitError: There is none of that name.
    """
    if isinstance(value, TunerChoice):
        return value
    if not isinstance(value, dict):
        return TunerChoice(_name(value))
    options = dict(value)
    if "optuna" in options:
        name = _name(f"optuna:{options.pop('optuna')}")
    elif "optunahub" in options:
        if "class" not in options:
            raise UnfitError("expected {optunahub: PACKAGE, class: CLASS}")
        name = _name(f"optunahub:{options.pop('optunahub')}:{options.pop('class')}")
    elif "name" in options:
        name = _name(options.pop("name"))
    else:
        raise UnfitError(_FORM)
    if options and name in {"grid", "batch"}:
        raise UnfitError(f"expected no options of {name}", found=f"{name} with {', '.join(map(str, options))}")
    return TunerChoice(name, cast("JsonObject", resolve(options)))


def _name(value: object) -> str:
    word = str(value) if isinstance(value, str) else ""
    plugins = [point.name for point in entry_points(group=_GROUP)]
    known = {name.lower(): name for name in plugins} | {name: name for name in TUNERS} | _OTHER_NAMES
    if word.lower() in known:
        return known[word.lower()]
    if _CLASS.fullmatch(word):
        return word
    raise UnfitError(expected_instead(word, (*TUNERS, *plugins)), "any sampler of Optuna: `tuner: {optuna: CLASS}`")


Tuner = Annotated[
    Any,
    BeforeValidator(read_tuner),
    WithJsonSchema({"anyOf": [{"type": "string", "enum": list(TUNERS)}, {"type": "string"}, {"type": "object"}]}),
]


def read_constraints(value: object) -> tuple[Constraint, ...]:
    """Return the constraints that are meant, one or a list.

    Raises:
        UnfitError: One cannot be read.
    """
    items: Sequence[object] = value if isinstance(value, list | tuple) else [value]
    return tuple(_constraint(item, index) for index, item in enumerate(items))


def _constraint(value: object, index: int) -> Constraint:
    if isinstance(value, Constraint):
        return value
    match = _BOUND.fullmatch(value) if isinstance(value, str) and len(value) < 200 else None
    bound = _number(match[3]) if match else None
    if match is None or bound is None:
        raise UnfitError(_BOUND_FORM, "as in `latency_ms <= 20`", found=shown(value), at=(index,))
    return Constraint(match[1], bound, is_upper=match[2].startswith("<"))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


Constraints = Annotated[
    tuple[Constraint, ...],
    BeforeValidator(read_constraints),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


PARALLEL_MODES = ("auto_parallel", "hybrid_parallel", "data_parallel", "stand_alone")
SEARCHES = ("recursive_programming", "dynamic_programming", "exhaustive")


class MeshSection(Section):
    """The degrees of a split, as people name them; what is left out is 1."""

    data: Workers = Field(
        default=1, description="Parts of the batch, each of `expert` devices; also `dp`.", examples=["2"]
    )
    tensor: Workers = Field(default=1, description="Devices that split each layer; also `tp`.", examples=["2"])
    pipeline: Workers = Field(default=1, description="Stages of layers; also `pp`.", examples=["2"])
    expert: Workers = Field(
        default=1,
        description="Devices that share out the experts of a mixture, each with samples of its own; also `ep`.",
        examples=["2"],
    )

    @property
    def devices(self) -> int:
        """The number of devices that the degrees multiply to."""
        return self.data * self.tensor * self.pipeline * self.expert


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

"""The verb `plan`: the best split of a model of the notebook over a cluster that need not exist here."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from jupyter_autotrain.core.cluster import ClusterSpec, find_named
from jupyter_autotrain.errors import AutotrainError, PlanError
from jupyter_autotrain.verbs.context import CommandContext

if TYPE_CHECKING:
    from jupyter_autotrain.parallel.plan import Plan, PlanImporter
    from jupyter_autotrain.parallel.search import StrategySpace


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A plan request, as text: expressions of model and inputs, the rest as `jupyter_autotrain.plan` takes it.

    Attributes:
        workers: The number of devices, where not all of the cluster's are meant.
        degrees: Axis of the mesh → its size; empty: searched.
        place: The backend that the workers run at.
    """

    model: str | None
    inputs: str | None
    cluster: str | None
    mode: str
    search: str
    memory: str | float | None
    offload: bool = False
    simplicity: float | None = None
    workers: int | None = None
    degrees: Mapping[str, int] = field(default_factory=dict)
    place: str = ""

    @property
    def missing(self) -> list[str]:
        """Arguments that a plan cannot be made without: with a number of workers, devices are those where they run."""
        needed = ("model", "inputs") if self.workers else ("model", "inputs", "cluster")
        return [name for name in needed if getattr(self, name) is None]


def plan(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Find the best split and show it."""
    show_plan(
        command,
        PlanRequest(
            arguments.model,
            arguments.inputs,
            arguments.cluster,
            arguments.mode,
            arguments.search,
            arguments.memory,
            arguments.offload,
            arguments.simplicity,
        ),
    )


def calibrate(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Measure a place, and tell what was found."""
    calibrating = import_module("jupyter_autotrain.client.calibrating")  # loads numpy, as planning does
    found = calibrating.calibrate(arguments.backend, workers=arguments.workers, home=command.home, say=command.write)
    command.write(f"{found}\nPlan for it: %autotrain plan EXPR --cluster {arguments.backend}\n")


def show_plan(command: CommandContext, request: PlanRequest) -> None:
    """Make a plan and show it; raises what `make_plan` does."""
    command.show_plan(make_plan(command, request))


def make_plan(command: CommandContext, request: PlanRequest) -> Plan:
    """Evaluate the request's expressions among the user's names, and plan.

    Raises:
        AutotrainError: When an expression or the cluster is missing, and whatever planning raises.
    """
    if request.missing:
        raise AutotrainError(
            f"No plan without {' and '.join(request.missing)}.",
            "Expressions for model and example inputs, and a cluster such as 2x8xH100.",
            "In a header: `parallel: {workers: 4, model: net, inputs: batch}`; or give them to %autotrain plan.",
        )
    planning = import_module("jupyter_autotrain.parallel.api")  # loads numpy, which no other verb needs
    found: Plan = planning.plan(
        command.evaluate(str(request.model)),
        command.evaluate(str(request.inputs)),
        _cluster(request),
        request.mode,
        request.search,
        request.memory,
        pins=_pins(request.degrees),
        space=_space(request),
        offload=request.offload,
        simplicity=request.simplicity,
    )
    return found


def _cluster(request: PlanRequest) -> str | ClusterSpec:
    """Return the devices of a request: as many of the cluster's as there are workers, else processes of this kind."""
    if request.workers is None:
        return str(request.cluster)
    try:
        found = find_named(request.cluster or request.place)
    except PlanError:
        if request.cluster:
            raise
        found = None
    if found is None and request.cluster:
        found = ClusterSpec.parse(request.cluster)
    cluster = found or ClusterSpec.parse(f"{request.workers}xCPU")
    return cluster if cluster.devices == request.workers else cluster.scaled(devices=request.workers)


def _pins(degrees: Mapping[str, int]) -> PlanImporter | None:
    if not degrees:
        return None
    found: PlanImporter = import_module("jupyter_autotrain.parallel.plan").Degrees(**degrees)
    return found


def _space(request: PlanRequest) -> StrategySpace | None:
    """Return where to search: with a number of workers all have a part, also where fewer are as fast."""
    if request.workers is None:
        return None
    found: StrategySpace = import_module("jupyter_autotrain.parallel.search").StrategySpace(all_devices=True)
    return found

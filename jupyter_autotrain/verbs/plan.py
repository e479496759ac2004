"""The verb `plan`: the best split of a model of the notebook over a cluster that need not exist here."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.verbs.context import CommandContext

if TYPE_CHECKING:
    from jupyter_autotrain.parallel.plan import Plan


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What to plan, as text: expressions for model and inputs, the rest as `jupyter_autotrain.plan` takes it."""

    model: str | None
    inputs: str | None
    cluster: str | None
    mode: str
    search: str
    memory: str | float | None
    offload: bool = False


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
        ),
    )


def show_plan(command: CommandContext, request: PlanRequest) -> None:
    """Make a plan and show it; raises what `make_plan` does."""
    command.show_plan(make_plan(command, request))


def make_plan(command: CommandContext, request: PlanRequest) -> Plan:
    """Evaluate the request's expressions among the user's names, and plan.

    Raises:
        AutotrainError: When an expression or the cluster is missing, and whatever planning raises.
    """
    missing = [name for name in ("model", "inputs", "cluster") if getattr(request, name) is None]
    if missing:
        raise AutotrainError(
            f"No plan without {' and '.join(missing)}.",
            "Expressions for model and example inputs, and a cluster such as 2x8xH100.",
            "In a header: `parallel: {model: net, inputs: batch, cluster: 2x8xH100}`; or give them to %autotrain plan.",
        )
    planning = import_module("jupyter_autotrain.parallel.api")  # loads numpy, which no other verb needs
    found: Plan = planning.plan(
        command.evaluate(str(request.model)),
        command.evaluate(str(request.inputs)),
        str(request.cluster),
        request.mode,
        request.search,
        request.memory,
        offload=request.offload,
    )
    return found

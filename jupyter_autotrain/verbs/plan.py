"""The verb `plan`: how a model of the notebook would best be split over a cluster that need not exist here."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from importlib import import_module

from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.verbs.desk import Desk


@dataclass(frozen=True, slots=True)
class Wish:
    """What to plan, in words: expressions for model and inputs, the rest as `jupyter_autotrain.plan` takes it."""

    model: str | None
    inputs: str | None
    cluster: str | None
    mode: str
    search: str
    memory: str | float | None
    offload: bool = False


def plan(desk: Desk, arguments: argparse.Namespace) -> None:
    """Find the best split and show it."""
    show_plan(
        desk,
        Wish(
            arguments.model,
            arguments.inputs,
            arguments.cluster,
            arguments.mode,
            arguments.search,
            arguments.memory,
            arguments.offload,
        ),
    )


def show_plan(desk: Desk, wish: Wish) -> None:
    """Evaluate the wish's expressions at the desk, plan, show.

    Raises:
        AutotrainError: When an expression or the cluster is missing, and whatever planning raises.
    """
    missing = [name for name in ("model", "inputs", "cluster") if getattr(wish, name) is None]
    if missing:
        raise AutotrainError(
            f"No plan without {' and '.join(missing)}.",
            "Expressions for model and example inputs, and a cluster such as 2x8xH100.",
            "In a header: `parallel: {model: net, inputs: batch, cluster: 2x8xH100}`; or give them to %autotrain plan.",
        )
    planning = import_module("jupyter_autotrain.parallel.api")  # loads numpy, which no other verb needs
    found = planning.plan(
        desk.evaluate(str(wish.model)),
        desk.evaluate(str(wish.inputs)),
        str(wish.cluster),
        wish.mode,
        wish.search,
        wish.memory,
        offload=wish.offload,
    )
    desk.show_plan(found)

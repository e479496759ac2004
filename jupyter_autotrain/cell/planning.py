"""The plan of a cell: what its header's `parallel:` asks for, made before the cell is captured.

The cell finds it under the name `plan`; where the header says only how many workers there are, that is the notebook's
own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.capture import Capture
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.header import Header
from jupyter_autotrain.verbs import PlanRequest

if TYPE_CHECKING:
    from jupyter_autotrain.parallel.plan import Plan

NAME: Final = "plan"
_GRAPH: Final = frozenset({"groups", "nodes", "edges", "tensors", "timeline"})

Planner: TypeAlias = "Callable[[PlanRequest], Plan]"


def cell_plan(header: Header, names: Mapping[str, object], planner: Planner) -> Plan | None:
    """Return the plan that a cell runs or keeps; None without `parallel:`.

    Args:
        header: The header of the cell.
        names: The notebook's names.
        planner: Makes a plan.

    Raises:
        AutotrainError: There is no such plan, or it is for another number of workers; whatever planning raises.
    """
    section = header.parallel
    if section is None:
        return None
    if section.workers and section.model_fields_set == {"workers"}:
        return _own_plan(names.get(NAME), section.workers)
    plan = planner(plan_request(header))
    devices = plan.cluster.devices
    if section.workers not in {None, devices}:
        raise AutotrainError(
            f"The plan is for {devices} devices ({section.mode}), and the header has {section.workers} workers.",
            "One worker for each device.",
            f"Write `workers: {devices}`, or a mode that splits the model, such as auto_parallel.",
        )
    return plan


def plan_request(header: Header) -> PlanRequest:
    """Return what `parallel:` asks for."""
    section = header.parallel
    assert section is not None
    mesh = section.mesh
    return PlanRequest(
        section.model,
        section.inputs,
        section.cluster,
        section.mode,
        section.search,
        section.memory_limit,
        simplicity=section.simplicity,
        workers=section.workers,
        degrees=mesh.model_dump() if mesh else {},
        place=header.choices[0].profile.name,
    )


def _own_plan(found: object, workers: int) -> Plan:
    """Return the notebook's plan, which the cell then runs."""
    if not _is_plan(found):
        raise AutotrainError(
            "The header has `parallel:` with a number of workers alone, and the notebook has no plan named `plan`.",
            "A plan: of the header's model and inputs, or the notebook's own.",
            "Add `model: EXPR, inputs: EXPR` to parallel, or make one before: plan = at.plan(model, batch, ...).",
        )
    devices = found.cluster.devices
    if devices != workers:
        raise AutotrainError(
            f"The notebook's plan is for {devices} devices, and the header has {workers} workers.",
            "One worker for each device.",
            f"Write `parallel: {{workers: {devices}}}`, or plan for {workers} devices.",
        )
    return found


def _is_plan(value: object) -> TypeGuard[Plan]:
    package = sys.modules.get("jupyter_autotrain.parallel.plan")  # where it is not imported, there is no plan
    return package is not None and isinstance(value, package.Plan)


def check_used(plan: Plan, header: Header, names: Mapping[str, object], captured: Capture) -> bool:
    """Return whether the cell runs the plan of its header.

    Raises:
        AutotrainError: It is not clear which plan that is.
        PlanError: The plan has choices that are not executed, or the cell runs stages in a loop.
    """
    section = header.parallel
    if section is None or section.workers is None or all(entry.name != NAME for entry in captured.captured):
        return False
    if NAME in names and names[NAME] is not plan:
        raise AutotrainError(
            "The cell reads `plan`: its header makes one, and the notebook has another.",
            "One plan of that name.",
            f"Write `parallel: {{workers: {section.workers}}}` to run the notebook's, or `del plan`.",
        )
    recipe = plan.recipe()
    if f"{NAME}.apply(" in captured.script:
        recipe.check_loop()
    return True


def kept_plan(plan: Plan) -> JsonObject:
    """Return what is kept of a plan: figures, ways beside it and code; not the graph, which grows with the model."""
    return {name: value for name, value in plan.view().items() if name not in _GRAPH}


def headline(plan: Plan, *, used: bool) -> str:
    """Return what is told of the plan before the cell is sent."""
    what = f"{plan.name} on {plan.full_cluster}: {plan.solution.name}"
    if used:
        return f"Planned: {what}. The plan is the cell's `plan`, and stays with the experiment."
    return f"Planned: {what}. The plan is kept with the experiment; the cell itself runs as it is written."

"""A plan as JSON text, from which it is rebuilt."""

from __future__ import annotations

import json
from typing import Final, cast

from jupyter_autotrain.agent.json import JsonObject, from_json, to_json
from jupyter_autotrain.core.measurement import Accuracy
from jupyter_autotrain.errors import InvariantError, PlanError
from jupyter_autotrain.parallel.graph.check import check
from jupyter_autotrain.parallel.plan.plan_data import PlanData
from jupyter_autotrain.parallel.plan.view import view
from jupyter_autotrain.parallel.search import SearchRequest, Solution

FORMAT: Final = 6
"""Of `record`: raised with every change of a dataclass in it. 6: `execute` in requests, `none_runs` in solutions."""
EXPECTED: Final = f"A plan saved by plan.to_json(), format {FORMAT}."
ACTION: Final = "Plan again and save the new plan."


def plan_to_json(plan: PlanData) -> str:
    """Return the plan as one JSON text; nothing is lost."""
    saved = {
        "format": FORMAT,
        "request": to_json(plan.request),
        "solution": to_json(plan.solution),
        "trace_s": plan.trace_s,
        "accuracy": to_json(plan.accuracy),
    }
    return json.dumps({**view(plan), "record": saved}, separators=(",", ":"), default=list)


def plan_from_json(text: str) -> PlanData:
    """Return the plan of a text made by `plan_to_json`.

    Raises:
        PlanError: Not JSON, another format, or cut short.
    """
    try:
        saved = cast("JsonObject", json.loads(text)["record"])
        found = saved.get("format", 1)
        if found != FORMAT:
            raise PlanError(f"The plan is saved in format {found}.", EXPECTED, ACTION)
        request = from_json(SearchRequest, saved["request"])
        solution = from_json(Solution, saved["solution"])
        check(solution.graph)
        known = saved.get("accuracy")
        accuracy = None if known is None else from_json(Accuracy, known)
    except (ValueError, TypeError, KeyError, AttributeError, InvariantError) as fault:
        raise PlanError(f"The plan cannot be read: {fault!r}.", EXPECTED, ACTION) from fault
    return PlanData(request, solution, cast("float", saved["trace_s"]), accuracy)

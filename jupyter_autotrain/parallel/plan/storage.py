"""A plan as JSON text and back: everything that `view` shows, and under `record` what it is rebuilt from."""

from __future__ import annotations

import json
from typing import Final, cast

from jupyter_autotrain.core.json import JsonObject, from_json, to_json
from jupyter_autotrain.errors import InvariantError, PlanError
from jupyter_autotrain.parallel.graph.check import check
from jupyter_autotrain.parallel.plan.record import PlanRecord
from jupyter_autotrain.parallel.plan.view import view
from jupyter_autotrain.parallel.search import SearchRequest, Solution

FORMAT: Final = 3
"""Of `record`: raised with every change of a dataclass in it. 3: `state_shardings` in settings, `repeated_blocks` in
graphs."""
EXPECTED: Final = f"A plan saved by plan.to_json(), format {FORMAT}."
ACTION: Final = "Plan again and save the new plan."


def plan_to_json(record: PlanRecord) -> str:
    """The plan as one JSON text; nothing is lost."""
    kept = {
        "format": FORMAT,
        "request": to_json(record.request),
        "solution": to_json(record.solution),
        "trace_s": record.trace_s,
    }
    return json.dumps({**view(record), "record": kept}, separators=(",", ":"), default=list)


def plan_from_json(text: str) -> PlanRecord:
    """The plan of a text made by `plan_to_json`.

    Raises:
        PlanError: Not JSON, another format, or cut short.
    """
    try:
        kept = cast("JsonObject", json.loads(text)["record"])
        found = kept.get("format", 1)
        if found != FORMAT:
            raise PlanError(f"The plan is saved in format {found}.", EXPECTED, ACTION)
        request = from_json(SearchRequest, kept["request"])
        solution = from_json(Solution, kept["solution"])
        check(solution.graph)
    except (ValueError, TypeError, KeyError, AttributeError, InvariantError) as fault:
        raise PlanError(f"The plan cannot be read: {fault!r}.", EXPECTED, ACTION) from fault
    return PlanRecord(request, solution, cast("float", kept["trace_s"]))

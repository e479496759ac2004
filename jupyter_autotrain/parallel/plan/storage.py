"""A plan as JSON text and back: everything that `view` shows, and under `record` what it is rebuilt from."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import cast

from jupyter_autotrain.core.json import JsonObject, from_json, to_json
from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.graph import io
from jupyter_autotrain.parallel.plan.record import PlanRecord
from jupyter_autotrain.parallel.plan.view import VERSION, view
from jupyter_autotrain.parallel.search import SearchRequest, Solution


def written(record: PlanRecord) -> str:
    """The plan as one JSON text; nothing is lost but the solvers' own notes."""
    kept = {
        "graph": json.loads(io.to_json(record.graph)),
        "request": to_json(record.request),
        "solution": to_json(replace(record.solution, outcome=None)),
        "trace_s": record.trace_s,
    }
    return json.dumps({**view(record), "record": kept}, separators=(",", ":"), default=list)


def read(text: str) -> PlanRecord:
    """The plan of a text made by `written`.

    Raises:
        PlanError: Not JSON, another version, or cut short.
    """
    expected = f"A plan saved by plan.to_json(), version {VERSION}."
    action = "Plan again and save the plan anew."
    try:
        found = json.loads(text)
        if not isinstance(found, dict) or found.get("version") != VERSION:
            raise PlanError("The text is no plan of this version.", expected, action)
        kept = cast("dict[str, JsonObject]", found["record"])
        return PlanRecord(
            io.from_json(json.dumps(kept["graph"])),
            from_json(SearchRequest, kept["request"]),
            from_json(Solution, kept["solution"]),
            cast("float", kept["trace_s"]),
        )
    except (ValueError, TypeError, KeyError) as fault:
        raise PlanError(f"The plan cannot be read: {fault!r}.", expected, action) from fault

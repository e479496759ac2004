"""A plan as JSON text, from which it is rebuilt.

Its measured steps beside what it predicts are printed, and told to the home that keeps the trial.
"""

from __future__ import annotations

import json
from typing import Final, cast

from jupyter_autotrain.agent.json import JsonObject, from_json, to_json
from jupyter_autotrain.agent.ranks import api
from jupyter_autotrain.agent.sizes import format_memory
from jupyter_autotrain.core.measurement import MEASUREMENT_LEVEL, Accuracy, Measurement
from jupyter_autotrain.errors import InvariantError, PlanError
from jupyter_autotrain.parallel.graph.check import check
from jupyter_autotrain.parallel.plan.formatting import ms
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


def measurement(plan: PlanData, step_s: tuple[float, ...], peak_bytes: tuple[int, ...]) -> Measurement:
    """Return what was measured of a plan, with what it predicts.

    Args:
        plan: The plan.
        step_s: Seconds of a step, of each rank.
        peak_bytes: Most bytes, of each rank; empty where they could not be counted.
    """
    return Measurement(
        family=plan.name,
        plan=plan.solution.name,
        cluster=str(plan.cluster),
        devices=tuple(sorted({device.name for device, _ in plan.cluster.kinds})),
        predicted_step_s=plan.cost.step_s,
        predicted_bytes=plan.cost.peak_memory_bytes,
        step_s=step_s,
        peak_bytes=peak_bytes,
    )


def tell(measured: Measurement) -> None:
    """Print a measurement; in a trial it also goes to the home that keeps the trial."""
    step_s = max(measured.step_s)
    text = f"autotrain: a step takes {ms(step_s)}, predicted {ms(measured.predicted_step_s)} on {measured.cluster}"
    if measured.peak_bytes:
        predicted = format_memory(measured.predicted_bytes)
        text += f"; a rank holds at most {format_memory(max(measured.peak_bytes))}, predicted {predicted}"
    print(text)  # noqa: T201 - the log of the training that runs the plan
    trial = api.context()
    if trial is not None:
        trial.reporter.note(MEASUREMENT_LEVEL, json.dumps(to_json(measured)))

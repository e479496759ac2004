"""A plan's measured steps beside what it predicts: printed, and told to the home that keeps the trial."""

from __future__ import annotations

import json

from jupyter_autotrain.agent.json import to_json
from jupyter_autotrain.agent.ranks import api
from jupyter_autotrain.agent.sizes import format_memory
from jupyter_autotrain.core.measurement import MEASUREMENT_LEVEL, Measurement
from jupyter_autotrain.parallel.plan.formatting import ms
from jupyter_autotrain.parallel.plan.plan_data import PlanData


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

"""The calls of Ray Tune in trial code."""

from __future__ import annotations

from jupyter_autotrain.agent.ranks.stand_ins import report_numbers


def report(metrics: dict[str, object] | None = None, *, checkpoint: object = None, **more: object) -> None:  # noqa: ARG001 - Ray's contract
    """Report the metrics that are numbers, of the next step; `training_iteration` is the step where it is given."""
    values = {**(metrics or {}), **more}
    report_numbers(values, values.pop("training_iteration", None))

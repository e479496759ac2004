"""A stand-in for NNI's trial API, with the contract of NNI 3.0.

A metric is a number, or a mapping with the key `default`; it becomes the metric `default` of the trial. The final
result is the last value of it.
"""

from __future__ import annotations

from jupyter_autotrain.agent.ranks import api
from jupyter_autotrain.agent.ranks.stand_ins import report_numbers
from jupyter_autotrain.agent.ranks.stand_ins.nni import utils

__all__ = [
    "get_current_parameter",
    "get_experiment_id",
    "get_next_parameter",
    "get_sequence_id",
    "get_trial_id",
    "report_final_result",
    "report_intermediate_result",
    "utils",
]
__version__ = "3.0"


def get_next_parameter() -> dict[str, object]:
    """Return the trial's parameters; none outside a trial."""
    trial = api.context()
    return {} if trial is None else dict(trial.params)


def get_current_parameter(tag: str | None = None) -> object:
    """Return the trial's parameters, or one of them."""
    params = get_next_parameter()
    return params if tag is None else params.get(tag)


def report_intermediate_result(metric: object) -> None:
    """Report a metric of the next step."""
    report_numbers(metric if isinstance(metric, dict) else {"default": metric})


def report_final_result(metric: object) -> None:
    """Report the trial's last metric."""
    report_numbers(metric if isinstance(metric, dict) else {"default": metric})


def get_experiment_id() -> str:
    """Return the experiment's id."""
    return _job()[0] or "STANDALONE"


def get_trial_id() -> str:
    """Return the trial's id."""
    return "-".join(filter(None, _job()[:2])) or "STANDALONE"


def get_sequence_id() -> int:
    """Return the trial's number from 0."""
    number = _job()[1]
    return int(number) - 1 if number.isdigit() else 0


def _job() -> tuple[str, str]:
    """Return the experiment's id and the trial's number, as the trial's directory says them; "" outside a trial."""
    trial = api.context()
    if trial is None:
        return "", ""
    experiment_id = str(trial.trial.get("experiment_id") or "")
    return experiment_id, str(trial.trial.get("number") or "")

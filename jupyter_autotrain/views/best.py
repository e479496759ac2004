"""The best trial of an experiment, and how views name it. Which trial it is, `core.ranking` decides."""

from __future__ import annotations

from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.core.text_format import cut, number

_LABEL_CHARACTERS = 40


def best_text(objective: Objective, best: TrialRecord) -> str:
    """The value of the best trial, its number and its state: `val_acc (last) 0.94 in trial 3 (SUCCEEDED)`."""
    label = cut(objective.label, _LABEL_CHARACTERS)
    return f"{label} {number(best.value)} in trial {best.number} ({best.state})"


def value_text(trial: TrialRecord) -> str:
    """The value of a trial, with its state unless it has succeeded."""
    state = "" if trial.state is TrialState.SUCCEEDED else f" ({trial.state})"
    return f"{number(trial.value)}{state}"

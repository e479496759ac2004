"""Early stopping by a pruner of Optuna. This module loads Optuna; it is loaded when first needed."""

from __future__ import annotations

import math
from collections.abc import Mapping

import optuna
from optuna.pruners import BasePruner

from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.tuner import Curve, StopReason
from jupyter_autotrain.tuners.study import TrialStorage


class OptunaPruner:
    """Bridge to a pruner, over a study to which only what is new is added.

    Args:
        pruner: The pruner.
        objective: What ranks trials.
        warmup_steps: No trial is judged before it reports this step.
    """

    def __init__(self, pruner: BasePruner, objective: Objective, warmup_steps: int) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._pruner = pruner
        self._warmup_steps = warmup_steps
        self._storage = TrialStorage(newest=None)
        direction = str(objective.direction)
        self._study = optuna.create_study(storage=self._storage, direction=direction, pruner=pruner)  # type: ignore[arg-type]  # one of the two
        self._id = self._storage.get_study_id_from_name(self._study.study_name)
        self._trials: dict[int, int] = {}
        self._known: dict[int, int] = {}  # reports, by trial
        self._judged = 0

    def reason_to_stop(self, number: int, curve: Curve, others: Mapping[int, Curve]) -> StopReason | None:
        """Ask the pruner about a trial's newest report."""
        for key, other in others.items():
            if key == self._judged or self._known.get(key) != len(other):
                self._set(key, other, is_judged=False)
        self._set(number, curve, is_judged=True)
        self._judged = number
        step, value = curve[-1]
        trial = self._storage.get_trial(self._trials[number])
        if step < self._warmup_steps or not self._pruner.prune(self._study, trial):
            return None
        return StopReason(step, value, f"stopped by {type(self._pruner).__name__} of Optuna")

    def _set(self, number: int, curve: Curve, *, is_judged: bool) -> None:
        """Bring a trial of the study up to date; a curve that has become shorter is that of a new attempt."""
        if number not in self._trials or self._known[number] > len(curve):
            self._trials[number] = self._storage.create_new_trial(self._id)
        reports = {step: value for step, value in curve if math.isfinite(value)}
        self._storage.set_reports(self._trials[number], reports, is_judged=is_judged)
        self._known[number] = len(curve)

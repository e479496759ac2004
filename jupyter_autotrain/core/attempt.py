"""From an experiment to one attempt of one of its trials, as a backend takes it."""

from __future__ import annotations

from typing import cast

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.json import JsonObject, to_json
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.spec import ExperimentSpec, TrialSpec


def trial_spec(home: Home, spec: ExperimentSpec, trial: TrialRecord) -> TrialSpec:
    """The present attempt of a trial. A seed is shifted by the trial's number, from 0.

    A second attempt is told where the checkpoints of the one before it lie.
    """
    where = trial.experiment_id, trial.number
    before = home.trial(*where, trial.attempt - 1) / wire.CHECKPOINTS
    return TrialSpec(
        experiment_id=trial.experiment_id,
        number=trial.number,
        attempt=trial.attempt,
        directory=str(home.trial(*where, trial.attempt)),
        bundle=str(home.bundle(trial.experiment_id)),
        script=spec.bundle.script,
        python=spec.bundle.python,
        params=trial.params,
        seed=None if spec.seed is None else spec.seed + trial.number - 1,
        objective=spec.objective.metric if spec.objective else "",
        resources=spec.resources,
        gpus=trial.gpus,
        timeout_s=spec.timeout_s,
        environment=spec.environment,
        env=spec.env,
        secrets=spec.secrets,
        returns=spec.returns,
        resume_from=str(before) if trial.attempt > 1 else "",
        cwd=spec.cwd,
        options=cast("JsonObject", to_json(spec.local)),
    )

"""From an experiment to one attempt of one of its trials, as a backend takes it."""

from __future__ import annotations

from dataclasses import replace

from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.spec import ExperimentSpec, TrialSpec


def trial_spec(spec: ExperimentSpec, trial: TrialRecord) -> TrialSpec:
    """The present attempt of a trial. A seed is shifted by the trial's number, from 0.

    A later attempt continues from the last checkpoints of those before.
    """
    return TrialSpec(
        experiment_id=trial.experiment_id,
        number=trial.number,
        attempt=trial.attempt,
        bundle_sha256=spec.bundle.sha256,
        script=spec.bundle.script,
        params=trial.params,
        seed=None if spec.seed is None else spec.seed + trial.number - 1,
        objective=spec.objective.metric if spec.objective else "",
        resources=spec.resources,
        launcher=spec.launcher,
        elastic=spec.elastic,
        timeout_s=spec.timeout_s,
        environment=spec.environment,
        env=spec.env,
        python_environment=spec.python_environment,
        python_packages=spec.bundle.python_packages,
        secrets=spec.secrets,
        returns=spec.returns,
        data=tuple(replace(source, local_path="") for source in spec.data),
        fetch_limit_bytes=spec.fetch_limit_bytes,
        resume_attempt=trial.attempt - 1 if trial.attempt > 1 else None,
        options=spec.choice(trial.placement.backend).options,
    )

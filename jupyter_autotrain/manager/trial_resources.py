"""What a trial requests of one of its experiment's backends."""

from __future__ import annotations

from jupyter_autotrain.core.inventory import AcceleratorPolicy
from jupyter_autotrain.core.json import from_json
from jupyter_autotrain.core.profile import BackendChoice
from jupyter_autotrain.manager.experiment_run import ExperimentRun
from jupyter_autotrain.manager.node_allocator import ResourceRequest


def resource_request(run: ExperimentRun, number: int, choice: BackendChoice) -> ResourceRequest:
    """What a trial requests of one of its backends, and which of its nodes it avoids or prefers."""
    trial = run.trials[number]
    label = f"trial {number} of {run.label}"
    policy = from_json(AcceleratorPolicy, {**choice.profile.options, **choice.options})
    avoid = run.history.lost_by(number, choice.profile.name)
    prefer = run.history.last_on(number, choice.profile.name)
    refused = run.history.refused_by(number, choice.profile.name)
    job_id = f"{run.id}-{number}-{trial.attempt}"
    return ResourceRequest(job_id, label, run.record.spec.resources, policy, avoid, prefer, refused)

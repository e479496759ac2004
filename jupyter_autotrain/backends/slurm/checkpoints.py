"""What a trial goes on from: the last checkpoints of its attempts before, on the cluster or on another backend."""

from __future__ import annotations

from jupyter_autotrain.backends import earlier_checkpoints
from jupyter_autotrain.backends.earlier_checkpoints import in_home
from jupyter_autotrain.backends.slurm.cluster import Cluster
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import BackendContext, JobRef
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.spec import TrialSpec


def from_last_saved(cluster: Cluster, trial: TrialSpec, context: BackendContext) -> TrialSpec:
    """The trial, which goes on from the last attempt with checkpoints, in the home or on the cluster.

    Raises:
        BackendUnavailableError: The cluster does not answer.
    """
    return earlier_checkpoints.from_last_saved(trial, context, lambda attempt: _are_there(cluster, trial, attempt))


def _are_there(cluster: Cluster, trial: TrialSpec, attempt: int) -> bool:
    job_id = trial.job_id_of(attempt)
    ref = JobRef("", job_id, cluster.ref_data(job_id))
    return earlier_checkpoints.are_there(lambda: cluster.sizes(ref, wire.CHECKPOINTS))


def folder_there(cluster: Cluster, trial: TrialSpec) -> str:
    """What the controller calls the folder of the attempt gone on from on the cluster; "" where there is none."""
    before = trial.resume_attempt
    return "" if before is None else f"{cluster.ref_data(trial.job_id_of(before))['directory']}/{wire.CHECKPOINTS}"


def have(cluster: Cluster, trial: TrialSpec, context: BackendContext) -> JsonObject:
    """Have checkpoints there that were brought into the home; gives what changes of `trial.json` by that.

    Raises:
        BackendUnavailableError: The cluster does not answer.
    """
    found = in_home(context, trial)
    if found is None or trial.resume_attempt is None:
        return {}
    if _are_there(cluster, trial, trial.resume_attempt):
        return {}
    return {"resume_from": cluster.send_checkpoints(found, trial.job_id_of(trial.resume_attempt))}

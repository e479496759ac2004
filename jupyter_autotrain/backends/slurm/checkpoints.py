"""What a trial goes on from: the checkpoints of its attempt before, on the cluster or on another backend."""

from __future__ import annotations

from jupyter_autotrain.backends.slurm.cluster import Cluster
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import BackendContext, JobRef
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError


def folder_there(cluster: Cluster, trial: TrialSpec) -> str:
    """What the controller calls the folder that the attempt before has on the cluster; "" where there was none."""
    before = trial.resume_attempt
    return "" if before is None else f"{cluster.ref_data(trial.job_id_of(before))['directory']}/{wire.CHECKPOINTS}"


def have(cluster: Cluster, trial: TrialSpec, context: BackendContext) -> JsonObject:
    """Have checkpoints there that were brought into the home; gives what changes of `trial.json` by that.

    Raises:
        BackendUnavailableError: The cluster does not answer.
    """
    before = trial.resume_attempt
    if before is None:
        return {}
    kept = context.directory(trial, before) / wire.CHECKPOINTS
    job_id = trial.job_id_of(before)
    if not kept.is_dir() or not any(kept.iterdir()) or _has_own(cluster, job_id):
        return {}
    return {"resume_from": cluster.send_checkpoints(kept, job_id)}


def _has_own(cluster: Cluster, job_id: str) -> bool:
    try:
        return bool(cluster.sizes(JobRef("", job_id, cluster.ref_data(job_id)), wire.CHECKPOINTS))
    except BackendUnavailableError:
        raise
    except AutotrainError:  # the cluster has never seen the attempt
        return False

"""What a trial goes on from: the checkpoints of its attempt before, on the cluster or on another backend."""

from __future__ import annotations

from jupyter_autotrain.backends.earlier_checkpoints import are_there, in_home
from jupyter_autotrain.backends.slurm.cluster import Cluster
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import BackendContext, JobRef
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.spec import TrialSpec


def folder_there(cluster: Cluster, trial: TrialSpec) -> str:
    """What the controller calls the folder that the attempt before has on the cluster; "" where there was none."""
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
    job_id = trial.job_id_of(trial.resume_attempt)
    ref = JobRef("", job_id, cluster.ref_data(job_id))
    if are_there(lambda: cluster.sizes(ref, wire.CHECKPOINTS)):
        return {}
    return {"resume_from": cluster.send_checkpoints(found, job_id)}

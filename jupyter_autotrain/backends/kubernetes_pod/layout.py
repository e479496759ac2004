"""Where things lie on the volume of the profile's `storage:`, as pods see it."""

from __future__ import annotations

STORAGE = "/autotrain/storage"
TRIALS = f"{STORAGE}/trials"
DATA = f"{STORAGE}/data"
ENVIRONMENTS = f"{STORAGE}/environments"


def trial_directory(job_id: str, node: int) -> str:
    """The trial directory of a node of a trial, on the volume.

    Args:
        job_id: The trial and its attempt.
        node: Its number among the nodes of the trial.
    """
    return f"{TRIALS}/{job_id}/node-{node}"


def checkpoints(job_id: str) -> str:
    """What a trial that is not rescaled has saved; of several nodes each rank has a folder of its own in it."""
    return f"{TRIALS}/{job_id}/checkpoints"

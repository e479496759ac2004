"""PaddleJob of Kubeflow's training operator: workers without a master, its collective mode."""

from __future__ import annotations

from jupyter_autotrain.backends.kubernetes.training_operator import GROUP, WorkersJob
from jupyter_autotrain.backends.kubernetes.workload import ObjectType

PADDLEJOB = ObjectType(GROUP, "v1", "paddlejobs", "PaddleJob")


def paddlejob() -> WorkersJob:
    """The workload; the trial succeeds when all workers have."""
    return WorkersJob(PADDLEJOB, "paddle", "paddleReplicaSpecs")

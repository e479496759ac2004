"""PaddleJob of Kubeflow's training operator: workers without a master, its collective mode."""

from __future__ import annotations

from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.backends.kubernetes.workloads.training_operator import GROUP, WorkersJob

PADDLEJOB = ObjectType(GROUP, "v1", "paddlejobs", "PaddleJob")


def paddlejob() -> WorkersJob:
    """The workload; the trial succeeds when all workers have."""
    return WorkersJob(PADDLEJOB, "paddle", "paddleReplicaSpecs")

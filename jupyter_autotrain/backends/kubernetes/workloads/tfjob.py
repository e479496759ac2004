"""TFJob of Kubeflow's training operator: workers that each get `TF_CONFIG`; the trial ends when worker 0 does."""

from __future__ import annotations

from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.backends.kubernetes.workloads.training_operator import GROUP, WorkersJob

TFJOB = ObjectType(GROUP, "v1", "tfjobs", "TFJob")


def tfjob() -> WorkersJob:
    """The workload."""
    return WorkersJob(TFJOB, "tensorflow", "tfReplicaSpecs")

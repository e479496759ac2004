"""The contract of backends, for `type: kubeflow`."""

from __future__ import annotations

import pytest

from jupyter_autotrain.backends.kubernetes.kubeflow_backend import KubeflowBackend
from tests.kubernetes.cluster_contract import ClusterContract
from tests.labs.kubernetes import kubeflow
from tests.labs.kubernetes.cluster import KubernetesLab

pytestmark = [
    pytest.mark.fault,
    pytest.mark.long,
]


class OnKubeflow(ClusterContract):
    """Makes objects of one kind."""

    backend_type = KubeflowBackend
    group = "kubeflow.org"

    def prepare(self, lab: KubernetesLab) -> None:
        kubeflow.install(lab.store, mpi_operator="0.8")


class TestPyTorchJob(OnKubeflow):
    options = {"kind": "PyTorchJob"}  # noqa: RUF012 - not changed


class TestTrainJob(OnKubeflow):
    options = {"kind": "TrainJob"}  # noqa: RUF012 - not changed
    group = "trainer.kubeflow.org"


class TestMPIJob(OnKubeflow):
    options = {"kind": "MPIJob"}  # noqa: RUF012 - not changed


del ClusterContract, OnKubeflow

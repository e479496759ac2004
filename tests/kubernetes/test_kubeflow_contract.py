"""The contract of backends, for `type: kubeflow`."""

from __future__ import annotations

import os

import pytest

from jupyter_autotrain.backends.kubernetes.kubeflow_backend import KubeflowBackend
from jupyter_autotrain.testing.kubernetes import kubeflow
from jupyter_autotrain.testing.kubernetes.cluster import KubernetesLab
from tests.kubernetes.cluster_contract import ClusterContract

IS_LONG = os.environ.get("AUTOTRAIN_LONG_TESTS", "") not in ("", "0")
pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(not IS_LONG, reason="that of type kubernetes does here; set AUTOTRAIN_LONG_TESTS=1"),
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

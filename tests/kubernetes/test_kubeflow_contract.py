"""The contract of backends, for `type: kubeflow` on the double."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator

import pytest

from jupyter_autotrain.backends.kubernetes import access
from jupyter_autotrain.backends.kubernetes.kubeflow_backend import KubeflowBackend
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.testing import BackendContract, trial_of, wait_until
from jupyter_autotrain.testing.kubernetes import kubeflow
from jupyter_autotrain.testing.kubernetes.cluster import KubernetesLab
from jupyter_autotrain.testing.kubernetes.resources import PODS

load_once = functools.cache(access.load)  # it takes a process of its own
IS_LONG = os.environ.get("AUTOTRAIN_LONG_TESTS", "") not in ("", "0")
pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(not IS_LONG, reason="that of type kubernetes does here; set AUTOTRAIN_LONG_TESTS=1"),
]


class OnKubeflow(BackendContract):
    """Makes objects of one kind."""

    kind = ""

    @pytest.fixture(autouse=True)
    def of_cluster(self, cluster: KubernetesLab) -> Iterator[None]:
        """The double, with the operators."""
        kubeflow.install(cluster.store, has_mpi_operator=True)
        self.cluster = cluster
        self.made: list[Backend] = []
        yield
        for backend in self.made:
            backend.close()

    def make(self, context: BackendContext) -> Backend:
        options = {"kubeconfig": str(self.cluster.kubeconfig), "kind": self.kind, "python": sys.executable}
        backend = KubeflowBackend(Profile("lab", "kubeflow", options), context, load_once)
        self.made.append(backend)
        return backend

    def is_gone(self, pid: int) -> bool:
        wait_until(lambda: not self.cluster.store.list(PODS, None)[0], "the end of all pods")
        return True

    def test_a_path_that_is_not_there_is_named_with_its_node(self, backend: Backend) -> None:
        assert backend.missing_paths(["/no/such/place"]) == []  # only a pod can look, and its trial says it

    def test_given_gpus_are_the_visible_ones(self, backend: Backend, home: Home) -> None:
        code = "import os\nprint(os.environ['NVIDIA_VISIBLE_DEVICES'])"
        ref = backend.submit(trial_of(home, code, resources=Resources(gpus=2)), Placement(), {})
        assert self.finish(backend, ref).state is TrialState.SUCCEEDED
        assert len(self.read(backend, ref, wire.STDOUT).split(b",")) == 2


class TestPyTorchJob(OnKubeflow):
    kind = "PyTorchJob"


class TestTrainJob(OnKubeflow):
    kind = "TrainJob"


class TestMPIJob(OnKubeflow):
    kind = "MPIJob"


del OnKubeflow, BackendContract

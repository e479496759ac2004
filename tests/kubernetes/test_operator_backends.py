"""The contract of all backends for the types that run trials as objects of AdaptDL and FrameworkController."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from jupyter_autotrain.backends.kubernetes.adaptdl_backend import AdaptdlBackend
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.framework_backend import FrameworkBackend
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.testing import BackendContract
from jupyter_autotrain.testing.kubernetes.cluster import KubernetesLab

long_only = pytest.mark.skipif(
    not os.environ.get("AUTOTRAIN_LONG_TESTS"),
    reason="the contract of one type is in the default run; AUTOTRAIN_LONG_TESTS=1",
)


class OperatorContract(BackendContract):
    """The contract for one type."""

    backend_type: type[KubernetesBackend]

    @pytest.fixture(autouse=True)
    def _cluster(self, cluster: KubernetesLab) -> Iterator[None]:
        self.cluster = cluster
        self.made: list[Backend] = []
        yield
        for backend in self.made:
            backend.close()

    def make(self, context: BackendContext) -> Backend:
        options = {"kubeconfig": str(self.cluster.kubeconfig), "python": sys.executable}
        backend = self.backend_type(Profile("cluster", "cluster", options), context)
        self.made.append(backend)
        return backend


@long_only
class TestAdaptdl(OperatorContract):
    backend_type = AdaptdlBackend


@long_only
class TestFramework(OperatorContract):
    backend_type = FrameworkBackend

"""The contract of all backends for the types that run trials as objects of AdaptDL and FrameworkController."""

from __future__ import annotations

import os
import sys

import pytest

from jupyter_autotrain.backends.kubernetes.adaptdl_backend import AdaptdlBackend
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.framework_backend import FrameworkBackend
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.profile import Profile
from tests.kubernetes import test_kubernetes_backend as plain

long_only = pytest.mark.skipif(
    "AUTOTRAIN_LONG_TESTS" not in os.environ,
    reason="the contract of plain Jobs does in the default run; AUTOTRAIN_LONG_TESTS=1, as in `make soak`",
)


class OperatorContract(plain.TestKubernetes):
    """The contract for one type."""

    backend_type: type[KubernetesBackend]

    def make(self, context: BackendContext) -> Backend:
        options = {"kubeconfig": str(self.cluster.kubeconfig), "python": sys.executable}
        backend = self.backend_type(Profile("cluster", "cluster", options), context, plain.load_once)
        self.made.append(backend)
        return backend


@long_only
class TestAdaptdl(OperatorContract):
    backend_type = AdaptdlBackend


@long_only
class TestFramework(OperatorContract):
    backend_type = FrameworkBackend

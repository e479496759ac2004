"""The contract of all backends for the types that run trials as objects of AdaptDL and FrameworkController."""

from __future__ import annotations

import os

import pytest

from jupyter_autotrain.backends.kubernetes.adaptdl_backend import AdaptdlBackend
from jupyter_autotrain.backends.kubernetes.framework_backend import FrameworkBackend
from tests.kubernetes.cluster_contract import ClusterContract

long_only = pytest.mark.skipif(
    "AUTOTRAIN_LONG_TESTS" not in os.environ,
    reason="the contract of plain Jobs does in the default run; AUTOTRAIN_LONG_TESTS=1, as in `make soak`",
)


@long_only
class TestAdaptdl(ClusterContract):
    backend_type = AdaptdlBackend
    group = "adaptdl.petuum.com"


@long_only
class TestFramework(ClusterContract):
    backend_type = FrameworkBackend
    group = "frameworkcontroller.microsoft.com"


del ClusterContract

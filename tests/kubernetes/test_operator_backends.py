"""The contract of all backends for the types that run trials as objects of AdaptDL and FrameworkController."""

from __future__ import annotations

import pytest

from jupyter_autotrain.backends.kubernetes.adaptdl_backend import AdaptdlBackend
from jupyter_autotrain.backends.kubernetes.framework_backend import FrameworkBackend
from tests.kubernetes.cluster_contract import ClusterContract


@pytest.mark.long
class TestAdaptdl(ClusterContract):
    backend_type = AdaptdlBackend
    group = "adaptdl.petuum.com"


@pytest.mark.long
class TestFramework(ClusterContract):
    backend_type = FrameworkBackend
    group = "frameworkcontroller.microsoft.com"


del ClusterContract

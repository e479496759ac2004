"""The contract of backends, on the double and, unchanged, on any cluster.

The cluster is the one of KUBECONFIG (`make test-cluster`), see `real_cluster`; each test has a namespace of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from kubernetes import client

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.testing import BackendContract, trial_of, wait_until
from tests.kubernetes import real_cluster
from tests.kubernetes.api.conftest import client_of
from tests.kubernetes.kubeconfigs import load_once
from tests.labs.kubernetes.cluster import KubernetesLab


@dataclass(frozen=True)
class Target:
    """A cluster to test on.

    Attributes:
        kubeconfig: What reaches it.
        namespace: Where the objects are made, and no others are.
        options: How the trials run there.
        is_double: Whether it is the double.
    """

    kubeconfig: Path
    namespace: str
    options: dict[str, str]
    is_double: bool = False

    def pods(self) -> list[str]:
        """Return the names of the pods that there are."""
        with client_of(self.kubeconfig) as api:
            return [pod.metadata.name for pod in client.CoreV1Api(api).list_namespaced_pod(self.namespace).items]

    def serves(self, group: str) -> bool:
        """Return whether kinds of a group can be made; the group without a name always can."""
        with client_of(self.kubeconfig) as api:
            return not group or group in {found.name for found in client.ApisApi(api).get_api_versions().groups}


class ClusterContract(BackendContract):
    """The contract for one type of backend."""

    backend_type: type[KubernetesBackend] = KubernetesBackend
    options: ClassVar[dict[str, str]] = {}
    group = ""

    @pytest.fixture(autouse=True, params=["double", pytest.param("cluster", marks=pytest.mark.cluster)])
    def _on_target(self, request: pytest.FixtureRequest) -> Iterator[None]:
        self.made: list[Backend] = []
        with ExitStack() as stack:
            self.target = self._target(request, stack)
            if not self.target.serves(self.group):
                pytest.skip(f"the cluster does not serve {self.group}")
            yield
            for backend in self.made:
                backend.close()

    def _target(self, request: pytest.FixtureRequest, stack: ExitStack) -> Target:
        if request.param == "double":
            lab = request.getfixturevalue("cluster")
            self.prepare(lab)
            return Target(lab.kubeconfig, "default", {"python": sys.executable}, is_double=True)
        path = request.getfixturevalue("real_kubeconfig")
        core = client.CoreV1Api(stack.enter_context(client_of(path)))
        return Target(path, stack.enter_context(real_cluster.new_namespace(core)), real_cluster.trial_options())

    def prepare(self, lab: KubernetesLab) -> None:
        """Install in the double what the type needs."""

    def make(self, context: BackendContext) -> Backend:
        options = {"kubeconfig": str(self.target.kubeconfig), "namespace": self.target.namespace}
        profile = Profile("cluster", "cluster", {**options, **self.target.options, **self.options})
        backend = self.backend_type(profile, context, load_once)
        self.made.append(backend)
        return backend

    def is_gone(self, pid: int) -> bool:
        wait_until(lambda: not self.target.pods(), "the end of all pods")
        return True

    def test_a_path_that_is_not_there_is_named_with_its_node(self, backend: Backend) -> None:
        assert backend.missing_paths(["/no/such/place"]) == []  # only a pod can look, and its trial says it

    def test_given_gpus_are_the_visible_ones(self, backend: Backend, home: Home) -> None:
        if not self.target.is_double and not any(node.accelerators for node in backend.discover().nodes):
            pytest.skip("the cluster shows no accelerators")
        code = "import os\nprint(os.environ['NVIDIA_VISIBLE_DEVICES'])"
        ref = backend.submit(trial_of(home, code, resources=Resources(gpus=2)), Placement(), {})
        assert self.finish(backend, ref).state is TrialState.SUCCEEDED
        assert len(self.read(backend, ref, wire.STDOUT).split(b",")) == 2


del BackendContract

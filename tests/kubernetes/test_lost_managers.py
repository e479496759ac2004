"""Tests of what happens to pods while no manager looks."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.kubeflow_backend import KubeflowBackend
from jupyter_autotrain.core.backend import BackendContext, Cursor, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.testing import trial_of, wait_until
from jupyter_autotrain.testing.harness import WAITS
from tests.kubernetes.kubeconfigs import load_once
from tests.labs.kubernetes import kubeflow
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.resources import PODS


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def backend_of(cluster: KubernetesLab, home: Home) -> KubeflowBackend:
    options = {"kubeconfig": str(cluster.kubeconfig), "kind": "PyTorchJob", "python": sys.executable}
    return KubeflowBackend(Profile("lab", "kubeflow", options), BackendContext(home), load_once)


def has_printed(backend: KubeflowBackend, ref: JobRef) -> bool:
    backend.poll([ref])
    return bool(backend.read([Cursor(ref, wire.STDOUT, 0)])[0].data)


def uid_of_running_pod(cluster: KubernetesLab) -> str:
    running = [pod for pod in cluster.store.list(PODS, None)[0] if pod["status"].get("phase") == "Running"]
    return running[0]["metadata"]["uid"] if running else ""


def test_a_pod_that_is_deleted_and_made_again_while_no_manager_runs_loses_the_trial(
    cluster: KubernetesLab, home: Home
) -> None:
    kubeflow.install(cluster.store)
    first = backend_of(cluster, home)
    try:
        ref = first.submit(trial_of(home, WAITS), Placement(), {})
        wait_until(lambda: has_printed(first, ref), "its output")
    finally:
        first.close()
    uid = uid_of_running_pod(cluster)
    (pod,) = cluster.store.list(PODS, None)[0]
    cluster.store.delete(PODS, "default", pod["metadata"]["name"], grace_s=0)
    wait_until(lambda: uid_of_running_pod(cluster) not in {"", uid}, "the pod that is made in its place")
    second = backend_of(cluster, home)
    try:
        wait_until(lambda: second.poll([ref])[0].state.is_final, "its end")
        (found,) = second.poll([ref])
        assert found.state is TrialState.LOST
        assert "was made in its place" in found.reason
    finally:
        second.close()

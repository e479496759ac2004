"""Tests of trials of which the cluster does not say how they stand now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.access.credentials import Access
from jupyter_autotrain.backends.kubernetes.adaptdl_backend import AdaptdlBackend
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.framework_backend import FrameworkBackend
from jupyter_autotrain.backends.kubernetes.kubeflow_backend import KubeflowBackend
from jupyter_autotrain.backends.log_channel.collected import collected_folder
from jupyter_autotrain.core.backend import BackendContext, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.errors import BackendUnavailableError

KINDS = {
    "Job": (KubernetesBackend, "v1"), "PyTorchJob": (KubeflowBackend, "v1"), "TrainJob": (KubeflowBackend, "v1alpha1"),
    "MPIJob": (KubeflowBackend, "v2beta1"), "AdaptDLJob": (AdaptdlBackend, "v1"), "Framework": (FrameworkBackend, "v1"),
}  # fmt: skip


def away(_path: str, _context: str) -> Access:
    raise BackendUnavailableError("https://cluster.example does not answer.")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", ["RUNNING", "SUCCEEDED", "PREPARING", ""])
def test_a_trial_stays_in_the_state_that_was_known_last_with_a_doubt(tmp_path: Path, kind: str, state: str) -> None:
    home = Home(tmp_path / "home")
    make, version = KINDS[kind]
    ref = JobRef("lab", "e1-1-1", {"name": "e1-1-1-x", "namespace": "default", "kind": kind, "version": version})
    node = collected_folder(home, ref.job_id, "kubernetes") / "0"
    node.mkdir(parents=True)
    if state:
        (node / "states").write_text(json.dumps({"state": state, "reason": "", "supervisor": [1, 0.0, ""]}) + "\n")
    backend = make(Profile("lab", "lab", {}), BackendContext(home), away)
    try:
        (status,) = backend.poll([ref])
    finally:
        backend.close()
    runs = state in {"RUNNING", "SUCCEEDED"}  # what it has left is not collected yet
    assert status.state is (TrialState.RUNNING if runs else TrialState.PREPARING)
    assert status.doubt == "https://cluster.example does not answer"
    assert status.unreachable

"""`backends check` as a process of its own: when it ends, nothing of its trial is in the cluster."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.kubernetes.every_kind import KINDS, left
from tests.labs.kubernetes import kubeflow
from tests.labs.kubernetes.cluster import KubernetesLab

CHECK = """
import json, sys
from jupyter_autotrain.client.backend_check import check_backend
from jupyter_autotrain.core.profile import Profile
for step in check_backend(Profile("lab", sys.argv[1], json.loads(sys.argv[2]))):
    print(json.dumps([step.name, step.is_good, step.text]), flush=True)
"""
TYPES = {"Job": "kubernetes", "AdaptDLJob": "adaptdl", "Framework": "frameworkcontroller"}


def check(cluster: KubernetesLab, kind: str) -> list[tuple[str, bool, str]]:
    options = {"kubeconfig": str(cluster.kubeconfig), "namespace": "default", **KINDS[kind][1]}
    command = [sys.executable, "-c", CHECK, TYPES.get(kind, "kubeflow"), json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return [(name, is_good, text) for name, is_good, text in map(json.loads, done.stdout.splitlines())]


@pytest.mark.parametrize(
    "kind", ["Job", *(pytest.param(kind, marks=pytest.mark.long) for kind in KINDS if kind != "Job")]
)
def test_nothing_is_left_at_the_moment_a_check_ends(cluster: KubernetesLab, kind: str) -> None:
    kubeflow.install(cluster.store, mpi_operator="0.8")
    steps = check(cluster, kind)
    assert left(cluster) == []
    assert all(is_good for _, is_good, _ in steps), steps
    assert steps[-1][::2] == ("clean", "nothing of it is left: no process, no object, no folder")

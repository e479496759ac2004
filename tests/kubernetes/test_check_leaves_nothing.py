"""`backends check` as a process of its own: when it ends, nothing of its trial is in the cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from jupyter_autotrain.testing.kubernetes import kubeflow
from jupyter_autotrain.testing.kubernetes.cluster import KubernetesLab
from tests.kubernetes.every_kind import KINDS, left

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


def test_nothing_is_left_at_the_moment_a_check_of_any_kind_ends(cluster: KubernetesLab, tmp_path: Path) -> None:
    kubeflow.install(cluster.store, mpi_operator="0.8")
    for kind in KINDS:
        steps = check(cluster, kind)
        assert left(cluster) == [], kind
        assert all(is_good for _, is_good, _ in steps), steps
        assert steps[-1][::2] == ("clean", "nothing of it is left: no process, no object, no folder")

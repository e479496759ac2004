"""Trials as objects of Kubeflow: the cases whose manifests are kept in `tests/golden/kubeflow.json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jupyter_autotrain.backends.kubernetes.objects.workload import Workload, WorkloadRequest
from jupyter_autotrain.backends.kubernetes.workloads.manifests import manifests
from jupyter_autotrain.backends.kubernetes.workloads.pod_template import PodProgram, pod_template
from jupyter_autotrain.backends.kubernetes.workloads.training_operator import (
    MPIJobWorkload,
    PyTorchJobWorkload,
    mpijob_v1,
    paddlejob,
    tfjob,
)
from jupyter_autotrain.backends.kubernetes.workloads.training_runtimes import Runtime, TrainJobLayout
from jupyter_autotrain.backends.kubernetes.workloads.trainjob import TrainJobWorkload
from jupyter_autotrain.core.spec import Resources, TrialSpec

HOME = "3f2a"
TRIAL = TrialSpec(
    "20261122-digits", 3, 1, resources=Resources(cpus=2, memory_bytes=4_000_000_000, gpus=1), secrets=("TOKEN",)
)
LABELS = {"app.kubernetes.io/managed-by": "jupyter-autotrain", "jupyter-autotrain/job": "20261122-digits-3-1"}
PROGRAM = PodProgram(
    command=("python3", "-u", "/autotrain/code/agent.zip"),
    env={"AUTOTRAIN_POD": "{}"},
    secret="digits-secret",
    secret_variables=("TOKEN",),
    volumes=({"name": "autotrain-run", "emptyDir": {}},),
    mounts=({"name": "autotrain-run", "mountPath": "/autotrain/run"},),
)
FULL = {
    "node_selector": {"pool": "training"}, "service_account": "trainer", "image_pull_secrets": ["registry"],
    "shared_memory": 1_000_000_000, "image": "lab/torch:1", "queue": "team-a", "ttl": 3600.0,
}  # fmt: skip
OVERRIDES_2_1 = TrainJobLayout(
    "podTemplateOverrides",
    frozenset(
        {"affinity", "containers", "imagePullSecrets", "nodeSelector", "serviceAccountName", "tolerations", "volumes"}
    ),
    frozenset({"env", "name", "volumeMounts"}),
    has_deadline=False,
    overrides_have_manager=False,
)


def request(workload: Workload, options: dict[str, Any], **changes: Any) -> WorkloadRequest:
    name = workload.object_name(TRIAL.job_id, HOME)
    trial = replace(TRIAL, timeout_s=changes.get("timeout_s"))
    template = pod_template(trial, options, PROGRAM, LABELS).result
    given: dict[str, Any] = {"nodes": 1, "min_nodes": 1, "workers_per_node": 1, "launcher": "env", **changes}
    given["min_nodes"] = changes.get("min_nodes", given["nodes"])
    return WorkloadRequest(name, "team", LABELS, {}, template=template, options=options, **given)


def rendered(workload: Workload, options: dict[str, Any], **changes: Any) -> list[Any]:
    return list(manifests(workload, request(workload, options, **changes)).objects)


def cases() -> dict[str, Sequence[Any]]:
    two = {"nodes": 2, "workers_per_node": 2, "timeout_s": 90.0}
    gang = {"scheduler": "volcano", "queue": "gpus", "priority_class": "low"}
    plain = {name: value for name, value in FULL.items() if name not in ("image_pull_secrets", "service_account")}
    namespaced = Runtime("own-torch", "TrainingRuntime", gang="volcano")
    return {
        "PyTorchJob on one node": rendered(PyTorchJobWorkload(), {}),
        "PyTorchJob on two nodes": rendered(PyTorchJobWorkload(), FULL, launcher="torchrun", **two),
        "PyTorchJob elastic": rendered(PyTorchJobWorkload(), {}, launcher="torchrun", nodes=3, min_nodes=1),
        "PyTorchJob with Volcano": rendered(PyTorchJobWorkload(), gang, nodes=2),
        "MPIJob v2beta1": rendered(MPIJobWorkload(), FULL, launcher="mpi", **two),
        "MPIJob v2beta1 of an old release": rendered(
            MPIJobWorkload(launcher_is_worker=False), {}, launcher="mpi", nodes=2
        ),
        "MPIJob v1": rendered(mpijob_v1(), FULL, launcher="mpi", **two),
        "TFJob": rendered(tfjob(), FULL, launcher="tensorflow", **two),
        "PaddleJob": rendered(paddlejob(), FULL, launcher="paddle", **two),
        "TrainJob": rendered(TrainJobWorkload(), FULL, launcher="torchrun", **two),
        "TrainJob with the image of its runtime": rendered(TrainJobWorkload(), {}),
        "TrainJob of Trainer 2.1": rendered(TrainJobWorkload(layout=OVERRIDES_2_1), plain, **two),
        "TrainJob with Volcano": rendered(
            TrainJobWorkload(namespaced), {"scheduler": "volcano", "queue": "gpus"}, nodes=2
        ),
    }

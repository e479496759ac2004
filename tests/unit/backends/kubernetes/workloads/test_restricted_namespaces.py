"""Every pod obeys a namespace with the pod security level `restricted`, and quotas that want all limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.adaptdl_backend import AdaptDLJob
from jupyter_autotrain.backends.kubernetes.framework_backend import Framework
from jupyter_autotrain.backends.kubernetes.objects.workload import Workload
from jupyter_autotrain.backends.kubernetes.storage import volume_storage
from jupyter_autotrain.backends.kubernetes.trial_program import TrialProgram
from jupyter_autotrain.backends.kubernetes.workloads import plain_job
from jupyter_autotrain.backends.kubernetes.workloads.plain_job import JobWorkload, PooledJobWorkload
from jupyter_autotrain.backends.kubernetes.workloads.training_operator import (
    MPIJobWorkload,
    PyTorchJobWorkload,
    mpijob_v1,
    paddlejob,
    tfjob,
)
from jupyter_autotrain.backends.kubernetes.workloads.trainjob import TrainJobWorkload
from jupyter_autotrain.core.spec import Resources, TrialSpec
from tests.labs.kubernetes.validation.pod_security import violations

RESTRICTED = {
    "runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"},
    "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
}  # fmt: skip
OPTIONS: dict[str, Any] = {
    "security_context": RESTRICTED, "storage": {"pvc": "training"}, "service_account": "trainer", "checkpoint": {},
}  # fmt: skip
KINDS = [
    JobWorkload(), TrainJobWorkload(), PyTorchJobWorkload(), MPIJobWorkload(), mpijob_v1(), tfjob(), paddlejob(),
    AdaptDLJob(), Framework(),
]  # fmt: skip


def specs_in(found: Any) -> Iterator[dict[str, Any]]:
    """All specs of pods in a manifest."""
    if isinstance(found, dict):
        if "containers" in found:
            yield found
        for inner in found.values():
            yield from specs_in(inner)
    elif isinstance(found, list):
        for inner in found:
            yield from specs_in(inner)


def specs_of(workload: Workload, nodes: int = 2, **more: Any) -> Sequence[dict[str, Any]]:
    trial = TrialSpec("e", 1, 1, resources=Resources(cpus=1, memory_bytes=1 << 30, nodes=nodes))
    options = cast("JsonObject", {**OPTIONS, **more})
    program = TrialProgram(trial, options, workload, "0123456789abcdef", "team", {"agent.zip": "a"})
    found = list(specs_in(list(program.manifests().objects)))
    assert found
    return found


def without_limits(spec: dict[str, Any]) -> list[str]:
    containers = [*spec["containers"], *spec.get("initContainers", [])]
    limits = {one["name"]: one.get("resources", {}).get("limits", {}) for one in containers}
    return [name for name, given in limits.items() if not {"cpu", "memory"} <= given.keys()]


@pytest.mark.parametrize("workload", KINDS, ids=lambda one: type(one).__name__)
def test_the_pods_of_every_kind_are_allowed_there(workload: Workload) -> None:
    assert [list(violations(spec)) for spec in specs_of(workload)] == [[] for _ in specs_of(workload)]


@pytest.mark.parametrize("workload", [JobWorkload(), AdaptDLJob(), Framework()], ids=lambda one: type(one).__name__)
def test_all_containers_say_their_limits(workload: Workload) -> None:
    assert [without_limits(spec) for spec in specs_of(workload)] == [[]]


def test_long_running_pods_and_the_pod_that_writes_to_a_volume_are_allowed_there() -> None:
    trial = TrialSpec("e", 1, 1, resources=Resources(cpus=1, memory_bytes=1 << 30))
    options = cast("JsonObject", {**OPTIONS, "reuse": 1})
    program = TrialProgram(trial, options, PooledJobWorkload(), "0123456789abcdef", "team", {"agent.zip": "a"})
    pilot = plain_job.pilot(program.manifests().objects[0], "pilot", "home")
    loader = volume_storage.manifest(options, "python:3.12", {"name": "l"})
    for spec in specs_in([pilot, loader]):
        assert list(violations(spec)) == []
        assert without_limits(spec) == []


def test_a_patch_of_the_barrier_is_merged_into_it() -> None:
    patch = {"spec": {"initContainers": [{"name": "frameworkbarrier", "imagePullPolicy": "Always"}]}}
    (spec,) = specs_of(Framework(), pod_patch=patch)
    (barrier,) = (one for one in spec["initContainers"] if one["name"] == "frameworkbarrier")
    assert barrier["imagePullPolicy"] == "Always"
    assert barrier["image"]
    assert barrier["volumeMounts"] == [{"name": "frameworkbarrier", "mountPath": "/mnt/frameworkbarrier"}]

"""Refusals of the webhooks of Kubeflow's operators."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.labs.kubernetes.custom.trainer import CLUSTER_RUNTIMES, RUNTIMES, TRAINJOBS
from tests.labs.kubernetes.custom.training_operator import MPIJOBS_V1, PADDLEJOBS, PYTORCHJOBS, TFJOBS
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.resources import Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_CONTAINERS = {
    PYTORCHJOBS: ("pytorchReplicaSpecs", "pytorch", ("Master", "Worker")),
    TFJOBS: ("tfReplicaSpecs", "tensorflow", ("PS", "Worker", "Chief", "Master", "Evaluator")),
    PADDLEJOBS: ("paddleReplicaSpecs", "paddle", ("Master", "Worker")),
    MPIJOBS_V1: ("mpiReplicaSpecs", "", ("Launcher", "Worker")),
}
_RESERVED = ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT")
_IMMUTABLE = ("runtimeRef", "trainer", "initializer", "managedBy", "activeDeadlineSeconds")


class KubeflowAdmission:
    """Refuses what a schema cannot say."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def admit(self, resource: Resource, found: Json, previous: Json | None, subresource: str) -> None:
        """As `objects.Admission`.

        Raises:
            ApiError: 403, as a webhook's refusal is told.
        """
        if subresource:
            return
        faults: list[str] = []
        if resource in _CONTAINERS:
            faults += _of_job(resource, found)
        if resource == TRAINJOBS:
            faults += self._of_trainjob(found, previous)
        if faults:
            told = f'admission webhook "validator.{resource.qualified}" denied the request: {"; ".join(faults)}'
            raise ApiError(403, "Forbidden", told, {"name": found["metadata"].get("name", ""), "kind": resource.plural})

    def _of_trainjob(self, found: Json, previous: Json | None) -> Iterator[str]:
        spec = found["spec"]
        if not _DNS_1035.fullmatch(found["metadata"]["name"]):
            yield "metadata.name: must match RFC 1035 DNS label format"
        if previous is not None:
            for name in _IMMUTABLE:
                if spec.get(name) != previous["spec"].get(name):
                    yield f"spec.{name}: field is immutable"
            return
        runtime = self._runtime(found)
        if runtime is None:
            yield "spec.runtimeRef: Invalid value: specified runtime must be created before the TrainJob is created"
            return
        reserved = [one["name"] for one in spec.get("trainer", {}).get("env", ()) if one["name"] in _RESERVED]
        if reserved and "torch" in (runtime["spec"].get("mlPolicy") or {}):
            yield f"spec.trainer.env: must not have reserved envs, invalid envs configured: {reserved}"
        yield from _of_patches(spec, runtime)

    def _runtime(self, found: Json) -> Json | None:
        reference = found["spec"]["runtimeRef"]
        is_of_cluster = reference.get("kind", CLUSTER_RUNTIMES.kind) == CLUSTER_RUNTIMES.kind
        resource = CLUSTER_RUNTIMES if is_of_cluster else RUNTIMES
        try:
            return self._store.get(resource, found["metadata"]["namespace"], reference["name"])
        except ApiError:
            return None


def _of_job(resource: Resource, found: Json) -> Iterator[str]:
    field, container, roles = _CONTAINERS[resource]
    if not _DNS_1035.fullmatch(found["metadata"]["name"]):
        yield f"metadata.name: Invalid value: {found['metadata']['name']!r}"
    for role, spec in found["spec"][field].items():
        path = f"spec.{field}[{role}]"
        containers = spec.get("template", {}).get("spec", {}).get("containers", ())
        if role not in roles:
            yield f"{path}: Unsupported value: supported values: {', '.join(roles)}"
        if not containers:
            yield f"{path}.template.spec.containers: Required value: must be specified"
        elif container and container not in [one["name"] for one in containers]:
            told = f"must have at least one container with name {container}"
            yield f"{path}.template.spec.containers: Required value: {told}"
        if role in ("Master", "Launcher", "Chief") and spec.get("replicas", 1) != 1:
            yield f"{path}.replicas: Forbidden: must be 1"
    if "elasticPolicy" in found["spec"] and "Worker" not in found["spec"][field]:
        yield f"spec.{field}[Worker]: Required value: must be configured if elastic policy is used"


def _of_patches(spec: Json, runtime: Json) -> Iterator[str]:
    known = {}
    for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        pod = job["template"]["spec"]["template"]["spec"]
        known[job["name"]] = {one["name"] for one in [*pod.get("initContainers", ()), *pod["containers"]]}
    for patch in spec.get("runtimePatches", ()):
        if "/" not in patch["manager"]:
            yield "spec.runtimePatches.manager: must be a domain-prefixed path (such as acme.io/foo)"
        jobs = patch.get("trainingRuntimeSpec", {}).get("template", {}).get("spec", {}).get("replicatedJobs", ())
        for job in jobs:
            pod = job.get("template", {}).get("spec", {}).get("template", {}).get("spec", {})
            yield from _of_patched_job(job["name"], pod, known)
    for override in spec.get("podTemplateOverrides", ()):
        for target in override.get("targetJobs", ()):
            yield from _of_patched_job(target["name"], override.get("spec", {}), known)


def _of_patched_job(name: str, pod: Json, known: dict[str, set[str]]) -> Iterator[str]:
    if name not in known:
        yield "spec.runtimePatches: must not have replicated job that doesn't exist in the runtime job template"
        return
    for container in pod.get("containers", ()):
        if container["name"] not in known[name]:
            yield f"spec.runtimePatches: must not have container that doesn't exist in the runtime job {name}"
        elif container.get("env"):
            named = "dataset-initializer, model-initializer, node"
            yield f"spec.runtimePatches: must not have envs for the {named} containers"

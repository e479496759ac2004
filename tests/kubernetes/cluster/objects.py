"""Short forms of objects that tests make on the cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jupyter_autotrain.testing.bundles import wait_until
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.resources import JOBS, PODS

Json = dict[str, Any]


def container(script: str, **more: Any) -> Json:
    return {"name": "main", "image": "python:3.12", "command": ["sh", "-c", script], **more}


def pod_spec(script: str, **more: Any) -> Json:
    spec: Json = {"restartPolicy": "Never", "containers": [container(script)]}
    return spec | more


def make_pod(cluster: KubernetesLab, name: str, spec: Json, **metadata: Any) -> Json:
    return cluster.store.create(PODS, "default", {"metadata": {"name": name, **metadata}, "spec": spec})


def make_job(cluster: KubernetesLab, name: str, spec: Json, **more: Any) -> Json:
    body = {"metadata": {"name": name}, "spec": {"backoffLimit": 0, "template": {"spec": spec}, **more}}
    return cluster.store.create(JOBS, "default", body)


def pod(cluster: KubernetesLab, name: str) -> Json:
    return cluster.store.get(PODS, "default", name)


def job(cluster: KubernetesLab, name: str) -> Json:
    return cluster.store.get(JOBS, "default", name)


def pods_of(cluster: KubernetesLab, name: str) -> list[Json]:
    return cluster.store.list(PODS, "default", f"job-name={name}")[0]


def wait_for_phase(cluster: KubernetesLab, name: str, phase: str) -> Json:
    def found() -> Json:
        now = pod(cluster, name)
        return now if now.get("status", {}).get("phase") == phase else {}

    return wait_until(found, f"{name} {phase}")


def wait_for_condition(cluster: KubernetesLab, name: str, kind: str) -> Json:
    """Wait until a Job has a condition with status True; the condition."""

    def found() -> list[Json]:
        conditions = job(cluster, name).get("status", {}).get("conditions", [])
        return [item for item in conditions if item["type"] == kind and item["status"] == "True"]

    return wait_until(found, f"{name} {kind}")[0]


def state(cluster: KubernetesLab, name: str) -> Json:
    """Return the state of a pod's first container."""
    statuses = pod(cluster, name).get("status", {}).get("containerStatuses", [])
    return statuses[0]["state"] if statuses else {}


def log(cluster: KubernetesLab, found: Json, name: str = "main", *, previous: bool = False) -> str:
    """Return what a container printed, without times."""
    path = cluster.access.log_path(found, name, previous=previous)
    if path is None:
        return ""
    return "".join(line.split(" ", 3)[3] for line in path.read_text().splitlines(keepends=True))


def is_gone(read: Callable[[], object]) -> bool:
    try:
        read()
    except ApiError as error:
        return error.code == 404
    return False

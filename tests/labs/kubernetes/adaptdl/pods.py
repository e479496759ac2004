"""The pods of an AdaptDLJob: what they are made of, and what they say of their job."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from tests.labs.kubernetes.controllers.ownership import owner_reference
from tests.labs.kubernetes.nodes import fitting, quantities
from tests.labs.kubernetes.objects.resources import NODES, PODS
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

SUPERVISOR_PORT = 8080
SUPERVISOR_URL = f"http://10.80.0.1:{SUPERVISOR_PORT}"  # the lab's own address in the network of the pods
SCHEDULER_VERSION = "0.2.11"
_FIRST_PORT = 47000
_PREEMPTED_EXIT = 143


def pod_of(job: Json, node: Json, allocation: list[str], group: int, rank: int) -> Json:
    """Return the pod of a replica."""
    template = copy.deepcopy(job["spec"]["template"])
    metadata = template.setdefault("metadata", {})
    name = job["metadata"]["name"]
    metadata["name"] = f"{name}-{job['metadata']['uid']}-{group}-{rank}"
    metadata["ownerReferences"] = [owner_reference(job)]
    labels = {"adaptdl": "true", "adaptdl/job": name, "petuum.com/nodegroup": "all"}
    metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    told = {"replicas": str(len(allocation)), "group": str(group), "rank": str(rank), "node": node["metadata"]["name"]}
    annotations = {f"adaptdl/{key}": value for key, value in told.items()}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
    spec = template["spec"]
    host_label = "kubernetes.io/hostname"
    spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), host_label: node["metadata"]["labels"][host_label]}
    spec["hostname"] = f"{name}-{group}-{rank}"
    spec["restartPolicy"] = "Never"
    spec.setdefault("volumes", []).append({"name": "adaptdl-shm", "emptyDir": {"medium": "Memory"}})
    variables = _variables(job, allocation, group, rank)
    for container in spec["containers"]:
        container.setdefault("volumeMounts", []).append({"name": "adaptdl-shm", "mountPath": "/dev/shm"})
        environment = container.setdefault("env", [])
        environment.extend({"name": key, "value": value} for key, value in variables.items())
        if not (container.get("resources") or {}).get("limits", {}).get("nvidia.com/gpu"):
            environment.append({"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"})
    return {"apiVersion": "v1", "kind": "Pod", **template}


def _variables(job: Json, allocation: Sequence[str], group: int, rank: int) -> dict[str, str]:
    metadata = job["metadata"]
    return {
        "ADAPTDL_JOB_ID": f"{metadata['namespace']}/{metadata['name']}",
        "ADAPTDL_MASTER_PORT": str(_FIRST_PORT + group),
        "ADAPTDL_NUM_NODES": str(len(set(allocation))),
        "ADAPTDL_NUM_RESTARTS": str(group),
        "ADAPTDL_NUM_REPLICAS": str(len(allocation)),
        "ADAPTDL_REPLICA_RANK": str(rank),
        "ADAPTDL_SUPERVISOR_URL": SUPERVISOR_URL,
        "ADAPTDL_SCHED_VERSION": SCHEDULER_VERSION,
    }


def annotation(pod: Json, name: str) -> str:
    """Return what AdaptDL noted about a pod."""
    return str((pod["metadata"].get("annotations") or {}).get(f"adaptdl/{name}", ""))


def completion(pods: Sequence[Json], *, is_preemptible: bool) -> Json:
    """Return the phase of a job that its pods have ended, with the reason; empty when they have not."""
    if pods and all(_has_succeeded(pod, len(pods)) for pod in pods):
        return {"phase": "Succeeded"}
    for pod in pods:
        if pod["status"].get("phase") not in ("Failed", "Unknown"):
            continue
        reason = str(pod["status"].get("reason", ""))
        if reason == "UnexpectedAdmissionError" or reason.startswith("Outof"):
            continue
        if is_preemptible and (pod["metadata"].get("deletionTimestamp") or _was_told_to_end(pod)):
            continue
        message = f"{pod['metadata']['name']} {pod['status']['phase']}"
        return {"phase": "Failed", "reason": "PodFailure", "message": message}
    return {}


def _has_succeeded(pod: Json, count: int) -> bool:
    return pod["status"].get("phase") == "Succeeded" and annotation(pod, "replicas") == str(count)


def _was_told_to_end(pod: Json) -> bool:
    for status in pod["status"].get("containerStatuses") or ():
        terminated = status.get("state", {}).get("terminated") or {}
        if terminated.get("exitCode") == _PREEMPTED_EXIT:
            return True
    return False


def are_others(pods: Sequence[Json], allocation: Sequence[str]) -> bool:
    """Return whether the pods are not those of the allocation."""
    for pod in pods:
        if annotation(pod, "replicas") != str(len(allocation)):
            return True
        if annotation(pod, "node") != allocation[int(annotation(pod, "rank"))]:
            return True
    return False


def all_scheduled(pods: Sequence[Json], allocation: Sequence[str]) -> bool:
    """Return whether all pods of the allocation have their node."""
    return sum(1 for pod in pods if pod["spec"].get("nodeName")) == len(allocation)


def ready(pods: Sequence[Json]) -> int:
    """Return how many pods have all their containers running."""
    count = 0
    for pod in pods:
        statuses = pod["status"].get("containerStatuses") or ()
        count += bool(statuses) and all(status.get("ready") for status in statuses)
    return count


def nodes_with_room(store: ObjectStore, job: Json, count: int) -> list[str]:
    """Nodes for so many replicas, or for as many as fit; none where not even the least number does."""
    pod = {"spec": job["spec"]["template"]["spec"]}
    own = job["metadata"]["name"]
    others = [found for found in store.list(PODS, None)[0] if _job_of(found) != own]
    nodes = {node["metadata"]["name"]: node for node in store.list(NODES, "")[0]}
    used = {name: quantities.used(_on_node(others, name)) for name in nodes}
    found: list[str] = []
    while len(found) < count:
        fitting_nodes = [name for name, node in nodes.items() if not fitting.lacking(pod, node, used[name], 0)]
        if not fitting_nodes:
            break
        best = min(fitting_nodes, key=found.count)
        quantities.add(used[best], quantities.pod_requests(pod))
        found.append(best)
    return found if len(found) >= max(1, job["spec"].get("minReplicas", 0)) else []


def _on_node(pods: Sequence[Json], name: str) -> list[Json]:
    return [pod for pod in pods if pod["spec"].get("nodeName") == name]


def _job_of(pod: Json) -> str:
    return str((pod["metadata"].get("labels") or {}).get("adaptdl/job", ""))

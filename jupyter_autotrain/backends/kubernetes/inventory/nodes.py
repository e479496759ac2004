"""The inventory of a cluster: its nodes as they are listed, with what pods have taken of them.

What may not be listed is unknown, which is not none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.objects.fields import items, parse_quantity, part, text, value
from jupyter_autotrain.backends.kubernetes.objects.workload import NODES, PODS
from jupyter_autotrain.core.inventory import Accelerator, Inventory, Node

GPU_RESOURCES: Final = (
    "nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe",
    "habana.ai/gaudi", "google.com/tpu", "aws.amazon.com/neuron", "huawei.com/Ascend910",
)  # fmt: skip
MIG_PREFIX: Final = "nvidia.com/mig-"
_PRODUCT_LABELS = (
    "nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator", "k8s.amazonaws.com/accelerator", "accelerator",
)  # fmt: skip
_MEMORY_LABEL = "nvidia.com/gpu.memory"  # in MiB
_MIG_MEMORY = re.compile(r"\.(\d+)gb")
_SHARED = "-SHARED"  # the end of a product of which each device is counted several times
_KINDS: Final = {"huawei.com/Ascend910": "Ascend910"}


@dataclass(frozen=True, slots=True)
class GpuKind:
    """The kind of a resource's devices.

    Attributes:
        name: Their model as the cluster calls it; None where nothing says so, or where a device is a part of one.
        memory_bytes: Of each; None: not known.
    """

    name: str | None
    memory_bytes: int | None = None


def is_gpu(resource: str) -> bool:
    """Return whether an extended resource counts accelerators."""
    return resource in GPU_RESOURCES or resource.startswith(MIG_PREFIX)


def kind_of(resource: str, labels: Mapping[str, str]) -> GpuKind:
    """Return what the devices of a resource of a node are, by the node's labels.

    A part of a device is called by the part alone: a plan must not take it for the whole.

    Args:
        resource: As in the node's allocatable resources.
        labels: Of the node.
    """
    if resource.startswith(MIG_PREFIX):
        return GpuKind(resource.removeprefix("nvidia.com/"), _mig_memory(resource))
    product = next((labels[label] for label in _PRODUCT_LABELS if labels.get(label)), None)
    if resource.endswith(".shared") or (product or "").endswith(_SHARED):
        return GpuKind("a shared GPU")
    memory = labels.get(_MEMORY_LABEL, "")
    memory_bytes = int(memory) * 2**20 if memory.isdigit() and resource.startswith("nvidia.com/") else None
    return GpuKind(product or _KINDS.get(resource), memory_bytes)


def _mig_memory(resource: str) -> int | None:
    """Return 5 GiB for mig-1g.5gb; parts are named by their memory, rounded."""
    found = _MIG_MEMORY.search(resource)
    return int(found[1]) * 2**30 if found else None


LIMITS = "limits are kept by the cluster and by each supervisor"
_KEEPS_OFF = ("NoSchedule", "NoExecute")
_FINISHED = ("Succeeded", "Failed")
_COUNTED = ("resources", "restartPolicy")  # of containers
_Amounts = dict[str, Decimal]


def inventory(nodes: Sequence[JsonObject], pods: Sequence[JsonObject] | None, options: JsonObject) -> Inventory:
    """Return the nodes that trials may run on. O(nodes + containers).

    A node's CPUs, memory and accelerators are all that pods may have of it; labels `cpus_free` and
    `memory_free_bytes` tell what is left, and accelerators that pods hold are busy.

    Args:
        nodes: As the API lists them.
        pods: Those of all namespaces; None where they may not be listed: then it is not known what is free.
        options: The profile's; its node selector and tolerations count.
    """
    selector = cast("Mapping[str, str]", options.get("node_selector") or {})
    taken = None if pods is None else _taken(pods)
    chosen = [node for node in nodes if selector.items() <= _labels(node).items()]
    return Inventory(tuple(_node(node, taken, options) for node in chosen), limits=LIMITS)


def unknown(reason: str) -> Inventory:
    """Return the inventory of a cluster whose nodes may not be listed: unknown, which is not none.

    Args:
        reason: Why, in a user's words.
    """
    return Inventory((Node("", unavailable=reason),), limits=LIMITS)


def _node(node: JsonObject, taken: Mapping[str, _Amounts] | None, options: JsonObject) -> Node:
    name = naming.name_of(node)
    allocatable = _amounts(part(node, "status", "allocatable"))
    free = None if taken is None else _free(allocatable, taken.get(name, {}))
    labels = {"zone": _labels(node).get("topology.kubernetes.io/zone", "")}
    if free is not None:
        labels["cpus_free"] = f"{free.get('cpu', Decimal(0)):f}"
        labels["memory_free_bytes"] = str(int(free.get("memory", Decimal(0))))
    unavailable = _unavailable(node, options)
    return Node(
        name,
        cpus=float(allocatable["cpu"]) if "cpu" in allocatable else None,
        memory_bytes=int(allocatable["memory"]) if "memory" in allocatable else None,
        accelerators=() if unavailable else _accelerators(name, allocatable, free, _labels(node)),
        labels={key: value for key, value in labels.items() if value},
        unavailable=unavailable,
    )


def _accelerators(
    node: str, allocatable: _Amounts, free: _Amounts | None, labels: Mapping[str, str]
) -> tuple[Accelerator, ...]:
    found: list[Accelerator] = []
    for resource in sorted(allocatable):
        if not is_gpu(resource):
            continue
        count = int(allocatable[resource])
        free_count = count if free is None else int(free[resource])
        kind = kind_of(resource, labels)
        for number in range(count):
            index = len(found)
            is_busy = number >= free_count
            found.append(Accelerator(index, f"{node}:gpu{index}", kind.name, kind.memory_bytes, busy=is_busy))
    return tuple(found)


def _unavailable(node: JsonObject, options: JsonObject) -> str:
    """Return why no trial may go there now; "" when one may."""
    name = naming.name_of(node)
    if value(node, "spec", "unschedulable"):
        return f"node {name} takes no new pods (it is cordoned)"
    if not _is_ready(node):
        return f"node {name} is not ready"
    tolerations = items(options, "tolerations")
    for taint in items(node, "spec", "taints"):
        if taint.get("effect") in _KEEPS_OFF and not _is_tolerated(taint, tolerations):
            return f"node {name} has the taint {_shown(taint)}, which `tolerations:` of the profile do not name"
    return ""


def _is_ready(node: JsonObject) -> bool:
    conditions = items(node, "status", "conditions")
    return all(one.get("type") != "Ready" or one.get("status") == "True" for one in conditions)


def _is_tolerated(taint: JsonObject, tolerations: Sequence[JsonObject]) -> bool:
    """Return whether pods bear a taint: that of a GPU resource, each trial that asks for one does."""
    if is_gpu(str(taint.get("key"))):
        return True
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: JsonObject, taint: JsonObject) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    key = toleration.get("key")
    if toleration.get("operator") == "Exists":
        return key in (None, "", taint.get("key"))
    return key == taint.get("key") and (toleration.get("value") or "") == (taint.get("value") or "")


def _shown(taint: JsonObject) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"


def _taken(pods: Sequence[JsonObject]) -> dict[str, _Amounts]:
    """Return what the pods that have not ended hold of each node."""
    taken: dict[str, _Amounts] = {}
    for pod in pods:
        node = text(pod, "spec", "nodeName")
        if node and text(pod, "status", "phase") not in _FINISHED:
            _add(taken.setdefault(node, {}), requests(part(pod, "spec")))
    return taken


def slim_pod(pod: JsonObject) -> JsonObject:
    """Return a pod with what `inventory` reads of it: a cluster may have ten thousands."""
    kept: dict[str, JsonValue] = {name: value(pod, "spec", name) for name in ("nodeName", "overhead")}
    for name in ("containers", "initContainers"):
        kept[name] = list(map(_slim_container, items(pod, "spec", name)))
    return {"spec": kept, "status": {"phase": value(pod, "status", "phase")}}


def _slim_container(container: JsonObject) -> JsonObject:
    return {name: container[name] for name in _COUNTED if name in container}


def requests(spec: JsonObject) -> dict[str, Decimal]:
    """Return what a pod asks for, as the scheduler counts it.

    The sum of its containers and sidecars, or the most that an init container asks for, and the overhead.
    """
    total: _Amounts = {}
    before = items(spec, "initContainers")
    sidecars = [container for container in before if container.get("restartPolicy") == "Always"]
    for container in (*items(spec, "containers"), *sidecars):
        _add(total, _container_requests(container))
    for container in before:
        for resource, amount in _container_requests(container).items():
            total[resource] = max(total.get(resource, Decimal(0)), amount)
    _add(total, _amounts(part(spec, "overhead")))
    return total


def _container_requests(container: JsonObject) -> _Amounts:
    """Return the request; without one the limit is it."""
    return _amounts({**part(container, "resources", "limits"), **part(container, "resources", "requests")})


def _free(allocatable: _Amounts, taken: _Amounts) -> _Amounts:
    return {
        resource: max(Decimal(0), amount - taken.get(resource, Decimal(0))) for resource, amount in allocatable.items()
    }


def _add(total: _Amounts, more: _Amounts) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, Decimal(0)) + amount


def _amounts(quantities: JsonObject) -> _Amounts:
    return {resource: parse_quantity(value) for resource, value in quantities.items()}


def _labels(node: JsonObject) -> Mapping[str, str]:
    return cast("Mapping[str, str]", part(node, "metadata", "labels"))


_FORBIDDEN = 403


def discover(api: KubernetesApi, options: JsonObject) -> Inventory:
    """Return the nodes of a cluster, with what pods of all namespaces have taken of them; two requests.

    Raises:
        BackendError: The cluster does not answer, or refuses something else than the lists.
    """
    try:
        nodes = api.list(NODES, None)
    except ApiRefusedError as error:
        if error.code != _FORBIDDEN:
            raise
        return unknown("its nodes may not be listed by this account: a ClusterRole with list of nodes can")
    pods: list[JsonObject] | None = None
    try:
        pods = api.list(PODS, None, slim=slim_pod)
    except ApiRefusedError as error:
        if error.code != _FORBIDDEN:
            raise
    return inventory(nodes, pods, options)

"""What is read of a pod: kept small, since a manager holds hundreds of them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import cast

from jupyter_autotrain.backends.kubernetes_pod import places
from jupyter_autotrain.core.json import JsonObject, JsonValue

_METADATA = (
    "name", "namespace", "uid", "labels", "annotations", "creationTimestamp", "deletionTimestamp", "ownerReferences"
)  # fmt: skip
_LEFT_OUT_OF_SPEC = ("template", "pytorchReplicaSpecs", "tfReplicaSpecs", "mpiReplicaSpecs", "paddleReplicaSpecs")


def slim_pod(pod: JsonObject) -> JsonObject:
    """A pod without what nobody reads; of its containers only ours is in `spec`, with its resources."""
    spec = cast("JsonObject", pod.get("spec") or {})
    own = _own_container(cast("Sequence[JsonObject]", spec.get("containers") or ()))
    before = [_slim_container(one) for one in cast("Sequence[JsonObject]", spec.get("initContainers") or ())]
    kept: dict[str, JsonValue] = {"containers": [_slim_container(own)], "initContainers": before}
    kept.update({name: spec[name] for name in ("nodeName", "schedulingGates") if spec.get(name)})
    return {"metadata": _metadata(pod), "spec": kept, "status": pod.get("status") or {}}


def _slim_container(container: JsonObject) -> JsonObject:
    return {name: container[name] for name in ("name", "image", "resources") if name in container}


def slim_object(found: JsonObject) -> JsonObject:
    """An object without its pod templates."""
    spec = cast("JsonObject", found.get("spec") or {})
    kept = {name: value for name, value in spec.items() if name not in _LEFT_OUT_OF_SPEC}
    return {**found, "metadata": _metadata(found), "spec": kept}


def _metadata(found: JsonObject) -> JsonObject:
    metadata = cast("JsonObject", found.get("metadata") or {})
    return {name: metadata[name] for name in _METADATA if name in metadata}


def _own_container(containers: Sequence[JsonObject]) -> JsonObject:
    for container in containers:
        mounts = cast("Sequence[JsonObject]", container.get("volumeMounts") or ())
        if any(mount.get("mountPath") == places.RUN for mount in mounts):
            return container
    return containers[0] if containers else {"name": ""}


def container_name(pod: JsonObject) -> str:
    """Our container of a pod that `slim_pod` has given."""
    containers = cast("Sequence[JsonObject]", cast("JsonObject", pod["spec"])["containers"])
    return str(containers[0]["name"])


def container_state(pod: JsonObject) -> str:
    """That of our container: waiting, running or terminated; "" where it is not told."""
    name = container_name(pod)
    status = cast("JsonObject", pod.get("status") or {})
    for container in cast("Sequence[JsonObject]", status.get("containerStatuses") or ()):
        if container.get("name") == name:
            return next(iter(cast("JsonObject", container.get("state") or {})), "")
    return ""


def has_started(pod: JsonObject) -> bool:
    """Whether our container has begun: then there is a log."""
    return container_state(pod) in {"running", "terminated"}


class PodLife(StrEnum):
    """How far the container of a pod is, for who reads what it writes."""

    ALIVE = "alive"
    ENDED = "ended"
    GONE = "gone"


def is_alive(pod: JsonObject) -> bool:
    """Whether our container may still run."""
    return container_state(pod) not in {"terminated"} and phase(pod) not in {"Succeeded", "Failed"}


def phase(pod: JsonObject) -> str:
    """The phase of a pod."""
    return str(cast("JsonObject", pod.get("status") or {}).get("phase") or "")

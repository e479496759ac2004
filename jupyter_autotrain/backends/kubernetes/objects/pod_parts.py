"""Pods: their main container, their security, and what is read of them while they live."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.backends.kubernetes.objects.fields import items, part

Objects = Sequence[JsonObject]


def main_container(template: JsonObject) -> JsonObject:
    """Return the first container of a pod template, which runs the trial."""
    return items(template, "spec", "containers")[0]


def with_main_container(template: JsonObject, changes: JsonObject, env: Objects = ()) -> JsonObject:
    """Return a pod template whose first container is changed.

    Args:
        template: The pod template; it stays as it is.
        changes: Keys of the container that are replaced.
        env: Variables that are added in front of its own, so that its own may refer to them.
    """
    spec = part(template, "spec")
    first, *others = items(spec, "containers")
    own = [*env, *items(first, "env")]
    changed: dict[str, JsonValue] = {**first, **changes}
    if own:
        changed["env"] = own
    return {**template, "spec": {**spec, "containers": [changed, *others]}}


def without(owner: JsonObject, *names: str) -> JsonObject:
    """Return an object without some of its keys."""
    return {name: value for name, value in owner.items() if name not in names}


def json_variable(content: JsonObject) -> str:
    """Return the value of a variable that holds JSON, in which a kubelet finds nothing to expand.

    A kubelet replaces `$(NAME)` and `$$` in each value of a container's variables; JSON can write a dollar without one.
    """
    return json.dumps(content, sort_keys=True).replace("$", "\\u0024")


def unexpanded(text: str) -> str:
    """Return what a kubelet makes into a text where it expands `$(NAME)`: in commands, arguments and `subPathExpr`."""
    return text.replace("$", "$$")


def value_variable(name: str, value: str) -> JsonObject:
    """Return a variable of a container."""
    return {"name": name, "value": value}


def label_variable(name: str, label: str) -> JsonObject:
    """Return a variable of a container that holds a label of its pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}}


def annotation_variable(name: str, annotation: str) -> JsonObject:
    """Return a variable of a container that holds an annotation of its pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{annotation}']"}}}


OF_PODS = (
    "fsGroup", "fsGroupChangePolicy", "supplementalGroups", "supplementalGroupsPolicy", "sysctls", "runAsUser",
    "runAsGroup", "runAsNonRoot", "seccompProfile", "seLinuxOptions", "appArmorProfile",
)  # fmt: skip
OF_CONTAINERS = ("capabilities", "privileged", "allowPrivilegeEscalation", "readOnlyRootFilesystem", "procMount")


def security_contexts(options: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Return the security context of the pod, and that of its container; what both can have is the pod's."""
    given = cast("JsonObject", options.get("security_context") or {})
    of_pod = {name: value for name, value in given.items() if name in OF_PODS}
    of_container = {name: value for name, value in given.items() if name in OF_CONTAINERS}
    return of_pod, of_container


_METADATA = ("name", "namespace", "uid", "labels", "annotations", "creationTimestamp", "deletionTimestamp")
_OWNER = ("name", "uid")
_SPEC = ("nodeName", "schedulingGates", "schedulerName")
_STATUS = ("phase", "reason", "message")
_CONTAINER = ("name", "image", "resources")
_CONTAINER_STATUS = ("name", "image", "state", "lastState")
SET_UP = "PodReadyToStartContainers"  # a condition: its volumes are mounted, its network is there (from 1.29 on)
_LEFT_OUT_OF_SPEC = (
    "template", "selector", "pytorchReplicaSpecs", "tfReplicaSpecs", "mpiReplicaSpecs", "paddleReplicaSpecs"
)  # fmt: skip


def slim_pod(pod: JsonObject) -> JsonObject:
    """Return a pod without what nobody reads; of its containers only ours is in `spec`, with its resources."""
    spec = part(pod, "spec")
    own = _own_container(items(pod, "spec", "containers"))
    kept: JsonObject = {
        **_only(_SPEC, spec),
        "containers": [_only(_CONTAINER, own)],
        "initContainers": [_only(_CONTAINER, one) for one in items(pod, "spec", "initContainers")],
    }
    owners = [_only(_OWNER, one) for one in items(pod, "metadata", "ownerReferences")]
    metadata: JsonObject = {**_metadata(pod), "ownerReferences": owners}
    return _shared({"metadata": metadata, "spec": _only(kept, kept), "status": _pod_status(pod)})


def _pod_status(pod: JsonObject) -> JsonObject:
    """Return how a pod stands, without the conditions that only say that all is well."""
    kept: dict[str, JsonValue] = {**_only(_STATUS, part(pod, "status"))}
    kept["conditions"] = [one for one in items(pod, "status", "conditions") if _is_read(one)]
    for name in ("initContainerStatuses", "containerStatuses"):
        kept[name] = [_only(_CONTAINER_STATUS, one) for one in items(pod, "status", name)]
    return _only(kept, kept)


def _is_read(condition: JsonObject) -> bool:
    return bool(condition.get("reason")) or condition.get("status") != "True" or condition.get("type") == SET_UP


def slim_object(found: JsonObject) -> JsonObject:
    """Return an object without its pod templates."""
    kept = {name: value for name, value in part(found, "spec").items() if name not in _LEFT_OUT_OF_SPEC}
    return _shared({**found, "metadata": _metadata(found), "spec": kept})


def _metadata(found: JsonObject) -> JsonObject:
    return _only(_METADATA, part(found, "metadata"))


def _only(names: Iterable[str], found: JsonObject) -> JsonObject:
    """Return the values of these names, but for empty ones: to readers they are the same as none."""
    return {name: found[name] for name in names if found.get(name)}


def _shared(found: JsonObject) -> JsonObject:
    """Return the same; of texts that stand in many objects, such as keys and states, there is one for all."""
    return {sys.intern(name): _shared_value(inner) for name, inner in found.items()}


def _shared_value(inner: JsonValue) -> JsonValue:
    if isinstance(inner, str):
        return sys.intern(inner)
    if isinstance(inner, Mapping):
        return _shared(inner)
    return list(map(_shared_value, inner)) if isinstance(inner, Sequence) else inner


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
    """Return the state of our container: waiting, running or terminated; "" where it is not told."""
    name = container_name(pod)
    status = cast("JsonObject", pod.get("status") or {})
    for container in cast("Sequence[JsonObject]", status.get("containerStatuses") or ()):
        if container.get("name") == name:
            return next(iter(cast("JsonObject", container.get("state") or {})), "")
    return ""


def has_started(pod: JsonObject) -> bool:
    """Return whether our container has begun: then there is a log."""
    return container_state(pod) in {"running", "terminated"}


class PodLife(StrEnum):
    """The life of a pod's container, for a reader of its output."""

    ALIVE = "alive"
    ENDED = "ended"
    GONE = "gone"


def is_alive(pod: JsonObject) -> bool:
    """Return whether our container may still run."""
    return container_state(pod) not in {"terminated"} and phase(pod) not in {"Succeeded", "Failed"}


def phase(pod: JsonObject) -> str:
    """Return the phase of a pod."""
    return str(cast("JsonObject", pod.get("status") or {}).get("phase") or "")

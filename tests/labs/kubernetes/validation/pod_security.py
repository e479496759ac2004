"""Pod security of namespaces: the level `restricted`, which a label of the namespace enforces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from tests.labs.kubernetes.objects.errors import forbidden
from tests.labs.kubernetes.objects.resources import NAMESPACES, PODS, Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.validation.present import PresentObjects

ENFORCE = "pod-security.kubernetes.io/enforce"
_VOLUMES = frozenset(
    {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
)
_HOSTS = ("hostNetwork", "hostPID", "hostIPC")
_PROFILES = ("RuntimeDefault", "Localhost")


def check_pod_security(store: PresentObjects, resource: Resource, found: Json) -> None:
    """Refuse a new pod that its namespace's level does not allow.

    Raises:
        ApiError: 403.
    """
    if resource.key != PODS.key or not _is_restricted(store, found["metadata"]["namespace"]):
        return
    if told := ", ".join(violations(found["spec"])):
        raise forbidden(PODS, found["metadata"]["name"], f'violates PodSecurity "restricted:latest": {told}')


def _is_restricted(store: PresentObjects, namespace: str) -> bool:
    for one in store.shared_list(NAMESPACES, None)[0]:
        if one["metadata"]["name"] == namespace:
            return (one["metadata"].get("labels") or {}).get(ENFORCE) == "restricted"
    return False


def violations(spec: Json) -> Iterator[str]:
    """Yield what the level `restricted` does not allow of the spec of a pod."""
    used = [name for name in _HOSTS if spec.get(name)]
    if used:
        yield f"host namespaces ({', '.join(used)})"
    others = [one["name"] for one in spec.get("volumes") or [] if not _VOLUMES & one.keys()]
    if others:
        yield f"restricted volume types (volumes {_quoted(others)})"
    containers = [*spec["containers"], *(spec.get("initContainers") or [])]
    pod = spec.get("securityContext") or {}
    for told, is_good in _OF_CONTAINERS.items():
        bad = [one["name"] for one in containers if not is_good(pod, one.get("securityContext") or {})]
        if bad:
            yield f"{told} (containers {_quoted(bad)})"


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _is_not_root(pod: Json, own: Json) -> bool:
    is_said = own.get("runAsNonRoot", pod.get("runAsNonRoot")) is True
    return is_said and own.get("runAsUser", pod.get("runAsUser")) != 0


def _has_profile(pod: Json, own: Json) -> bool:
    return (own.get("seccompProfile") or pod.get("seccompProfile") or {}).get("type") in _PROFILES


_OF_CONTAINERS: Final[Mapping[str, Callable[[Json, Json], bool]]] = {
    "allowPrivilegeEscalation != false": lambda _, own: own.get("allowPrivilegeEscalation") is False,
    "unrestricted capabilities": lambda _, own: "ALL" in ((own.get("capabilities") or {}).get("drop") or []),
    "runAsNonRoot != true": _is_not_root,
    "seccompProfile": _has_profile,
}

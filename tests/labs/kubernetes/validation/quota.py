"""Quotas of namespaces."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from tests.labs.kubernetes.objects.errors import forbidden
from tests.labs.kubernetes.objects.resources import PODS, RESOURCE_QUOTAS, Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.validation.present import PresentObjects
from tests.labs.kubernetes.validation.quantities import amount

_COUNTED = ("pods", "configmaps", "secrets", "services", "persistentvolumeclaims")
_FINISHED = ("Succeeded", "Failed")


def check_quota(store: PresentObjects, resource: Resource, found: Json) -> None:
    """Refuse a new object that no quota of its namespace leaves room for.

    Raises:
        ApiError: 403.
    """
    namespace = found["metadata"].get("namespace", "")
    quotas, _ = store.shared_list(RESOURCE_QUOTAS, namespace) if namespace else ([], "")
    for quota in quotas:
        _check(store, resource, found, quota)


def _check(store: PresentObjects, resource: Resource, found: Json, quota: Json) -> None:
    hard = {name: value for name, value in quota["spec"].get("hard", {}).items() if _counts(resource, name)}
    if not hard:
        return
    present, _ = store.shared_list(resource, found["metadata"]["namespace"])
    counted = [item for item in present if (item.get("status") or {}).get("phase") not in _FINISHED]
    name = found["metadata"]["name"]
    lacking = {key: _not_specified(found, key) for key in sorted(hard) if _is_compute(key)}
    told = [f"{key} for: {','.join(names)}" for key, names in lacking.items() if names]
    if told:
        raise forbidden(resource, name, f"failed quota: {quota['metadata']['name']}: must specify {'; '.join(told)}")
    _compare(resource, found, counted, quota, hard)


def _compare(resource: Resource, found: Json, counted: Iterable[Json], quota: Json, hard: Json) -> None:
    items = list(counted)
    asked = {key: _used([found], key) for key in hard}
    used = {key: _used(items, key) for key in hard}
    over = [key for key in sorted(hard) if asked[key] and used[key] + asked[key] > amount(hard[key])]
    if not over:
        return
    told = [
        f"exceeded quota: {quota['metadata']['name']}",
        "requested: " + ",".join(f"{key}={_text(asked[key])}" for key in over),
        "used: " + ",".join(f"{key}={_text(used[key])}" for key in over),
        "limited: " + ",".join(f"{key}={hard[key]}" for key in over),
    ]
    raise forbidden(resource, found["metadata"]["name"], ", ".join(told))


def _counts(resource: Resource, name: str) -> bool:
    if name == f"count/{resource.qualified}" or (name in _COUNTED and resource.qualified == name):
        return True
    return resource.key == PODS.key and _is_compute(name)


def _is_compute(name: str) -> bool:
    return name in ("cpu", "memory", "ephemeral-storage") or name.startswith(("requests.", "limits."))


def _not_specified(pod: Json, name: str) -> list[str]:
    """Return the containers of a pod that do not name a resource, also those that initialize it."""
    kind, resource = _resource(name)
    if "/" in resource:
        return []  # extended resources may be left out
    spec = pod["spec"]
    containers = [*spec["containers"], *(spec.get("initContainers") or [])]
    return sorted(item["name"] for item in containers if resource not in (item["resources"].get(kind) or {}))


def _resource(name: str) -> tuple[str, str]:
    kind, dot, resource = name.partition(".")
    return (kind, resource) if dot and kind in ("requests", "limits") else ("requests", name)


def _used(items: Iterable[Json], name: str) -> Decimal:
    if not _is_compute(name):
        return Decimal(len(list(items)))
    kind, resource = _resource(name)
    total = Decimal(0)
    for pod in items:
        for container in pod["spec"]["containers"]:
            total += amount(((container.get("resources") or {}).get(kind) or {}).get(resource, 0))
    return total


def _text(number: Decimal) -> str:
    if number != int(number):
        return f"{int(number * 1000)}m"
    for power, suffix in ((3, "Gi"), (2, "Mi")):
        if number >= 1024**power and number % 1024**power == 0:
            return f"{int(number) // 1024**power}{suffix}"
    return str(int(number))

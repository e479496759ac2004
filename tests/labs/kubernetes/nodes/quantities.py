"""Requests of pods to their node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.validation.quantities import amount


def add(target: dict[str, Decimal], amounts: Mapping[str, Any]) -> None:
    """Add amounts by resource."""
    for name, value in amounts.items():
        target[name] = target.get(name, Decimal(0)) + amount(value)


def container_requests(container: Json) -> dict[str, Decimal]:
    """Return what a container requests; a limit without a request is the request too."""
    resources = container.get("resources", {})
    merged = {**resources.get("limits", {}), **resources.get("requests", {})}
    return {name: amount(value) for name, value in merged.items()}


def pod_requests(pod: Json) -> dict[str, Decimal]:
    """Return what a pod needs of its node: all its containers together, or its largest init container."""
    total: dict[str, Decimal] = {}
    for container in pod["spec"].get("containers", ()):
        add(total, container_requests(container))
    for container in pod["spec"].get("initContainers", ()):
        for name, value in container_requests(container).items():
            total[name] = max(total.get(name, Decimal(0)), value)
    return total


def used(pods: Iterable[Json]) -> dict[str, Decimal]:
    """Return what pods that have not ended request together."""
    total: dict[str, Decimal] = {}
    for pod in pods:
        if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            add(total, pod_requests(pod))
    return total

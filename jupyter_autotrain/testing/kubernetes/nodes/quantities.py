"""Quantities such as 500m, 2Gi and 1e3, and what pods request of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from jupyter_autotrain.testing.kubernetes.values import Json

_BINARY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def parse(text: object) -> Decimal:
    """A quantity in its base unit: CPUs, bytes, devices.

    Raises:
        decimal.InvalidOperation: It is none.
    """
    told = str(text)
    if told[-2:] in _BINARY:
        return Decimal(told[:-2]) * _BINARY[told[-2:]]
    if told[-1:] in _DECIMAL:
        return Decimal(told[:-1]).scaleb(_DECIMAL[told[-1]])
    return Decimal(told)


def add(target: dict[str, Decimal], amounts: Mapping[str, Any]) -> None:
    """Add amounts by resource."""
    for name, amount in amounts.items():
        target[name] = target.get(name, Decimal(0)) + parse(amount)


def container_requests(container: Json) -> dict[str, Decimal]:
    """What a container requests; a limit without a request is the request too."""
    resources = container.get("resources", {})
    merged = {**resources.get("limits", {}), **resources.get("requests", {})}
    return {name: parse(amount) for name, amount in merged.items()}


def pod_requests(pod: Json) -> dict[str, Decimal]:
    """What a pod needs of its node: all its containers together, or its largest init container."""
    total: dict[str, Decimal] = {}
    for container in pod["spec"].get("containers", ()):
        add(total, container_requests(container))
    for container in pod["spec"].get("initContainers", ()):
        for name, amount in container_requests(container).items():
            total[name] = max(total.get(name, Decimal(0)), amount)
    return total


def used(pods: Iterable[Json]) -> dict[str, Decimal]:
    """What pods that have not ended request together."""
    total: dict[str, Decimal] = {}
    for pod in pods:
        if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            add(total, pod_requests(pod))
    return total

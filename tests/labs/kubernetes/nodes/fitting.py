"""Test of a pod on a node: may it and can it run there, and why not, in the scheduler's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from tests.labs.kubernetes.nodes import quantities
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.validation.quantities import amount

_NUMBER_TESTS: Mapping[str, Callable[[int, int], bool]] = {"Gt": lambda a, b: a > b, "Lt": lambda a, b: a < b}


def misfits(pod: Json, node: Json, used: Mapping[str, Decimal], pods: int) -> list[str]:
    """Why a pod cannot run on a node; [] when it can.

    Args:
        pod: That is to run.
        node: That it is to run on.
        used: What the pods there request together.
        pods: How many these are.
    """
    if node["spec"].get("unschedulable"):
        return ["node(s) were unschedulable"]
    taint = _untolerated(pod, node)
    if taint is not None:
        return [f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"]
    if not _selected(pod, node):
        return ["node(s) didn't match Pod's node affinity/selector"]
    return lacking(pod, node, used, pods)


def lacking(pod: Json, node: Json, used: Mapping[str, Decimal], pods: int) -> list[str]:
    """Return what a node has too little of."""
    allocatable = node["status"]["allocatable"]
    found = []
    if pods + 1 > int(allocatable.get("pods", 110)):
        found.append("Too many pods")
    for name, wanted in quantities.pod_requests(pod).items():
        free = amount(allocatable.get(name, 0)) - used.get(name, Decimal(0))
        if wanted and wanted > free:
            found.append(f"Insufficient {name}")
    return found


def _untolerated(pod: Json, node: Json) -> Json | None:
    tolerations = pod["spec"].get("tolerations", ())
    for taint in node["spec"].get("taints", ()):
        tolerated = any(tolerates(toleration, taint) for toleration in tolerations)
        if taint["effect"] != "PreferNoSchedule" and not tolerated:
            return dict(taint)
    return None


def tolerates(toleration: Json, taint: Json) -> bool:
    """Return whether a toleration is for a taint."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def _selected(pod: Json, node: Json) -> bool:
    labels = node["metadata"].get("labels") or {}
    selector = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(matches_term(term, node) for term in required["nodeSelectorTerms"])


def matches_term(term: Json, node: Json) -> bool:
    """Return whether a node is in a term of a node affinity."""
    labels = node["metadata"].get("labels") or {}
    fields = {"metadata.name": node["metadata"]["name"]}
    checks = [_matches(item, labels) for item in term.get("matchExpressions", ())]
    checks += [_matches(item, fields) for item in term.get("matchFields", ())]
    return bool(checks) and all(checks)


def _matches(expression: Json, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression["key"])
    operator = expression["operator"]
    values = expression.get("values", ())
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    return value is not None and _NUMBER_TESTS[operator](int(value), int(values[0]))


def unschedulable_message(reasons: Sequence[Sequence[str]], preemption: str) -> str:
    """Return what the scheduler says: how many nodes there are, and how many have each reason."""
    counts: dict[str, int] = {}
    for reason in (reason for found in reasons for reason in found):
        counts[reason] = counts.get(reason, 0) + 1
    told = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{len(reasons)} nodes are available: {told}. no new claims to deallocate, preemption: {preemption}"

"""The status of the training operator's kinds: conditions and counts of replicas."""

from __future__ import annotations

from collections.abc import Iterable

from tests.labs.kubernetes.controllers.times import stamp
from tests.labs.kubernetes.objects.values import Json

_EXCLUSIVE = {"Restarting": "Running", "Running": "Restarting"}
_ENDS = ("Succeeded", "Failed")


def holds(status: Json, kind: str) -> bool:
    """Return whether a condition is True."""
    return any(one["type"] == kind and one["status"] == "True" for one in status.get("conditions", ()))


def is_finished(status: Json) -> bool:
    """Return whether the job has succeeded or failed."""
    return any(holds(status, kind) for kind in _ENDS)


def set_condition(status: Json, kind: str, truth: str, reason: str, message: str, now: float) -> None:
    """Set a condition; after a failure none changes, and an end makes Running false."""
    if holds(status, "Failed"):
        return
    conditions = status.setdefault("conditions", [])
    present = next((one for one in conditions if one["type"] == kind), None)
    if present and (present["status"], present["reason"]) == (truth, reason):
        return
    is_same = present is not None and present["status"] == truth
    since = present["lastTransitionTime"] if present is not None and is_same else stamp(now)
    condition = {"type": kind, "status": truth, "reason": reason, "message": message}
    condition |= {"lastUpdateTime": stamp(now), "lastTransitionTime": since}
    status["conditions"] = [*_others(conditions, kind), condition]


def _others(conditions: Iterable[Json], kind: str) -> list[Json]:
    kept = []
    for one in conditions:
        if one["type"] in (kind, _EXCLUSIVE.get(kind)):
            continue
        ends = kind in _ENDS and one["type"] == "Running"
        kept.append({**one, "status": "False"} if ends else one)
    return kept


def counted(pods: Iterable[Json], selector: str) -> Json:
    """Return how many pods of a type of replica run, succeeded and failed; a running one that is deleted failed."""
    counts = {"active": 0, "succeeded": 0, "failed": 0}
    for pod in pods:
        phase = pod.get("status", {}).get("phase")
        if phase == "Running":
            counts["failed" if "deletionTimestamp" in pod["metadata"] else "active"] += 1
        elif phase in ("Succeeded", "Failed"):
            counts[phase.lower()] += 1
    return {**{name: count for name, count in counts.items() if count}, "selector": selector}

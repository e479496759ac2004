"""Completion of Frameworks' tasks and attempts: codes, the completion policy of roles, the retry policy. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tests.labs.kubernetes.objects.values import Json

SUCCEEDED = 0
POD_DELETED = -101
POD_REFUSED = -200
STOP_REQUESTED = -210
ATTEMPT_COMPLETION = -220
TASK_DELETED = -230
POD_WITHOUT_CONTAINER = -300
_NEVER_RETRIED = (STOP_REQUESTED, ATTEMPT_COMPLETION, TASK_DELETED)
_KNOWN = {
    SUCCEEDED: ("Succeeded", []),
    200: ("ContainerTransientFailed", ["Transient"]),
    201: ("ContainerTransientConflictFailed", ["Transient", "Conflict"]),
    210: ("ContainerPermanentFailed", ["Permanent"]),
    POD_DELETED: ("PodExternalDeleted", ["Transient"]),
    POD_REFUSED: ("PodCreationPermanentError", ["Permanent"]),
    STOP_REQUESTED: ("StopFrameworkRequested", ["Permanent"]),
    ATTEMPT_COMPLETION: ("FrameworkAttemptCompletion", ["Permanent"]),
    TASK_DELETED: ("DeleteTaskRequested", ["Permanent"]),
    POD_WITHOUT_CONTAINER: ("PodFailedWithoutFailedContainer", []),
}


def status(code: int, diagnostics: str) -> Json:
    """Return a completion status."""
    phrase, attributes = _KNOWN.get(code, ("ContainerUnrecognizedFailed", []))
    name = "Succeeded" if code == SUCCEEDED else "Failed"
    kind = {"name": name, "attributes": list(attributes)}
    return {"code": code, "phrase": phrase, "type": kind, "diagnostics": diagnostics}


def of_pod(pod: Json) -> Json:
    """Return that of a task whose pod has ended."""
    found = [_container(entry) for entry in _ended_containers(pod)]
    told = {"containers": found}
    for field in ("reason", "message"):
        if pod["status"].get(field):
            told[field] = pod["status"][field]
    if pod["status"]["phase"] == "Succeeded":
        return {**status(SUCCEEDED, "Pod succeeded"), "pod": told}
    failed = [entry for entry in found if entry["code"] != 0]
    code = failed[0]["code"] if failed else POD_WITHOUT_CONTAINER
    return {**status(code, f"Pod failed: {failed or told}"), "pod": told}


def _ended_containers(pod: Json) -> list[Json]:
    statuses = [*(pod["status"].get("initContainerStatuses") or ()), *(pod["status"].get("containerStatuses") or ())]
    return [entry for entry in statuses if entry.get("state", {}).get("terminated")]


def _container(entry: Json) -> Json:
    ended = entry["state"]["terminated"]
    found = {"name": entry["name"], "code": ended["exitCode"]}
    for field in ("reason", "message", "signal"):
        if ended.get(field):
            found[field] = ended[field]
    return found


def of_attempt(spec: Json, roles: Sequence[Json]) -> Json | None:
    """Return that of an attempt, once the policy of one of its roles or the end of all tasks gives one."""
    triggered = []
    for role_spec, role in zip(spec["taskRoles"], roles, strict=True):
        triggered += _triggers(role_spec, role)
    if triggered:
        return min(triggered, key=_when)[1]
    tasks = [task for role in roles for task in role["taskStatuses"]]
    if tasks and all(task["state"] == "Completed" for task in tasks):
        return status(SUCCEEDED, f"CompletedTaskCount {len(tasks)} has reached TotalTaskCount {len(tasks)}")
    return None


def _when(trigger: tuple[str, Json]) -> str:
    return trigger[0]


def _triggers(role_spec: Json, role: Json) -> list[tuple[str, Json]]:
    """Return what the policy of a role gives, each with its time."""
    policy = role_spec.get("frameworkAttemptCompletionPolicy") or {}
    found = []
    for kind in ("Failed", "Succeeded"):
        least = policy.get(f"min{kind}TaskCount", 0)
        ended = [task for task in role["taskStatuses"] if _ended_as(task, kind)]
        ended.sort(key=_completion_time)
        if least < 1 or len(ended) < least:
            continue
        task = ended[least - 1]
        message = f"{kind}TaskCount {len(ended)} has reached Min{kind}TaskCount {least} in the TaskRole"
        trigger = {"message": message, "taskRoleName": role["name"], "taskIndex": task["index"]}
        found.append((task["completionTime"], {**_summary(task), "trigger": trigger}))
    return found


def _ended_as(task: Json, kind: str) -> bool:
    ended = task["attemptStatus"]["completionStatus"] or {}
    return bool(task["state"] == "Completed" and ended["type"]["name"] == kind)


def _completion_time(task: Json) -> str:
    return str(task["completionTime"])


def _summary(task: Json) -> Json:
    ended = task["attemptStatus"]["completionStatus"]
    return {name: ended[name] for name in ("code", "phrase", "type", "diagnostics")}


def is_retried(policy: Json, counts: Json, completion: Json) -> tuple[bool, bool]:
    """Return whether there is another attempt, and whether it counts."""
    attributes = completion["type"]["attributes"]
    failed = completion["type"]["name"] == "Failed"
    if completion["code"] in _NEVER_RETRIED:
        return False, True
    if policy.get("fancyRetryPolicy") and failed and "Transient" in attributes:
        return True, False
    if policy.get("fancyRetryPolicy") and failed and "Permanent" in attributes:
        return False, True
    most = policy.get("maxRetryCount", 0)
    is_more = most == -2 or (failed and (most == -1 or counts["accountableRetriedCount"] < most))
    return is_more, True

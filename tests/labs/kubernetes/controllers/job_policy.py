"""When a Job has failed or succeeded, by its policies."""

from __future__ import annotations

from tests.labs.kubernetes.controllers.job_pods import index_of, is_indexed, parse_indexes
from tests.labs.kubernetes.objects.values import Json


def action_for(job: Json, pod: Json) -> tuple[str, str]:
    """Return what `podFailurePolicy` says of a failed pod (Count, Ignore, FailIndex or FailJob), with a message."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules", ())
    for number, rule in enumerate(rules):
        found = _by_exit_code(rule, pod) if "onExitCodes" in rule else _by_condition(rule, pod)
        if found:
            return rule["action"], f"{found} matching {rule['action']} rule at index {number}"
    return "Count", ""


def _by_exit_code(rule: Json, pod: Json) -> str:
    wanted = rule["onExitCodes"]
    status = pod.get("status", {})
    for entry in [*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ())]:
        code = entry.get("state", {}).get("terminated", {}).get("exitCode")
        if not code or wanted.get("containerName") not in (None, entry["name"]):
            continue
        if (code in wanted["values"]) == (wanted["operator"] == "In"):
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            return f"Container {entry['name']} for pod {name} failed with exit code {code}"
    return ""


def _by_condition(rule: Json, pod: Json) -> str:
    conditions = {entry["type"]: entry["status"] for entry in pod.get("status", {}).get("conditions", ())}
    for pattern in rule.get("onPodConditions", ()):
        if conditions.get(pattern["type"]) == pattern.get("status", "True"):
            metadata = pod["metadata"]
            return f"Pod {metadata['namespace']}/{metadata['name']} has condition {pattern['type']}"
    return ""


def restarts(pods: list[Json]) -> int:
    """Return how often containers of pods were started again in place."""
    total = 0
    for pod in pods:
        total += sum(entry["restartCount"] for entry in pod.get("status", {}).get("containerStatuses", ()))
    return total


def success_message(job: Json, succeeded: int, completed: set[int]) -> tuple[str, str] | None:
    """Reason and message when a Job has what it wants; None: not yet. Without `completions` the caller decides."""
    for number, rule in enumerate((job["spec"].get("successPolicy") or {}).get("rules", ())):
        wanted = parse_indexes(rule["succeededIndexes"]) if "succeededIndexes" in rule else completed
        met = len(wanted & completed)
        if met and met >= rule.get("succeededCount", len(wanted)):
            return "SuccessPolicy", f"Matched rules at index {number}"
    completions = job["spec"].get("completions")
    enough = len(completed) if is_indexed(job) else succeeded
    if completions is not None and enough >= completions:
        return "CompletionsReached", "Reached expected number of succeeded pods"
    return None


def failed_indexes(job: Json, failures: dict[int, int], fixed: set[int]) -> set[int]:
    """Return the indexes that are not tried again; empty unless `backoffLimitPerIndex` is set."""
    limit = job["spec"].get("backoffLimitPerIndex")
    if limit is None:
        return set()
    return fixed | {index for index, count in failures.items() if count > limit}


def count_by_index(pods: list[Json]) -> dict[int, int]:
    """Return how many of some pods each index has."""
    found: dict[int, int] = {}
    for pod in pods:
        found[index_of(pod)] = found.get(index_of(pod), 0) + 1
    return found


def free_indexes(completions: int, taken: set[int]) -> list[int]:
    """Return the numbers that no pod has or had, the lowest first."""
    return [index for index in range(completions) if index not in taken]


def still_wanted(job: Json, succeeded: int, occupied: int, free: int) -> int:
    """Return how many more pods a Job without numbers wants now."""
    completions = job["spec"].get("completions")
    if completions is None:
        return 0 if succeeded else free
    return min(free, max(int(completions) - succeeded - occupied, 0))

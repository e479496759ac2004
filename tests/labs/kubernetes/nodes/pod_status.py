"""The status of a pod, from its containers."""

from __future__ import annotations

from collections.abc import Sequence

from tests.labs.kubernetes.controllers.times import with_condition
from tests.labs.kubernetes.nodes.container_run import ContainerRun
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.validation.quantities import amount


def will_run_again(run: ContainerRun, policy: str) -> bool:
    """Return whether a container that has ended is started again."""
    if run.init:
        return run.is_sidecar or (run.exit_code != 0 and policy != "Never")
    return policy == "Always" or (policy == "OnFailure" and run.exit_code != 0)


def phase_of(runs: Sequence[ContainerRun], policy: str, *, stopping: bool) -> str:
    """Pending, Running, Succeeded or Failed.

    Args:
        runs: All containers of the pod.
        policy: `restartPolicy`.
        stopping: Nothing is started any more.
    """
    initial = [run for run in runs if run.init and not run.is_sidecar]
    main = [run for run in runs if not run.init]
    failed_init = [run for run in initial if run.exit_code not in (None, 0)]
    if failed_init and (stopping or policy == "Never"):
        return "Failed"
    if any(run.exit_code != 0 for run in initial):
        return "Failed" if stopping and not any(run.is_live for run in runs) else "Pending"
    if any(run.exit_code is None for run in main):
        if stopping and not any(run.is_live for run in runs):
            return "Failed"
        begun = any(run.running or run.exit_code is not None or run.last_state for run in main)
        return "Running" if begun else "Pending"
    if not stopping and any(will_run_again(run, policy) for run in main):
        return "Running"
    return "Succeeded" if all(run.exit_code == 0 for run in main) else "Failed"


def quality_of_service(pod: Json) -> str:
    """`qosClass`, from requests and limits of CPUs and memory."""
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]
    resources = [container.get("resources", {}) for container in containers]
    if not any(found.get("requests") or found.get("limits") for found in resources):
        return "BestEffort"
    for found in resources:
        limits = found.get("limits", {})
        requests = {**limits, **found.get("requests", {})}
        for name in ("cpu", "memory"):
            same = name in limits and amount(requests[name]) == amount(limits[name])
            if not same:
                return "Burstable"
    return "Guaranteed"


def conditions(pod: Json, runs: Sequence[ContainerRun], phase: str, extra: Sequence[Json], now: float) -> list[Json]:
    """Return the conditions that the kubelet sets, beside those of others."""
    initialized = all(run.exit_code == 0 or (run.is_sidecar and run.running) for run in runs if run.init)
    ready = all(run.running for run in runs if not run.init or run.is_sidecar)
    sandbox = any(run.is_live for run in runs) or phase == "Running"
    why = {"reason": "PodCompleted"} if phase == "Succeeded" else {}
    not_ready = why
    if not ready and not why:
        unready = " ".join(run.name for run in runs if not run.init and not run.running)
        failed = {"reason": "PodFailed"} if phase == "Failed" else {"reason": "ContainersNotReady"}
        not_ready = failed | ({} if phase == "Failed" else {"message": f"containers with unready status: [{unready}]"})
    found: list[Json] = pod.get("status", {}).get("conditions", [])
    uninitialized = {"reason": "ContainersNotInitialized"}
    wanted: list[Json] = [
        {"type": "PodReadyToStartContainers", "status": str(sandbox)},
        {"type": "Initialized", "status": str(initialized)} | (why if initialized else uninitialized),
        {"type": "Ready", "status": str(ready)} | ({} if ready else not_ready),
        {"type": "ContainersReady", "status": str(ready)} | ({} if ready else not_ready),
        *extra,
    ]
    for condition in wanted:
        found = with_condition(found, condition, now)
    return found

"""Trials as Frameworks of FrameworkController: task roles whose end decides that of the whole, retried as a whole.

Its names allow no dashes. Its pods have no DNS names: the init container of the barrier waits until all have an
address, so that all begin or none, and writes the addresses down.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.objects import naming, pending_reasons, trial_reasons
from jupyter_autotrain.backends.kubernetes.objects.fields import items, number, part, text
from jupyter_autotrain.backends.kubernetes.objects.workload import (
    BARRIER_IMAGE,
    OFFSET_VARIABLE,
    TASK_ROLE,
    NodeVariables,
    ObjectType,
    Workload,
    WorkloadRequest,
    WorkloadState,
)
from jupyter_autotrain.backends.kubernetes.workloads.volumes import has_volume, with_kept_folder
from jupyter_autotrain.errors import BackendError

if TYPE_CHECKING:
    from pydantic import BaseModel


BARRIER_PATH = "/mnt/frameworkbarrier"  # the working directory of that image
_BARRIER = "frameworkbarrier"
_BARRIER_RESOURCES: Final = {"cpu": "100m", "memory": "64Mi"}
_FOLDER = "node-$(FC_TASKROLE_NAME)-$(FC_TASK_INDEX)"
_PREPARING = frozenset({"", "AttemptCreationPending", "AttemptCreationRequested", "AttemptPreparing"})
_STOPPED = frozenset({-210, -220, -230})
_POD_DELETED = -101
_HELD = "is held: the Framework's `executionType` is Create; somebody has to set it to Start"


class Framework(Workload):
    """A trial as a Framework."""

    object_type = ObjectType("frameworkcontroller.microsoft.com", "v1", "frameworks", "Framework")
    node_variables = NodeVariables(
        rank="FC_TASK_INDEX", offset=OFFSET_VARIABLE, run="FC_FRAMEWORK_ATTEMPT_ID", peers=_BARRIER
    )
    longest_name = 50  # pods are `<name>-<role>-<index>`, and a pod's name is its host's
    deletes_pods_at_once = True
    rescales = True

    def object_name(self, job_id: str, home: str) -> str:
        """Return letters and digits alone."""
        return naming.plain_label(job_id, home, self.longest_name)

    def render(self, request: WorkloadRequest) -> Sequence[JsonObject]:
        """Return the Framework.

        Raises:
            BackendError: Its roles have other numbers of tasks than the trial has nodes, it may be retried and nothing
                outlives its pods, or its barrier has no service account.
        """
        _check_account(request)
        roles = _roles(request)
        retry = _retry_policy(request)
        return [self.manifest(request, {"executionType": "Start", "retryPolicy": retry, "taskRoles": roles})]

    def state(self, found: JsonObject, pods: Sequence[JsonObject]) -> WorkloadState:
        """Return the state of the Framework; how it completed is in its attempt."""
        state = text(found, "status", "state")
        attempt = number(found, "status", "attemptStatus", "id")
        if state == "Completed":
            return _completed(found, pods)
        if state not in _PREPARING:
            return WorkloadState(TrialState.RUNNING)
        if attempt:
            return WorkloadState(TrialState.RUNNING, f"is begun again by FrameworkController (attempt {attempt + 1})")
        if not pods and text(found, "spec", "executionType") == "Create":
            return WorkloadState(TrialState.PREPARING, _HELD)
        return trial_reasons.preparing(pods, (), found, _without_pods(found))


def task_statuses(found: JsonObject) -> list[JsonObject]:
    """Return the task roles of the attempt with their tasks; large ones are compressed."""
    attempt = part(found, "status", "attemptStatus")
    packed = text(attempt, "taskRoleStatusesCompressed")
    if not packed:
        return items(attempt, "taskRoleStatuses")
    return items({"roles": json.loads(gzip.decompress(base64.b64decode(packed)))}, "roles")


def _check_account(request: WorkloadRequest) -> None:
    if request.nodes > 1 and not request.options.get("service_account"):
        raise BackendError(
            "The barrier of a trial on several nodes looks at its Framework, and its pods have no service account.",
            "The service account needs the verbs get, list and watch for frameworks.",
            "Make one, and name it in `service_account:` of the profile.",
        )


def _roles(request: WorkloadRequest) -> list[JsonObject]:
    asked = items(request.options, "task_roles") or [{"name": TASK_ROLE, "task_number": request.nodes}]
    counts = [number(role, "task_number", default=1) for role in asked]
    if sum(counts) != request.nodes:
        raise BackendError(
            f"`task_roles` have {sum(counts)} tasks in all, and the trial has {request.nodes} nodes.",
            "Each node of a trial is one task.",
            f"Set `resources: {{nodes: {sum(counts)}}}`, or change `task_number` of the roles.",
        )
    rendered = []
    for index, role in enumerate(asked):
        rendered.append(_role(request, role, sum(counts[:index])))
    return rendered


def _role(request: WorkloadRequest, role: JsonObject, first_node: int) -> JsonObject:
    """Return one task role; a trial ends well when all its tasks have, and badly when one has."""
    count = number(role, "task_number", default=1)
    return {
        "name": text(role, "name") or TASK_ROLE,
        "taskNumber": count,
        "frameworkAttemptCompletionPolicy": {
            "minFailedTaskCount": number(role, "min_failed_tasks", default=1),
            "minSucceededTaskCount": number(role, "min_succeeded_tasks", default=-1),
        },
        "task": {
            "retryPolicy": {"fancyRetryPolicy": False, "maxRetryCount": 0},
            "podGracefulDeletionTimeoutSec": _seconds(request.options.get("pod_deletion_timeout")),
            "pod": _pod(request, first_node),
        },
    }


def _seconds(found: JsonValue) -> int | None:
    return math.ceil(found) if isinstance(found, (int, float)) else None


def _retry_policy(request: WorkloadRequest) -> JsonObject:
    """Return how often the whole is begun again; its pods are new then, so only where checkpoints outlive them."""
    count = number(request.options, "max_retry_count")
    is_fancy = bool(request.options.get("fancy_retry_policy"))
    if (count or is_fancy) and not has_volume(request.options):
        raise BackendError(
            "The Framework may be retried, but nothing that the trial saves outlives its pods.",
            "`max_retry_count` and `fancy_retry_policy` need a volume as `storage:` of the profile.",
            "Add `storage: {pvc: ...}`, or use `retries:` of the header.",
        )
    return {"fancyRetryPolicy": is_fancy, "maxRetryCount": count}


def _pod(request: WorkloadRequest, first_node: int) -> JsonObject:
    spec = dict(part(request.template, "spec"))
    spec["restartPolicy"] = "Never"
    if request.nodes > 1:
        _add_barrier(spec, text(request.options, "barrier_image") or BARRIER_IMAGE)
        _add_variable(spec, OFFSET_VARIABLE, str(first_node))
    template: JsonObject = {**request.template, "spec": spec}
    return with_kept_folder(template, request, _FOLDER) if has_volume(request.options) else template


def _add_barrier(spec: dict[str, JsonValue], image: str) -> None:
    """Return the barrier, under the rules of the trial's container; what `pod_patch` says of it comes last."""
    first, *others = items(spec, "containers")
    mount: JsonObject = {"name": _BARRIER, "mountPath": BARRIER_PATH}
    barrier: dict[str, JsonValue] = {
        "name": _BARRIER, "image": image, "volumeMounts": [mount],
        "resources": {"requests": _BARRIER_RESOURCES, "limits": _BARRIER_RESOURCES},
    }  # fmt: skip
    if part(first, "securityContext"):
        barrier["securityContext"] = part(first, "securityContext")
    given = items(spec, "initContainers")
    for patch in [one for one in given if one.get("name") == _BARRIER]:
        barrier = {**barrier, **patch, "volumeMounts": [*items(patch, "volumeMounts"), mount]}
    first = {**first, "volumeMounts": [*items(first, "volumeMounts"), mount]}
    spec["initContainers"] = [*(one for one in given if one.get("name") != _BARRIER), barrier]
    spec["containers"] = [first, *others]
    spec["volumes"] = [*items(spec, "volumes"), {"name": _BARRIER, "emptyDir": {}}]


def _add_variable(spec: dict[str, JsonValue], name: str, content: str) -> None:
    first, *others = items(spec, "containers")
    first = {**first, "env": [*items(first, "env"), {"name": name, "value": content}]}
    spec["containers"] = [first, *others]


def _without_pods(found: JsonObject) -> str:
    if not text(found, "status", "state"):
        return "waits for FrameworkController"
    return "waits for FrameworkController to make its pods"


def _completed(found: JsonObject, pods: Sequence[JsonObject]) -> WorkloadState:
    status = part(found, "status", "attemptStatus", "completionStatus")
    if text(status, "type", "name") == "Succeeded":
        return WorkloadState(TrialState.SUCCEEDED)
    code = number(status, "code")
    if code in _STOPPED:
        return WorkloadState(TrialState.CANCELLED, "The Framework was stopped (its `executionType` is Stop).")
    if code == _POD_DELETED:
        return WorkloadState(
            TrialState.PREEMPTED,
            "Somebody other than FrameworkController deleted a pod of the trial: an eviction, a preemption or a user.",
        )
    told = trial_reasons.ended(pods) or trial_reasons.ended(_ended_pods(found))
    return told or WorkloadState(TrialState.FAILED, _why(status, code))


def _ended_pods(found: JsonObject) -> list[JsonObject]:
    """Return what the Framework keeps of pods that have failed, which are deleted at once."""
    specs = {text(role, "name"): part(role, "task", "pod", "spec") for role in items(found, "spec", "taskRoles")}
    pods: list[JsonObject] = []
    for role in task_statuses(found):
        for task in items(role, "taskStatuses"):
            kept = part(task, "attemptStatus", "completionStatus", "pod")
            containers = list(map(_container_status, items(kept, "containers")))
            status = {"phase": "Failed", "reason": text(kept, "reason"), "message": text(kept, "message")}
            if containers or status["reason"]:
                node = text(task, "attemptStatus", "podNodeName")
                spec: JsonObject = {**specs.get(text(role, "name"), {}), "nodeName": node}
                pods.append({"spec": spec, "status": {**status, "containerStatuses": containers}})
    return pods


def _container_status(kept: JsonObject) -> JsonObject:
    more = {name: kept[name] for name in ("reason", "message", "signal") if name in kept}
    return {"name": text(kept, "name"), "state": {"terminated": {"exitCode": number(kept, "code"), **more}}}


def _why(status: JsonObject, code: int) -> str:
    told = text(status, "diagnostics") or text(status, "trigger", "message") or text(status, "phrase")
    if pending_reasons.is_refusal(told):
        return f"FrameworkController could not make its pods: {pending_reasons.server_message(told)}."
    begin = f"A container of the trial exited with code {code}" if code > 0 else "FrameworkController ended the trial"
    return f"{begin}: {told}" if told else f"{begin}."


class FrameworkBackend(KubernetesBackend):
    """Runs each trial as a Framework."""

    operator_workload = Framework()

    @staticmethod
    def options_model() -> type[BaseModel]:
        """Return those of Kubernetes, task roles and retries."""
        from jupyter_autotrain.backends.kubernetes.options.framework_options import FrameworkOptions  # noqa: PLC0415 - pydantic is slow

        return FrameworkOptions

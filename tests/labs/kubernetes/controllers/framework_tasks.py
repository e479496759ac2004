"""The tasks of a Framework: their pods, and what becomes of them."""

from __future__ import annotations

import json
import time
import uuid

from tests.labs.kubernetes.controllers import framework_completion as completion
from tests.labs.kubernetes.controllers.ownership import owner_reference
from tests.labs.kubernetes.controllers.times import stamp
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.resources import PODS
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

_BY_PHASE = {"Pending": "AttemptPreparing", "Running": "AttemptRunning"}


def now() -> str:
    """Return the time, as a status tells it."""
    return str(stamp(time.time()))


def counts() -> Json:
    """Of a task or an attempt that was not retried yet."""
    return {"totalRetriedCount": 0, "accountableRetriedCount": 0, "retryDelaySec": None}


def roles_of(spec: Json, framework: str) -> list[Json]:
    """Return the statuses of all roles, before any pod."""
    found = []
    for role in spec["taskRoles"]:
        tasks = [_task(framework, role["name"], index) for index in range(role["taskNumber"])]
        found.append({"name": role["name"], "instanceUID": str(uuid.uuid4()), "taskStatuses": tasks})
    return found


def rescale(spec: Json, roles: list[Json], framework: str) -> list[Json]:
    """Add the tasks that are new, and mark those for deletion that are too many."""
    for role_spec, role in zip(spec["taskRoles"], roles, strict=True):
        tasks = role["taskStatuses"]
        for index in range(len(tasks), role_spec["taskNumber"]):
            tasks.append(_task(framework, role["name"], index))
        for task in tasks[role_spec["taskNumber"] :]:
            task["deletionPending"] = True
    return roles


def _task(framework: str, role: str, index: int) -> Json:
    return {
        "index": index, "instanceUID": str(uuid.uuid4()), "startTime": now(), "runTime": None, "completionTime": None,
        "state": "AttemptCreationPending", "transitionTime": now(), "deletionPending": False,
        "retryPolicyStatus": counts(), "attemptStatus": _attempt(0, f"{framework}-{role}-{index}"),
    }  # fmt: skip


def _attempt(number: int, pod_name: str) -> Json:
    return {
        "id": number, "startTime": now(), "runTime": None, "completionTime": None, "instanceUID": None,
        "podName": pod_name, "podUID": None, "podNodeName": None, "podIP": None, "podHostIP": None,
        "completionStatus": None,
    }  # fmt: skip


class TaskSync:
    """Brings the tasks of one attempt to what their pods are.

    Args:
        store: The objects.
        framework: The Framework.
        config_map: The ConfigMap that is its attempt; it owns the pods.
    """

    def __init__(self, store: ObjectStore, framework: Json, config_map: Json) -> None:
        self._store = store
        self._framework = framework
        self._config_map = config_map
        self._namespace = framework["metadata"]["namespace"]

    def sync(self, role_spec: Json, task: Json) -> None:
        """One step of a task; changes it in place."""
        attempt = task["attemptStatus"]
        if task["state"] == "Completed":
            return
        pod = self._pod(attempt["podName"])
        if pod is None:
            self._without_pod(role_spec, task)
            return
        if not self._is_own(pod):
            return  # of an earlier attempt, or of a Framework of the same name: its name is free soon
        attempt["podNodeName"] = pod["spec"].get("nodeName")
        attempt["podIP"] = pod["status"].get("podIP")
        attempt["podHostIP"] = pod["status"].get("hostIP")
        if pod["metadata"].get("deletionTimestamp"):
            if attempt["completionStatus"] is None:
                attempt["completionStatus"] = completion.status(
                    completion.POD_DELETED, "Pod is being deleted by others"
                )
            self._move(task, "AttemptDeleting")
        elif pod["status"].get("phase") in {"Succeeded", "Failed"}:
            attempt["completionStatus"] = attempt["completionStatus"] or completion.of_pod(pod)
            self._delete(pod)
            self._move(task, "AttemptDeletionRequested")
        elif task["deletionPending"]:
            attempt["completionStatus"] = completion.status(completion.TASK_DELETED, "Deleted by a scale down")
            self._delete(pod)
            self._move(task, "AttemptDeletionRequested")
        else:
            phase = str(pod["status"].get("phase", ""))
            self._move(task, _BY_PHASE.get(phase) or task["state"])

    def _is_own(self, pod: Json) -> bool:
        owners = pod["metadata"].get("ownerReferences") or ()
        return any(owner["uid"] == self._config_map["metadata"]["uid"] for owner in owners)

    def _without_pod(self, role_spec: Json, task: Json) -> None:
        attempt = task["attemptStatus"]
        if task["state"] == "AttemptCreationPending" and attempt["completionStatus"] is None:
            self._create(role_spec, task)
            return
        if attempt["completionStatus"] is None:
            attempt["completionStatus"] = completion.status(completion.POD_DELETED, "Pod was deleted by others")
        policy = role_spec["task"].get("retryPolicy") or {}
        again, is_counted = completion.is_retried(policy, task["retryPolicyStatus"], attempt["completionStatus"])
        if again:
            task["retryPolicyStatus"]["totalRetriedCount"] += 1
            task["retryPolicyStatus"]["accountableRetriedCount"] += is_counted
            task["attemptStatus"] = _attempt(attempt["id"] + 1, attempt["podName"])
            self._move(task, "AttemptCreationPending")
            return
        attempt["completionTime"] = task["completionTime"] = now()
        self._move(task, "Completed")

    def _create(self, role_spec: Json, task: Json) -> None:
        try:
            pod = self._store.create(PODS, self._namespace, self._rendered(role_spec, task))
        except ApiError as error:
            if error.code not in {400, 403, 422}:
                raise
            refused = completion.status(completion.POD_REFUSED, f"Failed to create Pod: {error.message}")
            task["attemptStatus"]["completionStatus"] = refused
            return
        task["attemptStatus"]["podUID"] = pod["metadata"]["uid"]
        self._move(task, "AttemptCreationRequested")

    def _rendered(self, role_spec: Json, task: Json) -> Json:
        """Return the pod of a task: the template with its placeholders, labels and variables."""
        known = self._facts(role_spec["name"], task)
        text = json.dumps(role_spec["task"]["pod"])
        for name, content in known.items():
            text = text.replace("{{" + name + "}}", content)
        pod: Json = {"apiVersion": "v1", "kind": "Pod", **json.loads(text)}
        metadata = pod.setdefault("metadata", {})
        metadata["name"] = task["attemptStatus"]["podName"]
        metadata["ownerReferences"] = [owner_reference(self._config_map)]
        labels = {name: known[name] for name in ("FC_FRAMEWORK_NAME", "FC_TASKROLE_NAME", "FC_TASK_INDEX")}
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **known}
        variables: list[Json] = [{"name": name, "value": content} for name, content in known.items()]
        variables.append({"name": "FC_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}})
        for container in [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]:
            container["env"] = [*variables, *container.get("env", ())]
            container.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
        return pod

    def _facts(self, role: str, task: Json) -> dict[str, str]:
        metadata = self._framework["metadata"]
        attempt = self._framework["status"]["attemptStatus"]
        return {
            "FC_FRAMEWORK_NAMESPACE": self._namespace,
            "FC_FRAMEWORK_NAME": metadata["name"],
            "FC_TASKROLE_NAME": role,
            "FC_TASK_INDEX": str(task["index"]),
            "FC_CONFIGMAP_NAME": self._config_map["metadata"]["name"],
            "FC_POD_NAME": task["attemptStatus"]["podName"],
            "FC_FRAMEWORK_UID": metadata["uid"],
            "FC_FRAMEWORK_ATTEMPT_ID": str(attempt["id"]),
            "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID": f"{attempt['id']}_{self._config_map['metadata']['uid']}",
            "FC_CONFIGMAP_UID": self._config_map["metadata"]["uid"],
            "FC_TASK_UID": task["instanceUID"],
            "FC_TASK_ATTEMPT_ID": str(task["attemptStatus"]["id"]),
        }

    def _pod(self, name: str) -> Json | None:
        try:
            return self._store.get(PODS, self._namespace, name)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    def _delete(self, pod: Json) -> None:
        self._store.delete(PODS, self._namespace, pod["metadata"]["name"], uid=pod["metadata"]["uid"])

    @staticmethod
    def _move(task: Json, state: str) -> None:
        if task["state"] != state:
            task["state"] = state
            task["transitionTime"] = now()

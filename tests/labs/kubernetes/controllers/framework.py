"""A small FrameworkController: attempts of Frameworks, their tasks, completion and retry policies.

An attempt is a ConfigMap that owns the pods; when the attempt is complete it is deleted with them. Pods of tasks are
deleted as soon as these have ended, as the real one does.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

from tests.labs.kubernetes.controllers import framework_completion as completion
from tests.labs.kubernetes.controllers import framework_tasks as tasks
from tests.labs.kubernetes.controllers.framework_schema import FRAMEWORKS, SCHEMA
from tests.labs.kubernetes.controllers.loop import ControlLoop, Key
from tests.labs.kubernetes.controllers.ownership import owner_reference
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.resources import CONFIG_MAPS, PODS, Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

_STARTING = ("AttemptCreationPending", "AttemptCreationRequested")
_ENDING = ("AttemptDeletionPending", "AttemptDeletionRequested", "AttemptDeleting")


class FrameworkController:
    """Runs Frameworks."""

    watches: Sequence[Resource] = (FRAMEWORKS, PODS, CONFIG_MAPS)

    def __init__(self, store: ObjectStore, _loop: ControlLoop | None = None) -> None:
        self._store = store
        store.resources.add(FRAMEWORKS, SCHEMA)

    def keys(self, resource: Resource, found: Json) -> Iterable[Key]:
        """Yield the Framework itself, or that of a pod or of an attempt."""
        metadata = found["metadata"]
        if resource.key == FRAMEWORKS.key:
            yield metadata["namespace"], metadata["name"]
        elif name := (metadata.get("labels") or {}).get("FC_FRAMEWORK_NAME"):
            yield metadata["namespace"], name

    def reconcile(self, key: Key) -> float | None:
        """One step of a Framework."""
        try:
            found = self._store.get(FRAMEWORKS, *key)
        except ApiError as error:
            if error.code != 404:
                raise
            return None
        if found["metadata"].get("deletionTimestamp"):
            return None
        before = copy.deepcopy(found.get("status"))
        found["status"] = found.get("status") or _new_status(found)
        self._step(found)
        if found["status"] != before:
            self._store.replace(FRAMEWORKS, *key, found)
        return None

    def _step(self, found: Json) -> None:
        status = found["status"]
        state = status["state"]
        execution = found["spec"].get("executionType", "Start")
        if state == "Completed" or (execution == "Create" and state == "AttemptCreationPending"):
            return
        if execution == "Stop" and status["attemptStatus"]["completionStatus"] is None:
            stopped = completion.status(completion.STOP_REQUESTED, "User has requested to stop the Framework")
            self._complete(found, stopped)
        elif state in _ENDING:
            self._end_attempt(found)
        elif state == "AttemptCompleted":
            self._retry(found)
        else:
            self._run(found)

    def _run(self, found: Json) -> None:
        status = found["status"]
        config_map = self._config_map(found)
        if config_map is None:
            if status["state"] not in _STARTING:
                self._complete(found, completion.status(-100, "ConfigMap was deleted by others"))
                return
            config_map = self._store.create(CONFIG_MAPS, found["metadata"]["namespace"], _attempt_of(found))
        if not _is_owner(found, config_map):
            return  # of a Framework of the same name that is gone: its name is free soon
        attempt = status["attemptStatus"]
        attempt["configMapUID"] = config_map["metadata"]["uid"]
        attempt["instanceUID"] = f"{attempt['id']}_{attempt['configMapUID']}"
        roles = tasks.rescale(found["spec"], attempt["taskRoleStatuses"], found["metadata"]["name"])
        sync = tasks.TaskSync(self._store, found, config_map)
        for role_spec, role in zip(found["spec"]["taskRoles"], roles, strict=True):
            for task in role["taskStatuses"]:
                sync.sync(role_spec, task)
            role["taskStatuses"] = [task for task in role["taskStatuses"] if not _is_gone(task)]
        is_running = any(task["state"] == "AttemptRunning" for role in roles for task in role["taskStatuses"])
        if is_running or status["state"] != "AttemptRunning":
            _move(status, "AttemptRunning" if is_running else "AttemptPreparing")
        ended = completion.of_attempt(found["spec"], roles)
        if ended is not None:
            self._complete(found, ended)

    def _complete(self, found: Json, ended: Json) -> None:
        """Delete the ConfigMap of an attempt that is decided, and its pods with it."""
        attempt = found["status"]["attemptStatus"]
        attempt["completionStatus"] = ended
        for role in attempt["taskRoleStatuses"]:
            for task in role["taskStatuses"]:
                if task["attemptStatus"]["completionStatus"] is None:
                    stop = completion.status(completion.ATTEMPT_COMPLETION, "Stop to complete current FrameworkAttempt")
                    task["attemptStatus"]["completionStatus"] = stop
        _move(found["status"], "AttemptDeletionPending")

    def _end_attempt(self, found: Json) -> None:
        config_map = self._config_map(found)
        if config_map is not None:
            namespace = found["metadata"]["namespace"]
            if not config_map["metadata"].get("deletionTimestamp"):
                self._store.delete(CONFIG_MAPS, namespace, config_map["metadata"]["name"], propagation="Foreground")
            _move(found["status"], "AttemptDeleting")
            return
        attempt = found["status"]["attemptStatus"]
        attempt["completionTime"] = tasks.now()
        for role in attempt["taskRoleStatuses"]:
            for task in role["taskStatuses"]:
                task["state"] = "Completed"
                task["completionTime"] = task["completionTime"] or tasks.now()
        _move(found["status"], "AttemptCompleted")

    @staticmethod
    def _retry(found: Json) -> None:
        status = found["status"]
        counts = status["retryPolicyStatus"]
        policy = found["spec"].get("retryPolicy") or {}
        again, is_counted = completion.is_retried(policy, counts, status["attemptStatus"]["completionStatus"])
        if not again:
            status["completionTime"] = tasks.now()
            _move(status, "Completed")
            return
        counts["totalRetriedCount"] += 1
        counts["accountableRetriedCount"] += is_counted
        status["attemptStatus"] = _new_attempt(found, counts["totalRetriedCount"])
        _move(status, "AttemptCreationPending")

    def _config_map(self, found: Json) -> Json | None:
        try:
            return self._store.get(CONFIG_MAPS, found["metadata"]["namespace"], f"{found['metadata']['name']}-attempt")
        except ApiError as error:
            if error.code != 404:
                raise
            return None


def _is_owner(found: Json, config_map: Json) -> bool:
    owners = config_map["metadata"].get("ownerReferences") or ()
    return any(owner["uid"] == found["metadata"]["uid"] for owner in owners)


def _is_gone(task: Json) -> bool:
    return bool(task["deletionPending"]) and task["state"] == "Completed"


def _move(status: Json, state: str) -> None:
    if status["state"] != state:
        status["state"] = state
        status["transitionTime"] = tasks.now()
        if state == "AttemptRunning":
            status["runTime"] = status["runTime"] or tasks.now()


def _new_status(found: Json) -> Json:
    return {
        "startTime": tasks.now(), "runTime": None, "completionTime": None, "state": "AttemptCreationPending",
        "transitionTime": tasks.now(), "retryPolicyStatus": tasks.counts(), "attemptStatus": _new_attempt(found, 0),
    }  # fmt: skip


def _new_attempt(found: Json, number: int) -> Json:
    name = found["metadata"]["name"]
    return {
        "id": number, "startTime": tasks.now(), "runTime": None, "completionTime": None, "instanceUID": None,
        "configMapName": f"{name}-attempt", "configMapUID": None, "completionStatus": None,
        "taskRoleStatuses": tasks.roles_of(found["spec"], name),
    }  # fmt: skip


def _attempt_of(found: Json) -> Json:
    name = found["metadata"]["name"]
    metadata = {
        "name": f"{name}-attempt",
        "labels": {"FC_FRAMEWORK_NAME": name},
        "ownerReferences": [owner_reference(found)],
        "finalizers": ["foregroundDeletion"],
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}

"""The controller of JobSet: a Job per replica of each replicated job, and a Service for their names.

Known differences: no failure policy (the first failed Job fails the set, as without one), no `dependsOn` and start-up
policies (all Jobs begin together), no `coordinator`.
"""

from __future__ import annotations

from tests.labs.kubernetes.controllers.loop import ControlLoop, Key
from tests.labs.kubernetes.controllers.operator_base import OperatorController
from tests.labs.kubernetes.controllers.times import condition_of, with_condition
from tests.labs.kubernetes.custom.trainer import JOBSETS
from tests.labs.kubernetes.objects.metadata import copied
from tests.labs.kubernetes.objects.resources import JOBS, SERVICES
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

_PREFIX = "jobset.sigs.k8s.io"
_ENDS = ("Completed", "Failed")


class JobSetController(OperatorController):
    """Makes Jobs and tells how they are."""

    def __init__(self, store: ObjectStore, loop: ControlLoop) -> None:
        super().__init__(store, loop, JOBSETS, (JOBS, SERVICES), "jobset-controller")

    def reconcile(self, key: Key) -> float | None:
        """Make what is missing, suspend or resume, and tell the status."""
        jobset = self.find(key)
        if jobset is None:
            return None
        status: Json = copied(jobset.get("status") or {})
        if any(_is_true(jobset, kind) for kind in _ENDS):
            self._end(jobset)
            return None
        self._make(jobset)
        jobs = self.made(JOBS, jobset)
        self._align(jobset, jobs)
        status["replicatedJobsStatus"] = [self._counted(one, jobs) for one in _replicated(jobset)]
        self._conclude(jobset, status, jobs)
        self.write_status(jobset, status)
        return None

    def _make(self, jobset: Json) -> None:
        name = jobset["metadata"]["name"]
        selector = {f"{_PREFIX}/jobset-name": name}
        network = jobset["spec"].get("network") or {}
        is_early = network.get("publishNotReadyAddresses", True)
        service = {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": is_early}
        own = network.get("subdomain", name)
        self.make(SERVICES, jobset, {"metadata": {"name": own}, "spec": service})
        for one in _replicated(jobset):
            for index in range(one.get("replicas", 1)):
                self.make(JOBS, jobset, _job(jobset, one, index, own))

    def _align(self, jobset: Json, jobs: list[Json]) -> None:
        wanted = bool(jobset["spec"].get("suspend"))
        for job in jobs:
            if bool(job["spec"].get("suspend")) != wanted:
                metadata = job["metadata"]
                self.store.patch(JOBS, metadata["namespace"], metadata["name"], {"spec": {"suspend": wanted}})

    def _counted(self, replicated: Json, jobs: list[Json]) -> Json:
        """Return how many Jobs of a replicated job are in which state; one is ready when all its pods are."""
        label = f"{_PREFIX}/replicatedjob-name"
        own = [job for job in jobs if job["metadata"]["labels"][label] == replicated["name"]]
        counts = dict.fromkeys(("ready", "succeeded", "failed", "active", "suspended"), 0)
        for job in own:
            counts[_state(job)] += 1
            counts["ready"] += int(_is_ready(job))
        return {"name": replicated["name"], **counts}

    def _conclude(self, jobset: Json, status: Json, jobs: list[Json]) -> None:
        failed = [job for job in jobs if _state(job) == "failed"]
        if failed:
            first = failed[0]["metadata"]["name"]
            message = f"jobset failed due to one or more job failures (first failed job: {first})"
            self._set(status, "Failed", "FailedJobs", message)
            status["terminalState"] = "Failed"
        elif jobs and all(_state(job) == "succeeded" for job in jobs):
            self._set(status, "Completed", "AllJobsCompleted", "jobset completed successfully")
            status["terminalState"] = "Completed"
        elif jobset["spec"].get("suspend"):
            self._set(status, "Suspended", "SuspendedJobs", "jobset is suspended")
        elif condition_of(jobset, "Suspended"):
            self._set(status, "Suspended", "ResumeJobs", "jobset is resumed", "False")

    def _set(self, status: Json, kind: str, reason: str, message: str, truth: str = "True") -> None:
        condition = {"type": kind, "status": truth, "reason": reason, "message": message}
        status["conditions"] = with_condition(status.get("conditions", ()), condition, self.now)

    def _end(self, jobset: Json) -> None:
        """Jobs that still run are deleted."""
        for job in self.made(JOBS, jobset):
            if _state(job) == "active":
                self.delete(JOBS, job)


def _replicated(jobset: Json) -> list[Json]:
    return list(jobset["spec"].get("replicatedJobs", ()))


def _job(jobset: Json, replicated: Json, index: int, subdomain: str) -> Json:
    name = jobset["metadata"]["name"]
    template = copied(replicated["template"])
    labels = {
        f"{_PREFIX}/jobset-name": name,
        f"{_PREFIX}/jobset-uid": jobset["metadata"]["uid"],
        f"{_PREFIX}/replicatedjob-name": replicated["name"],
        f"{_PREFIX}/replicatedjob-replicas": str(replicated.get("replicas", 1)),
        f"{_PREFIX}/job-index": str(index),
        f"{_PREFIX}/restart-attempt": "0",
    }
    given = template.get("metadata") or {}
    spec = template["spec"]
    if jobset["spec"].get("suspend") is not None:
        spec["suspend"] = jobset["spec"]["suspend"]
    pods = spec["template"]
    of_pods = pods.setdefault("metadata", {})
    of_pods["labels"] = {**(of_pods.get("labels") or {}), **labels}
    of_pods["annotations"] = {**(of_pods.get("annotations") or {}), **labels}
    pods["spec"].setdefault("restartPolicy", "OnFailure")
    pods["spec"]["subdomain"] = subdomain
    metadata = {
        "name": f"{name}-{replicated['name']}-{index}",
        "labels": {**(given.get("labels") or {}), **labels},
        "annotations": {**(given.get("annotations") or {}), **labels},
    }
    return {"metadata": metadata, "spec": spec}


def _is_true(found: Json, kind: str) -> bool:
    condition = condition_of(found, kind)
    return condition is not None and condition["status"] == "True"


def _state(job: Json) -> str:
    if _is_true(job, "Complete"):
        return "succeeded"
    if _is_true(job, "Failed"):
        return "failed"
    return "suspended" if job["spec"].get("suspend") else "active"


def _is_ready(job: Json) -> bool:
    status = job.get("status") or {}
    wanted = min(job["spec"].get("parallelism", 1), job["spec"].get("completions") or 1)
    return bool(int(status.get("ready", 0)) + int(status.get("succeeded", 0)) >= wanted)

"""The controller of Kubeflow Trainer: a JobSet from the runtime that a TrainJob names.

Known differences: runtimes with a policy for MPI, JAX or Flux run as plain ones; initializers are not run.
"""

from __future__ import annotations

from tests.labs.kubernetes.controllers.loop import ControlLoop, Key
from tests.labs.kubernetes.controllers.operator_base import OperatorController
from tests.labs.kubernetes.controllers.times import condition_of, seconds_of, with_condition
from tests.labs.kubernetes.custom.trainer import CLUSTER_RUNTIMES, JOBSETS, RUNTIMES, TRAINJOBS
from tests.labs.kubernetes.objects import patches
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.metadata import copied
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
_PORT = 29500
_CONTAINER = "node"


class TrainJobController(OperatorController):
    """Makes the JobSet, and tells its status as the TrainJob's."""

    def __init__(self, store: ObjectStore, loop: ControlLoop) -> None:
        super().__init__(store, loop, TRAINJOBS, (JOBSETS,), "trainer-controller")

    def reconcile(self, key: Key) -> float | None:
        """Make or align the JobSet, then tell the status."""
        job = self.find(key)
        if job is None:
            return None
        status: Json = copied(job.get("status") or {})
        if not _is_finished(status):
            self._align(job, status)
        found = [one for one in self.made(JOBSETS, job) if one["metadata"]["name"] == job["metadata"]["name"]]
        if found:
            self._tell(status, found[0])
        left = self._deadline_in(job, status)
        if left is not None and left <= 0:
            self._set(status, "Failed", "DeadlineExceeded", "TrainJob exceeded its active deadline")
            for one in found:
                self.delete(JOBSETS, one)
        self.write_status(job, status)
        return left

    def _align(self, job: Json, status: Json) -> None:
        suspend = bool(job["spec"].get("suspend"))
        if suspend:
            self._set(status, "Suspended", "Suspended", "TrainJob is suspended")
        elif condition_of({"status": status}, "Suspended"):
            self._set(status, "Suspended", "Resumed", "TrainJob is resumed", "False")
        try:
            runtime = self._runtime(job)
        except ApiError as error:
            self.events.record(job, "TrainJobResourcesCreationFailed", error.message, "Warning")
            return
        jobset = self.make(JOBSETS, job, _jobset(job, runtime))
        if bool(jobset["spec"].get("suspend")) != suspend:
            metadata = jobset["metadata"]
            self.store.patch(JOBSETS, metadata["namespace"], metadata["name"], {"spec": {"suspend": suspend}})

    def _runtime(self, job: Json) -> Json:
        reference = job["spec"]["runtimeRef"]
        if reference.get("kind", CLUSTER_RUNTIMES.kind) == CLUSTER_RUNTIMES.kind:
            return self.store.get(CLUSTER_RUNTIMES, "", reference["name"])
        return self.store.get(RUNTIMES, job["metadata"]["namespace"], reference["name"])

    def _tell(self, status: Json, jobset: Json) -> None:
        for kind, own in (("Completed", "Complete"), ("Failed", "Failed")):
            condition = condition_of(jobset, kind)
            if condition is not None and condition["status"] == "True":
                self._set(status, own, condition["reason"], condition["message"])
        status["jobsStatus"] = jobset.get("status", {}).get("replicatedJobsStatus", [])

    def _set(self, status: Json, kind: str, reason: str, message: str, truth: str = "True") -> None:
        condition = {"type": kind, "status": truth, "reason": reason, "message": message}
        status["conditions"] = with_condition(status.get("conditions", ()), condition, self.now)

    def _deadline_in(self, job: Json, status: Json) -> float | None:
        limit = job["spec"].get("activeDeadlineSeconds")
        if limit is None or _is_finished(status) or job["spec"].get("suspend"):
            return None
        resumed = condition_of({"status": status}, "Suspended")
        since = resumed["lastTransitionTime"] if resumed else job["metadata"]["creationTimestamp"]
        return seconds_of(since) + float(limit) - self.now


def _is_finished(status: Json) -> bool:
    return any(
        one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in status.get("conditions", ())
    )


def _jobset(job: Json, runtime: Json) -> Json:
    """Return the JobSet of a runtime with what the TrainJob says."""
    template = copied(runtime["spec"]["template"])
    spec = template["spec"]
    if "suspend" in job["spec"]:
        spec["suspend"] = job["spec"]["suspend"]
    for replicated in spec["replicatedJobs"]:
        pods = replicated["template"]["spec"]["template"]
        for name, patch in _patches(job):
            if name == replicated["name"]:
                pods = patches.apply(pods, patch, patches.STRATEGIC_PATCH)
                replicated["template"]["spec"]["template"] = pods
        labels = (replicated["template"].get("metadata") or {}).get("labels") or {}
        if labels.get(_STEP) == "trainer":
            _trainer(job, runtime, replicated)
    given = template.get("metadata") or {}
    labels = {**(given.get("labels") or {}), **(job["spec"].get("labels") or {})}
    return {"metadata": {"name": job["metadata"]["name"], "labels": labels}, "spec": spec}


def _patches(job: Json) -> list[tuple[str, Json]]:
    """Return the replicated job and the patch of its pods, in the words of each release."""
    spec = job["spec"]
    found = []
    for patch in spec.get("runtimePatches", ()):
        jobs = patch.get("trainingRuntimeSpec", {}).get("template", {}).get("spec", {}).get("replicatedJobs", ())
        found += [(one["name"], one.get("template", {}).get("spec", {}).get("template", {})) for one in jobs]
    for override in spec.get("podTemplateOverrides", ()):
        pods = {key: value for key, value in override.items() if key in ("metadata", "spec")}
        found += [(target["name"], pods) for target in override.get("targetJobs", ())]
    return found


def _trainer(job: Json, runtime: Json, replicated: Json) -> None:
    """Complete the step that runs the trial: its size, its program, and the variables for PyTorch."""
    trainer = job["spec"].get("trainer") or {}
    policy = runtime["spec"].get("mlPolicy") or {}
    nodes = trainer.get("numNodes") or policy.get("numNodes") or 1
    spec = replicated["template"]["spec"]
    spec |= {"parallelism": nodes, "completions": nodes, "completionMode": "Indexed"}
    replicated["replicas"] = 1
    for container in spec["template"]["spec"]["containers"]:
        if container["name"] == _CONTAINER:
            for field in ("image", "command", "args"):
                if field in trainer:
                    container[field] = trainer[field]
            if "resourcesPerNode" in trainer:
                container["resources"] = trainer["resourcesPerNode"]
            torch = _torch(job, replicated["name"], nodes, trainer) if "torch" in policy else []
            _upsert(container, [*trainer.get("env", ()), *torch])
            container.setdefault("ports", []).append({"containerPort": _PORT})


def _torch(job: Json, replicated: str, nodes: int, trainer: Json) -> list[Json]:
    name = job["metadata"]["name"]
    index = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    values = {
        "PET_NNODES": nodes, "PET_NPROC_PER_NODE": trainer.get("numProcPerNode", "auto"),
        "PET_MASTER_ADDR": f"{name}-{replicated}-0-0.{name}", "PET_MASTER_PORT": _PORT,
    }  # fmt: skip
    found: list[Json] = [{"name": key, "value": str(value)} for key, value in values.items()]
    return [*found, {"name": "PET_NODE_RANK", "valueFrom": {"fieldRef": {"fieldPath": index}}}]


def _upsert(container: Json, variables: list[Json]) -> None:
    """Variables are replaced by name."""
    found = {one["name"]: one for one in container.get("env", ())}
    for variable in variables:
        found[variable["name"]] = variable
    container["env"] = list(found.values())

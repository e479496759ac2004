"""TrainJob of Kubeflow Trainer (v2): a runtime that the administrator installed, with the trial's program in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.objects import trial_reasons
from jupyter_autotrain.backends.kubernetes.objects import workload as defaults
from jupyter_autotrain.backends.kubernetes.objects.fields import condition, items, part, text
from jupyter_autotrain.backends.kubernetes.objects.pod_parts import main_container, value_variable
from jupyter_autotrain.backends.kubernetes.objects.workload import (
    FIRST_ADDRESS_VARIABLE,
    NodeVariables,
    ObjectType,
    Workload,
    WorkloadRequest,
    WorkloadState,
    deadline_s,
)
from jupyter_autotrain.backends.kubernetes.workloads.training_runtimes import CONTAINER, GROUP, Runtime, TrainJobLayout
from jupyter_autotrain.backends.kubernetes.workloads.volumes import without_volume_folders
from jupyter_autotrain.errors import BackendError

TRAINJOB = ObjectType(GROUP, "v1alpha1", "trainjobs", "TrainJob")
_OF_TRAINER = ("image", "command", "args", "env", "resources")
_OF_RUNTIME = (
    "restartPolicy", "terminationGracePeriodSeconds", "enableServiceLinks", "automountServiceAccountToken", "name",
    "activeDeadlineSeconds",
)  # fmt: skip


class TrainJobWorkload(Workload):
    """One pod per node, in a JobSet of the same name.

    Args:
        runtime: The runtime that it names; None: the stock one for PyTorch.
        layout: The fields that the server has; None: those of the newest release.
    """

    object_type = TRAINJOB
    node_variables = NodeVariables("JOB_COMPLETION_INDEX", FIRST_ADDRESS_VARIABLE)
    longest_name = 44  # the longest name of a pod, NAME-node-0-9999-abcde, has 63 characters at most

    def __init__(self, runtime: Runtime | None = None, layout: TrainJobLayout | None = None) -> None:
        self.runtime = runtime or Runtime()
        self.layout = layout or TrainJobLayout()

    def render(self, request: WorkloadRequest) -> Sequence[JsonObject]:
        """Return the manifest.

        Raises:
            BackendError: A TrainJob cannot carry what the options ask for.
        """
        request = replace(request, template=without_volume_folders(request.template))  # no release takes containers
        self._check(request)
        spec: dict[str, JsonValue] = {
            "runtimeRef": {"apiGroup": GROUP, "kind": self.runtime.kind, "name": self.runtime.name},
            "trainer": self._trainer(request),
            self.layout.overrides: self._override(request),
        }
        limit_s = deadline_s(request.timeout_s)
        if limit_s is not None and self.layout.has_deadline:  # no release takes that of pods
            spec["activeDeadlineSeconds"] = limit_s
        return [self.manifest(request, spec)]

    def _trainer(self, request: WorkloadRequest) -> JsonObject:
        container = main_container(request.template)
        first = value_variable(FIRST_ADDRESS_VARIABLE, f"{request.name}-{self.runtime.job}-0-0.{request.name}")
        trainer: dict[str, JsonValue] = {
            "numNodes": request.nodes,
            "numProcPerNode": request.workers_per_node,
            "env": [first, *items(container, "env")],
        }
        if container.get("image") != defaults.IMAGE:  # else that of the runtime
            trainer["image"] = container["image"]
        for name in ("command", "args"):
            if container.get(name):
                trainer[name] = container[name]
        if container.get("resources"):
            trainer["resourcesPerNode"] = container["resources"]
        return trainer

    def _override(self, request: WorkloadRequest) -> JsonValue:
        template = request.template
        container = main_container(template)
        own = {name: container[name] for name in self.layout.container_fields if _is_carried(container, name)}
        spec: dict[str, JsonValue] = {
            name: value
            for name, value in part(template, "spec").items()
            if name in self.layout.pod_fields and name != "containers"
        }
        if own:
            spec["containers"] = [{"name": CONTAINER, **own}]
        metadata = {"labels": dict(request.labels), "annotations": dict(request.annotations)}
        merged = {**metadata, **part(template, "metadata")}
        return self.layout.override(self.runtime.job, {name: value for name, value in merged.items() if value}, spec)

    def _check(self, request: WorkloadRequest) -> None:
        """Refuse by name what has no field."""
        spec = part(request.template, "spec")
        container = main_container(request.template)
        known = (*self.layout.pod_fields, *_OF_RUNTIME, "containers", "schedulerName" if self.runtime.gang else "")
        lost = [name for name, value in spec.items() if name not in known and value]
        known = (*self.layout.container_fields, *_OF_TRAINER, *_OF_RUNTIME)
        lost += [f"containers.{name}" for name, value in container.items() if name not in known and value]
        if lost:
            raise BackendError(
                f"A TrainJob cannot say this of its pods: {', '.join(sorted(lost))}.",
                "Its runtime was expected to say it.",
                "Leave the option out, name a runtime with `runtime:`, or use `kind: PyTorchJob` where it is served.",
            )

    def state(self, found: JsonObject, pods: Sequence[JsonObject]) -> WorkloadState:
        """Read its conditions, the counts of its jobs and the restarts of its pods."""
        if failed := condition(found, "Failed"):
            return _failed(found, pods, failed)
        if condition(found, "Complete"):
            return WorkloadState(TrialState.SUCCEEDED)
        # A JobSet starts a failed container again, for many minutes; a trial is tried again as a new attempt.
        if told := trial_reasons.out_of_memory(pods) or trial_reasons.restarted(pods):
            return WorkloadState(TrialState.FAILED, told)
        if _is_running(found):
            return WorkloadState(TrialState.RUNNING)
        return trial_reasons.preparing(pods, (), found, "waits for its pods")


def _is_carried(container: JsonObject, name: str) -> bool:
    return name not in ("env", "name") and bool(container.get(name))


def _is_running(found: JsonObject) -> bool:
    """Read what its jobs count: a TrainJob has no condition for it."""
    return any(job.get("ready") for job in items(found, "status", "jobsStatus"))


def _failed(found: JsonObject, pods: Sequence[JsonObject], failed: JsonObject) -> WorkloadState:
    if text(failed, "reason") == "DeadlineExceeded":
        return WorkloadState(TrialState.FAILED, trial_reasons.deadline(found, "spec", "activeDeadlineSeconds"))
    message = text(failed, "message") or text(failed, "reason")
    return trial_reasons.ended(pods) or WorkloadState(TrialState.FAILED, f"TrainJob says it failed: {message}")

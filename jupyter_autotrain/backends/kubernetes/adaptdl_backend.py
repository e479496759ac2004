"""Trials as AdaptDLJobs: AdaptDL gives a trial more and fewer replicas while it runs.

Each time all its pods end and a new *group* of them begins, which goes on from the checkpoint on the trial's volume.
A new job gets one replica, or its least number, until the trial has told hints (`trial.hints`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.objects import pending_reasons, trial_reasons
from jupyter_autotrain.backends.kubernetes.objects.fields import items, number, part, text, value
from jupyter_autotrain.backends.kubernetes.objects.pod_parts import annotation_variable
from jupyter_autotrain.backends.kubernetes.objects.workload import (
    NodeVariables,
    ObjectType,
    Workload,
    WorkloadRequest,
    WorkloadState,
)
from jupyter_autotrain.backends.kubernetes.workloads.volumes import claim, is_kept, with_kept_folder
from jupyter_autotrain.errors import BackendError

if TYPE_CHECKING:
    from pydantic import BaseModel


_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - AdaptDL mounts a volume of its own there
_RANK_ANNOTATION = "adaptdl/rank"
_WITHOUT_NODES = "waits for AdaptDL to give it nodes: none has room now for a replica of it"
_ONCE_A_MINUTE = (
    "waits for AdaptDL to give it nodes: it looks once a minute at jobs that it may not preempt, and at once at those "
    "with `checkpoint:` or `preemptible: true`"
)


class AdaptDLJob(Workload):
    """A trial as an AdaptDLJob."""

    object_type = ObjectType("adaptdl.petuum.com", "v1", "adaptdljobs", "AdaptDLJob")
    node_variables = NodeVariables(
        rank="ADAPTDL_REPLICA_RANK", count="ADAPTDL_NUM_REPLICAS", run="ADAPTDL_NUM_RESTARTS", peers="adaptdl"
    )
    longest_name = 50  # host names are `<name>-<group>-<rank>`
    deletes_pods_at_once = True
    rescales = True

    def render(self, request: WorkloadRequest) -> Sequence[JsonObject]:
        """Return the AdaptDLJob, and the claim of its checkpoint volume where `checkpoint:` asks for one.

        Raises:
            BackendError: The options ask for what AdaptDL cannot give.
        """
        least, most = _replicas(request)
        template = _without_shared_memory(request.template)
        has_claim = request.options.get("checkpoint") is not None
        if is_kept(request.options):
            rank = annotation_variable(self.node_variables.rank, _RANK_ANNOTATION)
            template = with_kept_folder(template, request, f"node-$({self.node_variables.rank})", [rank])
        spec: JsonObject = {
            "minReplicas": least, "maxReplicas": most, "preemptible": _is_preemptible(request, least, most),
            "template": template,
        }  # fmt: skip
        job = self.manifest(request, spec)
        return [job, claim(request, is_shared=most > 1)] if has_claim else [job]

    def state(self, found: JsonObject, pods: Sequence[JsonObject]) -> WorkloadState:
        """Return the phase of the job; a trial that ran before goes on running while it is rescaled."""
        phase = text(found, "status", "phase")
        if phase == "Succeeded":
            return WorkloadState(TrialState.SUCCEEDED)
        if phase == "Failed":
            return _failed(found, pods)
        if _has_begun(found, phase):
            return WorkloadState(TrialState.RUNNING, "" if phase == "Running" else _rescaling(found))
        if not pods and phase and not value(found, "status", "allocation"):
            is_pinned = value(found, "spec", "preemptible") is False
            return WorkloadState(TrialState.PREPARING, _ONCE_A_MINUTE if is_pinned else _WITHOUT_NODES)
        return trial_reasons.preparing(pods, (), found, _without_pods(found))


def _has_begun(found: JsonObject, phase: str) -> bool:
    restarts = number(found, "status", "group", default=-1)
    return phase in {"Running", "Stopping"} or restarts > 0 or (phase == "Pending" and restarts == 0)


def _replicas(request: WorkloadRequest) -> tuple[int, int]:
    """Return the least and the greatest number of replicas."""
    most = number(request.options, "max_replicas") or request.nodes
    asked = value(request.options, "min_replicas")
    least = asked if isinstance(asked, int) else min(request.min_nodes, most)
    if least > most:
        raise BackendError(
            f"`min_replicas` {least} is more than `max_replicas` {most}.",
            "A trial has at most as many replicas as `max_replicas`, or `nodes:`, says.",
            f"Set `min_replicas: {most}` or less.",
        )
    return least, most


def _is_preemptible(request: WorkloadRequest, least: int, most: int) -> bool:
    """AdaptDL may end and restart it: where its checkpoints outlive a pod, or where that is asked for.

    It places such a job at once, and every other when it reconsiders all of them, once a minute. Then it may also end
    any that it may preempt: a trial whose checkpoints go with its pods would begin anew each time, so it waits instead.
    """
    can_go_on = is_kept(request.options)
    asked = request.options.get("preemptible")
    if not can_go_on and least != most:
        raise BackendError(
            "The trial may be rescaled, but nothing that it saves outlives its pods.",
            "An elastic trial of AdaptDL needs a volume: `storage:` or `checkpoint:` of the profile.",
            "Add `checkpoint: {size: 1GiB}` to the profile, or set `preemptible: false` and `min_replicas` "
            "to the number of nodes.",
        )
    return can_go_on if asked is None else bool(asked)


def _without_shared_memory(template: JsonObject) -> JsonObject:
    """AdaptDL mounts its own volume there, and two at one path are refused."""
    containers = []
    gone = set()
    for container in items(template, "spec", "containers"):
        mounts = items(container, "volumeMounts")
        gone |= {text(mount, "name") for mount in mounts if mount.get("mountPath") == _SHARED_MEMORY}
        kept = [mount for mount in mounts if mount.get("mountPath") != _SHARED_MEMORY]
        containers.append({**container, "volumeMounts": kept} if mounts else container)
    spec = {**part(template, "spec"), "containers": containers, "restartPolicy": "Never"}
    if gone:
        spec["volumes"] = [volume for volume in items(template, "spec", "volumes") if volume.get("name") not in gone]
    return {**template, "spec": spec}


def _rescaling(found: JsonObject) -> str:
    replicas = number(found, "status", "replicas")
    count = "1 replica" if replicas == 1 else f"{replicas or 'other'} replicas"
    if text(found, "status", "phase") == "Stopping":
        return "saves its checkpoint: AdaptDL gives it other replicas"
    return f"waits for AdaptDL to start it with {count}; it goes on from its checkpoint"


def _without_pods(found: JsonObject) -> str:
    if not text(found, "status", "phase"):
        return "waits for AdaptDL's scheduler"
    return "waits for AdaptDL to make its pods"


def _failed(found: JsonObject, pods: Sequence[JsonObject]) -> WorkloadState:
    message = text(found, "status", "message")
    if text(found, "status", "reason") == "PodCreationError":
        return WorkloadState(
            TrialState.FAILED, f"AdaptDL could not make its pods: {pending_reasons.server_message(message)}"
        )
    return trial_reasons.ended(pods) or WorkloadState(
        TrialState.FAILED, f"AdaptDL says it failed: {message or 'no reason'}"
    )


class AdaptdlBackend(KubernetesBackend):
    """Runs each trial as an AdaptDLJob."""

    operator_workload = AdaptDLJob()

    @staticmethod
    def options_model() -> type[BaseModel]:
        """Return those of Kubernetes, and replicas."""
        from jupyter_autotrain.backends.kubernetes.options.adaptdl_options import AdaptdlOptions  # noqa: PLC0415 - pydantic is slow

        return AdaptdlOptions

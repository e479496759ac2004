"""Carries out what `gangs` decides, for the trials on several nodes that a manager follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jupyter_autotrain.backends.kubernetes.access.api import MERGE_PATCH, KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.api_errors import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.following.cluster_view import ClusterView
from jupyter_autotrain.backends.kubernetes.following.ending_pods import EndingPods
from jupyter_autotrain.backends.kubernetes.following.keeping import Keeper
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.gangs import gang_gate
from jupyter_autotrain.backends.kubernetes.gangs.gang_gate import Action, Gang, GangGate, Step
from jupyter_autotrain.backends.kubernetes.manifests import suspension
from jupyter_autotrain.backends.kubernetes.objects.fields import text
from jupyter_autotrain.backends.kubernetes.objects.workload import WorkloadState
from jupyter_autotrain.core.states import TrialState


class GangKeeper(Keeper):
    """Looks after the trials on several nodes of one namespace.

    Args:
        api: The cluster.
        view: What there is of them in the cluster.
        jobs: Gives those that are followed.
        on_change: Called with one that has given up.
        gate: Decides.
    """

    subject = "trials on several nodes"
    look_again_s = 0.5

    def __init__(
        self, api: KubernetesApi, view: ClusterView, jobs: Callable[[], Sequence[TrackedJob]],
        on_change: Callable[[TrackedJob], None], gate: GangGate,
    ) -> None:  # fmt: skip
        super().__init__(api, view, jobs, on_change)
        self._gate = gate
        self._ending = EndingPods(api)
        self._given_up: list[TrackedJob] = []  # as long as they have pods

    async def _look(self) -> None:
        found: dict[str, tuple[TrackedJob, Gang]] = {}
        others = 0
        for job in self._jobs():
            gang = self._gang_of(job)
            if gang is not None and job.final is None and not job.given_up:
                found[gang.name] = (job, gang)
            elif gang is None and any(text(pod, "spec", "nodeName") for pod in self._view.pods_of(job)):
                others += 1
        self._given_up = [job for job in self._given_up if self._view.pods_of(job)]
        leaving = [job for job, gang in found.values() if gang.is_leaving and not job.has_begun_anywhere()]
        await self._ending.hasten(pod for job in (*leaving, *self._given_up) for pod in self._view.pods_of(job))
        for step in self._gate.decide([gang for _, gang in found.values()], others):
            await self._do(found[step.name][0], step)

    def _gang_of(self, job: TrackedJob) -> Gang | None:
        if job.nodes == 1:
            return None
        found = self._view.object_of(job)
        return None if found is None else gang_gate.gang_of(found, self._view.pods_of(job), job.start_timeout_s)

    async def _do(self, job: TrackedJob, step: Step) -> None:
        if step.action is Action.GIVE_UP:
            job.given_up = WorkloadState(TrialState.FAILED, step.reason)
            self._given_up.append(job)
            self._on_change(job)
            return
        kind = job.workload.object_type
        patch = suspension.suspend_patch(kind.kind, suspended=step.action is Action.SUSPEND)
        try:
            await self._api.arequest("PATCH", kind.path(job.namespace, job.name), patch, None, MERGE_PATCH)
        except ApiRefusedError as error:
            if error.reason != "NotFound":
                raise

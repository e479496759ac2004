"""Carries out what `gangs` decides, for the trials on several nodes that a manager follows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from jupyter_autotrain.backends.kubernetes import gangs
from jupyter_autotrain.backends.kubernetes.api import MERGE_PATCH, KubernetesApi
from jupyter_autotrain.backends.kubernetes.api_errors import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.cluster_view import ClusterView
from jupyter_autotrain.backends.kubernetes.gangs import Action, Gang, GangGate, Step
from jupyter_autotrain.backends.kubernetes.objects import text
from jupyter_autotrain.backends.kubernetes.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.workload import WorkloadState
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.errors import AutotrainError

_LOOK_AGAIN_S = 0.5
_log = logging.getLogger(__name__)


class GangKeeper:
    """Looks after the trials on several nodes of one namespace.

    Args:
        api: The cluster.
        view: What there is of them in the cluster.
        gate: Decides.
        jobs: Gives those that are followed.
        on_change: Called with one that has given up.
    """

    def __init__(
        self, api: KubernetesApi, view: ClusterView, gate: GangGate, jobs: Callable[[], Sequence[TrackedJob]],
        on_change: Callable[[TrackedJob], None],
    ) -> None:  # fmt: skip
        self._api = api
        self._view = view
        self._gate = gate
        self._jobs = jobs
        self._on_change = on_change
        self._is_running = False

    def begin(self) -> None:
        """Look after them from now on."""
        if not self._is_running:
            self._is_running = True
            self._api.loop.start(self._run())

    async def _run(self) -> None:
        while True:
            try:
                await self._look()
            except AutotrainError as error:  # the next look tries again
                _log.warning("trials on several nodes cannot be looked after: %s", error.found)
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def _look(self) -> None:
        found: dict[str, tuple[TrackedJob, Gang]] = {}
        others = 0
        for job in self._jobs():
            gang = self._gang_of(job)
            if gang is not None and job.final is None and not job.given_up:
                found[gang.name] = (job, gang)
            elif gang is None and any(text(pod, "spec", "nodeName") for pod in self._view.pods_of(job)):
                others += 1
        for step in self._gate.decide([gang for _, gang in found.values()], others):
            await self._do(found[step.name][0], step)

    def _gang_of(self, job: TrackedJob) -> Gang | None:
        if job.nodes == 1:
            return None
        found = self._view.object_of(job)
        return None if found is None else gangs.gang_of(found, self._view.pods_of(job))

    async def _do(self, job: TrackedJob, step: Step) -> None:
        if step.action is Action.GIVE_UP:
            job.given_up = WorkloadState(TrialState.FAILED, step.reason)
            self._on_change(job)
            return
        kind = job.workload.object_type
        patch = gangs.suspend_patch(kind.kind, suspended=step.action is Action.SUSPEND)
        try:
            await self._api.arequest("PATCH", kind.path(job.namespace, job.name), patch, None, MERGE_PATCH)
        except ApiRefusedError as error:
            if error.reason != "NotFound":
                raise

"""Looks after pilots: makes those that are missing, gives each the next trial, and says why some do not run."""

from __future__ import annotations

import base64
import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from typing import cast

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.agent.pool import rules
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.access import exec_command
from jupyter_autotrain.backends.kubernetes.access.api import MERGE_PATCH, KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.following.cluster_view import ClusterView
from jupyter_autotrain.backends.kubernetes.following.keeping import Keeper, never_started
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.objects import naming, pod_parts, trial_reasons
from jupyter_autotrain.backends.kubernetes.objects.fields import condition, items, text
from jupyter_autotrain.backends.kubernetes.objects.workload import CONFIG_MAPS, JOBS, PODS, Obstacle, WorkloadState
from jupyter_autotrain.backends.kubernetes.workloads import plain_job
from jupyter_autotrain.errors import AutotrainError


class PilotFaults:
    """The faults of the pilots of one namespace.

    Args:
        view: The objects in it.
    """

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._failed: dict[str, dict[str, WorkloadState]] = {}  # by pool and pilot, since one of it has taken a trial
        self._counted: set[str] = set()

    def of_pool(self, pool: str, pilots: Sequence[JsonObject]) -> WorkloadState | None:
        """Return how trials end whose pilots fail again and again; None where others may run them.

        Args:
            pool: Which.
            pilots: All Jobs of its pilots that are there.
        """
        here = self._failed.setdefault(pool, {})
        for pilot in pilots:
            ended = trial_reasons.ended(self._pods(pilot)) if condition(pilot, "Failed") else None
            uid = naming.uid_of(pilot)
            if ended is not None and ended.state is TrialState.FAILED and uid not in self._counted:
                here.setdefault(uid, ended)
        told = rules.fatal_end(list(here.values()))
        if told is not None:
            self.forget(pool)
        return told

    def forget(self, pool: str) -> None:
        """Forget those that have failed: one of the pool's pilots runs."""
        self._counted.update(self._failed.pop(pool, {}))

    def waiting(self, pilots: Sequence[JsonObject]) -> WorkloadState | None:
        """Return how pilots wait none of which has started; None where that is not known."""
        for pilot in pilots:
            pods = self._pods(pilot)
            events = self._view.events_about(naming.name_of(pilot), pods)
            told = trial_reasons.preparing(pods, events, pilot)
            if told.reason:
                return told
        return None

    def _pods(self, pilot: JsonObject) -> list[JsonObject]:
        return [pod for pod in self._view.pods.all() if pilot_of(pod, "uid") == naming.uid_of(pilot)]


def pilot_of(pod: JsonObject, name: str) -> str:
    """Return the name or the uid of the pilot that a pod is of."""
    owners = items(pod, "metadata", "ownerReferences")
    return text(owners[0], name) if owners else ""


_log = logging.getLogger(__name__)


class PilotKeeper(Keeper):
    """The pilots of a home in one namespace.

    Args:
        api: The cluster.
        view: What there is in it.
        jobs: Gives the trials that are followed.
        on_change: Called with one that is lost.
        home: The identity of the home.
    """

    subject = "long-running pods"
    look_again_s = 0.2

    def __init__(
        self, api: KubernetesApi, view: ClusterView, jobs: Callable[[], Sequence[TrackedJob]],
        on_change: Callable[[TrackedJob], None], home: str,
    ) -> None:  # fmt: skip
        super().__init__(api, view, jobs, on_change)
        self._home = home
        self._faults = PilotFaults(view)

    async def _look(self) -> None:
        if not self._view.knows(JOBS):  # else a trial whose pod is not listed yet would be taken for one without
            return
        waiting: dict[str, list[TrackedJob]] = {}
        for job in self._jobs():
            found = self._view.object_of(job)
            if job.final is not None or found is None or not plain_job.pool_of(found):
                continue
            pods = self._view.pods_of(job)
            if not pods and job.may_be_given:
                waiting.setdefault(plain_job.pool_of(found), []).append(job)
            else:
                await self._look_at(job, pods)
        await self._take_back()
        for pool, jobs in waiting.items():
            await self._share_out(pool, sorted(jobs, key=self._made))

    async def _look_at(self, job: TrackedJob, pods: Sequence[JsonObject]) -> None:
        """Look at a trial that a pilot was to run."""
        if not pods:
            if not job.is_finishing and not job.has_ended():
                self._give_up(job, WorkloadState(TrialState.LOST, "The long-running pod that ran it was deleted."))
        elif job.may_be_given and not any(map(pod_parts.is_alive, pods)):
            if _has_ended_before(job):
                await self._give_back(pods[0])
        elif job.taken_by != naming.uid_of(pods[0]):
            await self._give_again(job, pods[0])

    def _made(self, job: TrackedJob) -> tuple[str, str]:
        found = self._view.object_of(job) or {}
        return text(found, "metadata", "creationTimestamp"), job.label

    async def _share_out(self, pool: str, jobs: Sequence[TrackedJob]) -> None:
        """Give free pilots the trials that wait, the oldest first, and make pilots that are missing."""
        made = [one for one in self._view.objects(JOBS).all() if naming.label(one, plain_job.POOL) == pool]
        if told := self._faults.of_pool(pool, made):
            for job in jobs:
                self._give_up(job, told)
            return
        free = [pod for pod in self._view.pods.all() if self._is_free(pod, pool)]
        for job, pod in zip(jobs, free, strict=False):
            await self._assign(job, pod)
        await self._make_missing(jobs, list(filter(_is_living, made)), len(free))

    async def _make_missing(self, jobs: Sequence[TrackedJob], pilots: Sequence[JsonObject], free: int) -> None:
        """Make pilots that are missing; delete those that cannot start, with which the trials are given up.

        Args:
            jobs: The trials of a pool that wait.
            pilots: Its pilots that have not ended.
            free: How many of them have a pod that runs no trial.
        """
        idle = [one for one in pilots if not self._has_started(one)]
        waiting = self._faults.waiting(idle) if len(idle) == len(pilots) else None
        if self._given_up(jobs, waiting) == len(jobs):
            await self._delete(idle)
            return
        there = [job for job in jobs if self._view.object_of(job) is not None]
        most = max((plain_job.most_pilots(self._view.object_of(job) or {}) for job in there), default=0)
        for _ in range(rules.missing_pilots(len(there), free + len(idle), len(pilots), most)):
            await self._make_pilot(there[0])

    async def _take_back(self) -> None:
        """Have the pods of trials that are gone be those of their pilots again."""
        for pod in self._view.pods.all():
            label = naming.job_label(pod)
            is_own = label == pilot_of(pod, "name") or not naming.label(pod, plain_job.POOL)
            if not is_own and not self._view.objects(JOBS).of_job(label):
                await self._give_back(pod)

    async def _give_back(self, pod: JsonObject) -> None:
        """Have a pod be that of its pilot again."""
        labels: JsonObject = {naming.LABEL_JOB: pilot_of(pod, "name"), naming.LABEL_EXPERIMENT: None}
        path = PODS.path(self._view.namespace, naming.name_of(pod))
        await self._api.arequest("PATCH", path, {"metadata": {"labels": labels}}, None, MERGE_PATCH)

    def _given_up(self, jobs: Sequence[TrackedJob], waiting: WorkloadState | None) -> int:
        """Give up trials whose pilots cannot start, or have not in their time; return how many.

        Args:
            jobs: The trials of a pool that wait.
            waiting: How all of its pilots wait; None where that is not known, or one has started.
        """
        for job in jobs:
            job.waits_for = waiting.reason if waiting else ""
        if waiting is None or waiting.obstacle is Obstacle.NONE:
            self._since_s = {job: since_s for job, since_s in self._since_s.items() if job not in jobs}
            return 0
        over = [job for job in jobs if self._is_over(job, waiting)]
        for job in over:
            self._since_s.pop(job, None)
            self._give_up(job, never_started(job, waiting))
        return len(over)

    def _is_over(self, job: TrackedJob, waiting: WorkloadState) -> bool:
        """Return whether a trial whose pilots are kept from starting waits no longer."""
        now_s = time.monotonic()
        held_s = now_s - self._since_s.setdefault(job, now_s)
        return waiting.obstacle is Obstacle.LASTING or held_s >= job.start_timeout_s

    def _give_up(self, job: TrackedJob, told: WorkloadState) -> None:
        job.given_up = told
        self._on_change(job)

    async def _delete(self, pilots: Sequence[JsonObject]) -> None:
        """Delete pilots that cannot start, with their pods; the next trial of their pool makes another."""
        for pilot in pilots:
            path = JOBS.path(self._view.namespace, naming.name_of(pilot))
            with contextlib.suppress(ApiRefusedError):  # it is gone, or stays until it has ended
                await self._api.arequest("DELETE", path, {"propagationPolicy": "Background"})

    def _is_free(self, pod: JsonObject, pool: str) -> bool:
        if naming.label(pod, plain_job.POOL) != pool or pod_parts.container_state(pod) != "running":
            return False
        if text(pod, "metadata", "deletionTimestamp"):
            return False
        label = naming.job_label(pod)
        runs_trial = any(map(plain_job.pool_of, self._view.objects(JOBS).of_job(label)))
        return not runs_trial and all(job.taken_by != naming.uid_of(pod) for job in self._jobs())

    def _has_started(self, found: JsonObject) -> bool:
        """Return whether the pod of a pilot is there and runs."""
        owned = [pod for pod in self._view.pods.all() if pilot_of(pod, "uid") == naming.uid_of(found)]
        return any(pod_parts.container_state(pod) == "running" for pod in owned)

    async def _make_pilot(self, job: TrackedJob) -> None:
        whole = await self._api.arequest("GET", JOBS.path(job.namespace, job.name))
        made = plain_job.pilot(whole, f"autotrain-pilot-{secrets.token_hex(5)}", self._home)
        self._view.objects(JOBS).insert(await self._api.arequest("POST", JOBS.path(job.namespace), made))

    async def _assign(self, job: TrackedJob, pod: JsonObject) -> None:
        """Have the pod be that of the trial, first for all who look, then for itself."""
        labels = cast("JsonObject", naming.labels_of(job.ref.job_id, self._home))
        path = PODS.path(job.namespace, naming.name_of(pod))
        await self._api.arequest("PATCH", path, {"metadata": {"labels": labels}}, None, MERGE_PATCH)
        await self._give(job, pod)

    async def _give_again(self, job: TrackedJob, pod: JsonObject) -> None:
        """Give a trial again to the pod that was to have it; where it does not take it, the other trials go on."""
        try:
            await self._give(job, pod)
        except AutotrainError as error:  # the next look tries again
            _log.warning("%s cannot be given to its pod: %s", job.ref.job_id, error.found)

    async def _give(self, job: TrackedJob, pod: JsonObject) -> None:
        """Send a trial to its pod; one that it has already is the same."""
        if pod_parts.container_state(pod) != "running":
            return
        payload = await self._payload(job)
        at = self._view.address(job, pod)
        await exec_command.request(self._api, at, "run", job=job.ref.job_id, files=payload)
        job.taken_by = naming.uid_of(pod)
        job.waits_for = ""
        self._faults.forget(naming.label(pod, plain_job.POOL))

    async def _payload(self, job: TrackedJob) -> dict[str, str]:
        """Return the files of a trial, each in base64."""
        whole = await self._api.arequest("GET", JOBS.path(job.namespace, job.name))
        files: dict[str, str] = {}
        for file, name in plain_job.config_maps(whole).items():
            found = await self._api.arequest("GET", CONFIG_MAPS.path(job.namespace, name))
            files[file] = text(found, "binaryData", file)
        trial = plain_job.trial_text(whole)
        if trial:
            files[places.TRIAL_FILE] = base64.b64encode(trial.encode()).decode()
        return files


def _has_ended_before(job: TrackedJob) -> bool:
    """Return whether the pod of a trial has ended, as all of its log says, before the trial began."""
    return not job.has_begun_anywhere() and all(follower.is_done() for follower in job.followers.values())


def _is_living(pilot: JsonObject) -> bool:
    """Return whether a pilot has not ended."""
    if text(pilot, "metadata", "deletionTimestamp"):
        return False
    return not condition(pilot, "Complete") and not condition(pilot, "Failed")

"""Looks after pilots: makes those that are missing, and gives each the next trial of its pool."""

from __future__ import annotations

import base64
import json
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import cast

from jupyter_autotrain.backends.kubernetes.access import exec_command
from jupyter_autotrain.backends.kubernetes.access.api import MERGE_PATCH, KubernetesApi
from jupyter_autotrain.backends.kubernetes.following.cluster_view import ClusterView
from jupyter_autotrain.backends.kubernetes.following.keeping import Keeper
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.objects import naming, pod_view
from jupyter_autotrain.backends.kubernetes.objects.fields import condition, text
from jupyter_autotrain.backends.kubernetes.objects.object_types import CONFIG_MAPS, JOBS, PODS
from jupyter_autotrain.backends.kubernetes.objects.workload import WorkloadState
from jupyter_autotrain.backends.kubernetes.pool import pooling
from jupyter_autotrain.backends.kubernetes.pool.pilot_faults import PilotFaults, pilot_of
from jupyter_autotrain.backends.kubernetes_pod import places
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.errors import AutotrainError, BackendError

_PIECE_BYTES = 32_000
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
            if job.final is not None or found is None or not pooling.pool_of(found):
                continue
            pods = self._view.pods_of(job)
            if not pods and job.may_be_given:
                waiting.setdefault(pooling.pool_of(found), []).append(job)
            else:
                await self._look_at(job, pods)
        await self._take_back()
        for pool, jobs in waiting.items():
            await self._share_out(pool, sorted(jobs, key=self._made))

    async def _look_at(self, job: TrackedJob, pods: Sequence[JsonObject]) -> None:
        """A trial that a pilot was to run."""
        if pods and job.may_be_given and not any(pod_view.is_alive(pod) for pod in pods):
            if all(follower.is_done() for follower in job.followers.values()) and not job.has_begun_anywhere():
                await self._give_back(pods[0])
        elif pods and job.taken_by != naming.uid_of(pods[0]):
            await self._give_again(job, pods[0])
        elif not pods and not job.is_finishing and not job.has_ended():
            job.given_up = WorkloadState(TrialState.LOST, "The long-running pod that ran it was deleted.")
            self._on_change(job)

    def _made(self, job: TrackedJob) -> tuple[str, str]:
        found = self._view.object_of(job) or {}
        return text(found, "metadata", "creationTimestamp"), job.label

    async def _share_out(self, pool: str, jobs: Sequence[TrackedJob]) -> None:
        """Give free pilots the trials that wait, the oldest first, and make pilots that are missing."""
        made = [one for one in self._view.objects(JOBS).all() if naming.label(one, pooling.POOL) == pool]
        if told := self._faults.of_pool(pool, made):
            self._give_up(jobs, told)
            return
        free = [pod for pod in self._view.pods.all() if self._is_free(pod, pool)]
        for job, pod in zip(jobs, free, strict=False):
            await self._assign(job, pod)
        left = len(jobs) - len(free)
        pilots = [one for one in made if _is_living(one)]
        idle = [one for one in pilots if not self._has_started(one)]
        for job in jobs:
            job.waits_for = self._faults.waits_for(idle) if len(idle) == len(pilots) else ""
        first = self._view.object_of(jobs[0])
        if first is not None and left > len(idle) and len(pilots) < pooling.most_pilots(first):
            await self._make_pilot(jobs[0])

    async def _take_back(self) -> None:
        """Have the pods of trials that are gone be those of their pilots again."""
        for pod in self._view.pods.all():
            label = naming.job_label(pod)
            is_own = label == pilot_of(pod, "name") or not naming.label(pod, pooling.POOL)
            if not is_own and not self._view.objects(JOBS).of_job(label):
                await self._give_back(pod)

    async def _give_back(self, pod: JsonObject) -> None:
        """Have a pod be that of its pilot again."""
        labels: JsonObject = {naming.LABEL_JOB: pilot_of(pod, "name"), naming.LABEL_EXPERIMENT: None}
        path = PODS.path(self._view.namespace, naming.name_of(pod))
        await self._api.arequest("PATCH", path, {"metadata": {"labels": labels}}, None, MERGE_PATCH)

    def _give_up(self, jobs: Sequence[TrackedJob], told: WorkloadState) -> None:
        for job in jobs:
            job.given_up = told
            self._on_change(job)

    def _is_free(self, pod: JsonObject, pool: str) -> bool:
        if naming.label(pod, pooling.POOL) != pool or pod_view.container_state(pod) != "running":
            return False
        if text(pod, "metadata", "deletionTimestamp"):
            return False
        label = naming.job_label(pod)
        runs_trial = any(pooling.pool_of(found) for found in self._view.objects(JOBS).of_job(label))
        return not runs_trial and all(job.taken_by != naming.uid_of(pod) for job in self._jobs())

    def _has_started(self, found: JsonObject) -> bool:
        """Whether the pod of a pilot is there and runs."""
        owned = [pod for pod in self._view.pods.all() if pilot_of(pod, "uid") == naming.uid_of(found)]
        return any(pod_view.container_state(pod) == "running" for pod in owned)

    async def _make_pilot(self, job: TrackedJob) -> None:
        whole = await self._api.arequest("GET", JOBS.path(job.namespace, job.name))
        made = pooling.pilot(whole, f"autotrain-pilot-{secrets.token_hex(5)}", self._home)
        self._view.objects(JOBS).insert(await self._api.arequest("POST", JOBS.path(job.namespace), made))

    async def _assign(self, job: TrackedJob, pod: JsonObject) -> None:
        """Have the pod be that of the trial, first for all who look, then for itself."""
        labels = cast("JsonObject", naming.labels_of(job.ref.job_id, self._home))
        path = PODS.path(job.namespace, naming.name_of(pod))
        await self._api.arequest("PATCH", path, {"metadata": {"labels": labels}}, None, MERGE_PATCH)
        await self._give(job, pod)

    async def _give_again(self, job: TrackedJob, pod: JsonObject) -> None:
        """As `_give`, to a pod that was to have the trial; where it does not take it, the other trials go on."""
        try:
            await self._give(job, pod)
        except AutotrainError as error:  # the next look tries again
            _log.warning("%s cannot be given to its pod: %s", job.ref.job_id, error.found)

    async def _give(self, job: TrackedJob, pod: JsonObject) -> None:
        """Send a trial to its pod; one that it has already is the same."""
        if pod_view.container_state(pod) != "running":
            return
        data = await self._payload(job)
        at = self._view.address(job, pod)
        command = [at.python, "-I", "-S", places.START_REQUEST, "run", job.ref.job_id, str(len(data))]
        done = await exec_command.run(self._api, at, command, _pieces(data))
        if done.exit_code:
            raise BackendError(f"Pod {at.pod} does not take a trial: {done.stderr.decode(errors='replace')[-500:]}.")
        job.taken_by = naming.uid_of(pod)
        job.waits_for = ""
        self._faults.forget(naming.label(pod, pooling.POOL))

    async def _payload(self, job: TrackedJob) -> bytes:
        whole = await self._api.arequest("GET", JOBS.path(job.namespace, job.name))
        files: dict[str, str] = {}
        for file, name in pooling.config_maps(whole).items():
            found = await self._api.arequest("GET", CONFIG_MAPS.path(job.namespace, name))
            files[file] = text(found, "binaryData", file)
        trial = pooling.trial_text(whole)
        if trial:
            files[places.TRIAL_FILE] = base64.b64encode(trial.encode()).decode()
        return json.dumps(files).encode()


def _pieces(data: bytes) -> Iterator[bytes]:
    for begin in range(0, len(data), _PIECE_BYTES):
        yield data[begin : begin + _PIECE_BYTES]


def _is_living(pilot: JsonObject) -> bool:
    """Whether a pilot has not ended."""
    if text(pilot, "metadata", "deletionTimestamp"):
        return False
    return not condition(pilot, "Complete") and not condition(pilot, "Failed")

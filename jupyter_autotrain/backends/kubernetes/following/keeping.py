"""The regular looks of a manager at trials that it follows; here, at those that cannot start."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.following.cluster_view import ClusterView
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.objects import pod_parts, trial_reasons
from jupyter_autotrain.backends.kubernetes.objects.workload import Obstacle, WorkloadState
from jupyter_autotrain.errors import AutotrainError

_log = logging.getLogger(__name__)


class Keeper(ABC):
    """Looks at trials every now and then, once it has begun.

    Args:
        api: The cluster.
        view: What there is of them in the cluster.
        jobs: Gives those that are followed.
        on_change: Called with one that it gives up.
    """

    subject = "trials"
    look_again_s = 1.0

    def __init__(
        self, api: KubernetesApi, view: ClusterView, jobs: Callable[[], Sequence[TrackedJob]],
        on_change: Callable[[TrackedJob], None],
    ) -> None:  # fmt: skip
        self._api = api
        self._view = view
        self._jobs = jobs
        self._on_change = on_change
        self._is_running = False
        self._since_s: dict[TrackedJob, float] = {}  # since when something keeps each from starting

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
                _log.warning("%s cannot be looked after: %s", self.subject, error.found)
            except Exception:  # noqa: BLE001 - one of them that cannot be dealt with must not end it for the others
                _log.exception("%s cannot be looked after", self.subject)
            await asyncio.sleep(self.look_again_s)

    @abstractmethod
    async def _look(self) -> None:
        """Do what is to be done now."""


def state_before_start(
    job: TrackedJob, view: ClusterView, told_now: Sequence[JsonObject] | None = None
) -> WorkloadState | None:
    """Return how the cluster has a trial of which nothing has come yet; None where it has no object of it.

    Args:
        job: The trial.
        view: What there is of it in the cluster.
        told_now: What the cluster warns of, where it was just asked; None: as it was asked last.
    """
    found = view.object_of(job)
    if found is None:
        return None
    pods = view.pods_of(job)
    told = job.workload.state(found, pods)
    waits = told.state is TrialState.PREPARING or any(pod_parts.phase(pod) in {"", "Pending"} for pod in pods)
    if told.state.is_final or not waits:
        return told
    events = view.events_of(job) if told_now is None else told_now
    if not events and told.state is TrialState.PREPARING:
        return told
    with_events = trial_reasons.preparing(pods, events, found)
    return with_events if with_events.reason else told


def never_started(job: TrackedJob, state: WorkloadState) -> WorkloadState:
    """Return how a trial ends that cannot start, or has not in its time.

    Args:
        job: The trial.
        state: How it waits.
    """
    limit = f"It did not start within {job.start_timeout_s:g} s (`start_timeout`)"
    begin = "It cannot start" if state.obstacle is Obstacle.LASTING else limit
    return WorkloadState(TrialState.FAILED, f"{begin}: it {state.reason}.")


class StartKeeper(Keeper):
    """Ends trials of one namespace that cannot start.

    A trial that waits for its turn, or for room that others use, may wait for ever. What else keeps it from starting is
    given the time of `start_timeout`, in which somebody may mend it. What is forgotten with a restart only costs time.
    """

    subject = "trials that have not started"

    async def _look(self) -> None:
        held = {job: state for job in self._jobs() if (state := self._held(job)) is not None}
        now_s = time.monotonic()
        self._since_s = {job: self._since_s.get(job, now_s) for job in held}
        for job, state in held.items():
            if state.obstacle is Obstacle.LASTING:
                self._end(job, state)
            elif now_s - self._since_s[job] >= job.start_timeout_s:
                await self._end_in_time(job)

    async def _end_in_time(self, job: TrackedJob) -> None:
        """End a trial whose time is over, by what the cluster says now."""
        state = state_before_start(job, self._view, await self._view.read_events_of(job))
        if state is not None and state.obstacle is not Obstacle.NONE:
            self._end(job, state)

    def _held(self, job: TrackedJob) -> WorkloadState | None:
        """Return how a trial waits that something keeps from starting; None where nothing does, as far as is known."""
        is_ending = job.final is not None or job.is_finishing or job.is_cancelled or job.given_up is not None
        if is_ending or job.has_begun_anywhere() or not self._view.is_listed(job):
            return None
        state = state_before_start(job, self._view)
        return state if state is not None and state.obstacle is not Obstacle.NONE else None

    def _end(self, job: TrackedJob, state: WorkloadState) -> None:
        job.given_up = never_started(job, state)
        self._on_change(job)

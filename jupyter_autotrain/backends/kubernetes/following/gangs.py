"""Trials on several nodes that start on all of them or on none, in clusters without a queue that sees to it.

Such a trial is made suspended. One at a time is resumed; while some of its pods find no node, those that have one hold
it for nothing: after a while it is suspended again, so that what waits for the same nodes can have them. It gives up
when that went on for as long as the profile allows and no trial of this home runs by whose end it could fit.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.access.api import MERGE_PATCH, KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.following.cluster_view import ClusterView
from jupyter_autotrain.backends.kubernetes.following.deleting import EndingPods
from jupyter_autotrain.backends.kubernetes.following.keeping import Keeper
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.objects import pending_reasons
from jupyter_autotrain.backends.kubernetes.objects.fields import text
from jupyter_autotrain.backends.kubernetes.objects.workload import START_TIMEOUT_S, WorkloadState

_HOLD_S = 30.0  # how long pods may hold nodes while others of their trial find none
_TRIES = 10  # at least, before a trial gives up


class Action(StrEnum):
    """A change of a trial's object."""

    RESUME = "resume"
    SUSPEND = "suspend"
    GIVE_UP = "give up"


@dataclass(frozen=True, slots=True)
class Gang:
    """A trial on several nodes.

    Attributes:
        name: Of its object.
        made: When it was made, in a form that sorts.
        nodes: With how many pods it starts.
        placed: How many of them have a node.
        is_suspended: Whether it has no pods, and is not to have any.
        stuck: What the scheduler says about a pod that finds no node; "" while there is none.
        is_leaving: Whether pods of an earlier try are still being ended, so that they hold nodes.
        timeout_s: How long it may try in all while nothing else of its home runs.
    """

    name: str
    made: str
    nodes: int
    placed: int
    is_suspended: bool
    stuck: str = ""
    is_leaving: bool = False
    timeout_s: float = START_TIMEOUT_S

    @property
    def hold_s(self) -> float:
        """Return how long its pods may hold nodes while others of it find none."""
        return min(_HOLD_S, self.timeout_s / _TRIES)

    @property
    def is_starting(self) -> bool:
        """Return whether it may have pods and has not all of them on nodes."""
        return not self.is_suspended and self.placed < self.nodes


@dataclass(frozen=True, slots=True)
class Step:
    """A change of the object with this name, and its reason."""

    name: str
    action: Action
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Times:
    """The times of one gang.

    Attributes:
        since_s: When this try began; None between tries.
        looked_s: When it was looked at last.
        tried_s: For how long it found too few nodes, in all tries, while nothing else of its home ran.
        not_before_s: When the next try may begin.
    """

    since_s: float | None = None
    looked_s: float = 0.0
    tried_s: float = 0.0
    not_before_s: float = 0.0


class GangGate:
    """Decides which trials on several nodes may start. What it forgets with a restart only costs time.

    Args:
        clock: Gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: dict[str, _Times] = {}
        self._running = 0

    def decide(self, gangs: Sequence[Gang], others_running: int = 0) -> list[Step]:
        """Return what is to be done now. O(n log n).

        Args:
            gangs: All of this home that have not ended.
            others_running: How many other trials of this home have a node.
        """
        now_s = self._clock()
        in_order = sorted(gangs, key=lambda gang: (gang.made, gang.name))
        holding = [gang for gang in gangs if gang.is_leaving or not (gang.is_suspended or gang.is_starting)]
        running = others_running + len(holding)
        self._keep_times({gang.name for gang in gangs}, running, now_s)
        starting = [gang for gang in in_order if gang.is_starting]
        steps = [self._judge(gang, now_s, running, gang is not starting[0]) for gang in starting]
        following = self._next(in_order, now_s) if all(steps) else []
        return [*filter(None, steps), *following]

    def _keep_times(self, known: Collection[str], running: int, now_s: float) -> None:
        """Forget the times of gangs that are gone; where nodes have come free, let the next tries begin."""
        kept = {name: times for name, times in self._times.items() if name in known}
        if running < self._running:
            kept = {name: replace(times, not_before_s=now_s) for name, times in kept.items()}
        self._times = kept
        self._running = running

    def _judge(self, gang: Gang, now_s: float, running: int, is_second: bool) -> Step | None:
        """Return whether a trial that is starting has to end that."""
        times = self._times.get(gang.name, _Times())
        since_s = now_s if times.since_s is None else times.since_s
        before_s = now_s if times.since_s is None else times.looked_s
        tried_s = times.tried_s + (now_s - before_s if gang.stuck and not running else 0.0)
        self._times[gang.name] = _Times(since_s, now_s, tried_s, times.not_before_s)
        if not gang.stuck:
            return None
        if tried_s > gang.timeout_s:
            return Step(gang.name, Action.GIVE_UP, self._message(gang))
        if gang.placed and (is_second or now_s - since_s > gang.hold_s * _spread(gang.name, now_s)):
            pause_s = gang.hold_s * _spread(gang.name[::-1], now_s)
            self._times[gang.name] = _Times(None, now_s, tried_s, now_s + pause_s)
            return Step(gang.name, Action.SUSPEND, gang.stuck)
        return None

    def _next(self, in_order: Sequence[Gang], now_s: float) -> list[Step]:
        """Return the oldest that waits and may try now."""
        for gang in in_order:
            if gang.is_suspended and not gang.is_leaving and self._times.get(gang.name, _Times()).not_before_s <= now_s:
                return [Step(gang.name, Action.RESUME)]
        return []

    def _message(self, gang: Gang) -> str:
        return (
            f"The cluster did not give it {gang.nodes} nodes at the same time within {gang.timeout_s:g} s: "
            f"{gang.placed} of its pods had one, another {gang.stuck}. All of them are free again. "
            "Ask for fewer (`resources: {nodes: N}`), raise `start_timeout`, or name a `queue`."
        )


def _spread(name: str, now_s: float) -> float:
    """Return a factor from 1 to 2, another for each trial: two of them do not give way to each other for ever."""
    return 1.0 + zlib.crc32(f"{name}{now_s // 60}".encode()) / 2**32


def gang_of(found: JsonObject, pods: Sequence[JsonObject], timeout_s: float = START_TIMEOUT_S) -> Gang | None:
    """Return the gang of an object of the cluster; None where it is none of those that are made suspended.

    Args:
        found: The object.
        pods: Its pods.
        timeout_s: How long it may try.
    """
    nodes = text(found, "metadata", "annotations", pending_reasons.GANG)
    if not nodes.isdigit():
        return None
    living = [pod for pod in pods if not text(pod, "metadata", "deletionTimestamp")]
    placed = sum(1 for pod in living if text(pod, "spec", "nodeName"))
    stuck = list(filter(None, map(pending_reasons.unscheduled, living)))
    return Gang(
        text(found, "metadata", "name"), text(found, "metadata", "creationTimestamp"), int(nodes), placed,
        pending_reasons.is_suspended(found), stuck[0] if stuck else "", len(living) < len(pods), timeout_s,
    )  # fmt: skip


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
            if gang is None:
                others += self._has_node(job)
            elif job.final is None and not job.given_up:
                found[gang.name] = (job, gang)
        await self._hasten([job for job, gang in found.values() if gang.is_leaving])
        for step in self._gate.decide([gang for _, gang in found.values()], others):
            await self._do(found[step.name][0], step)

    async def _hasten(self, leaving: Sequence[TrackedJob]) -> None:
        """Hasten the end of the pods of gangs that leave without having begun, and of those that were given up."""
        self._given_up = list(filter(self._view.pods_of, self._given_up))
        unbegun = [job for job in leaving if not job.has_begun_anywhere()]
        await self._ending.hasten(chain.from_iterable(map(self._view.pods_of, (*unbegun, *self._given_up))))

    def _has_node(self, job: TrackedJob) -> bool:
        return any(text(pod, "spec", "nodeName") for pod in self._view.pods_of(job))

    def _gang_of(self, job: TrackedJob) -> Gang | None:
        if job.nodes == 1:
            return None
        found = self._view.object_of(job)
        return None if found is None else gang_of(found, self._view.pods_of(job), job.start_timeout_s)

    async def _do(self, job: TrackedJob, step: Step) -> None:
        if step.action is Action.GIVE_UP:
            job.given_up = WorkloadState(TrialState.FAILED, step.reason)
            self._given_up.append(job)
            self._on_change(job)
            return
        kind = job.workload.object_type
        patch: JsonObject = {"spec": {"suspend": step.action is Action.SUSPEND}}
        try:
            await self._api.arequest("PATCH", kind.path(job.namespace, job.name), patch, None, MERGE_PATCH)
        except ApiRefusedError as error:
            if error.reason != "NotFound":
                raise

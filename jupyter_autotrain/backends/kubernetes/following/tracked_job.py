"""One trial as this process knows it: its objects, what is collected of it, and who follows its pods."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.trial import termination_causes
from jupyter_autotrain.agent.trial.status import Status
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi, selectors
from jupyter_autotrain.backends.kubernetes.following.log_following import LogFollower
from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.objects.workload import (
    OWN_TYPES,
    START_TIMEOUT_S,
    ObjectType,
    Workload,
    WorkloadState,
)
from jupyter_autotrain.backends.log_channel.collected import CollectedTrial
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.errors import AutotrainError


@dataclass(slots=True, eq=False)
class TrackedJob:
    """One trial.

    Attributes:
        ref: The job.
        workload: The kind of its object.
        collected: What has come back of it.
        followers: Who follows its pods, by their uids.
        final: How it ended, once that is settled and everything is collected.
        is_finishing: Whether that is being settled.
        is_cancelled: Whether a cancel has asked for its end.
        given_up: How and why it is ended from here; None while it is not.
        disruption: What the cluster did last to a pod of it; None where nothing.
        taken_by: The uid of the long-running pod that has taken it; "" before.
        waits_for: What the long-running pods wait for that are to run it; "" where it waits for its turn.
        over_since_s: The tick at which it was first seen to be over, while the cluster had not told why.
        fault: Why what it has left cannot be fetched at the moment.
    """

    ref: JobRef
    workload: Workload
    collected: CollectedTrial
    followers: dict[str, LogFollower] = field(default_factory=dict)
    final: Status | None = None
    is_finishing: bool = False
    is_cancelled: bool = False
    given_up: WorkloadState | None = None
    disruption: WorkloadState | None = None
    fault: str = ""
    taken_by: str = ""
    waits_for: str = ""
    over_since_s: float = 0.0

    @property
    def label(self) -> str:
        """The value of the label of its objects."""
        return naming.label_value(self.ref.job_id)

    @property
    def name(self) -> str:
        """The name of its object."""
        return str(self.ref.data.get("name") or "")

    @property
    def namespace(self) -> str:
        """The namespace of its objects."""
        return str(self.ref.data.get("namespace") or "default")

    @property
    def nodes(self) -> int:
        """Return how many nodes it has."""
        return cast("int", self.ref.data.get("nodes") or 1)

    @property
    def is_pooled(self) -> bool:
        """Return whether a long-running pod runs it, among others."""
        return bool(self.ref.data.get("pooled"))

    @property
    def is_elastic(self) -> bool:
        """Return whether its first node alone says how it stands."""
        return bool(self.ref.data.get("elastic")) or bool(self.workload.node_variables.count)

    @property
    def owned_kinds(self) -> Sequence[str]:
        """The kinds of what was made with its object, and is deleted with it."""
        return cast("Sequence[str]", self.ref.data.get("owns") or ())

    @property
    def start_timeout_s(self) -> float:
        """Return how long something may keep it from starting."""
        return float(cast("float", self.ref.data.get("start_timeout_s", START_TIMEOUT_S)))

    @property
    def fetch_limit_bytes(self) -> int:
        """Return how much is fetched of what it has left."""
        return cast("int", self.ref.data.get("fetch_limit_bytes") or 0)

    def has_begun(self) -> bool:
        """Return whether all its nodes have begun: a pod that is made after that would begin from nothing."""
        return all(node.status() is not None for node in self.collected.nodes)

    def has_begun_anywhere(self) -> bool:
        """Return whether one of its nodes has begun."""
        return any(node.status() is not None for node in self.collected.nodes)

    @property
    def may_be_given(self) -> bool:
        """Return whether no long-running pod has taken it, so that any may."""
        return self.is_pooled and not self.taken_by and not self.has_begun_anywhere()

    def ended_from_outside(self) -> bool:
        """Return whether somebody else ended one of its nodes, or the kernel a process, and it does not know why."""
        counted = self.collected.nodes[:1] if self.is_elastic else self.collected.nodes
        return any(was_ended_from_outside(node.status() or {}) for node in counted)

    def has_ended(self) -> bool:
        """Return whether all that its pods have said has come."""
        if self.workload.node_variables.count and not all(follower.is_done() for follower in self.followers.values()):
            return False
        return self.collected.nodes[0].has_ended() if self.is_elastic else self.collected.has_ended()


def was_ended_from_outside(status: Mapping[str, object]) -> bool:
    """Return whether a supervisor was told to end, or its rank was killed, and it does not know why."""
    if status.get("state") == str(TrialState.PREEMPTED):
        return True
    is_killed = status.get("state") == str(TrialState.FAILED) and status.get("signal") == signal.SIGKILL
    return is_killed and not str(status.get("reason")).startswith(termination_causes.OUT_OF_MEMORY)


_WITHIN_S = 20.0  # the cluster deletes them in the background, soon after their owner
_LOOK_AGAIN_S = 0.1


class OwnedObjects:
    """The objects of the trials of a home in one namespace.

    Args:
        api: The cluster.
        namespace: The namespace.
        home: The identity of the home.
    """

    def __init__(self, api: KubernetesApi, namespace: str, home: str) -> None:
        self._api = api
        self._namespace = namespace
        self._home = home

    async def until_gone(self, job: TrackedJob) -> str:
        """Wait until they are gone, with their owner; gives what is not known to be, "" when all is."""
        wanted = [one for one in OWN_TYPES if one.kind in job.owned_kinds]
        end_s = time.monotonic() + _WITHIN_S
        told = [await self._of_kind(one, job, end_s) for one in wanted]
        return "; ".join(filter(None, told))

    async def _of_kind(self, object_type: ObjectType, job: TrackedJob, end_s: float) -> str:
        query = selectors(naming.selector_of_jobs([job.ref.job_id], self._home))
        try:
            while (await self._api.alist(object_type.path(self._namespace), query))[0]:
                if time.monotonic() > end_s:
                    return f"its {object_type.plural} are being deleted"
                await asyncio.sleep(_LOOK_AGAIN_S)
        except AutotrainError as error:
            return f"whether its {object_type.plural} are gone is not known: {error.found.rstrip('.')}"
        return ""

"""The end of a trial: when it is over, what is still to be fetched from its pods, and which state it is in then."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import cast

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.trial import status as statuses
from jupyter_autotrain.agent.trial import termination_causes
from jupyter_autotrain.agent.trial.status import Status
from jupyter_autotrain.backends import agent_answers
from jupyter_autotrain.backends.kubernetes.access import exec_command
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.following.cluster_view import ClusterView
from jupyter_autotrain.backends.kubernetes.following.deleting import ObjectDeleter
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob, was_ended_from_outside
from jupyter_autotrain.backends.kubernetes.objects import naming, pod_parts, trial_reasons
from jupyter_autotrain.backends.kubernetes.objects.workload import WorkloadState
from jupyter_autotrain.backends.log_channel.collected import CollectedNode
from jupyter_autotrain.backends.log_channel.judging import NOBODY
from jupyter_autotrain.core.backend import JobRef, JobStatus

_LAST_LINES = 3
_SETTLE_S = 2.0
_EXPLAIN_S = 5.0  # how long the cluster may take to say why it told a trial to end
_LINGERS_S = 0.5  # a pod that still runs so long after all has come of it waits for its deletion
_BY_OTHERS = frozenset({TrialState.PREEMPTED, TrialState.LOST})


class JobFinisher:
    """Settles the ends of trials.

    Args:
        api: The cluster.
        view: What there is of them in the cluster.
        deleter: Deletes what is collected.
    """

    def __init__(self, api: KubernetesApi, view: ClusterView, deleter: ObjectDeleter) -> None:
        self._api = api
        self._view = view
        self._deleter = deleter

    def is_over(self, job: TrackedJob) -> bool:
        """Return whether nothing more will come of a job."""
        if job.given_up or job.has_ended():
            return not self._may_be_explained(job)
        if any(not follower.is_done() for follower in job.followers.values()):
            return False
        if not self._view.is_listed(job) or self._goes_to_another_pod(job):
            return False
        if self._goes_on(job):
            job.over_since_s = 0.0
            return False
        return self._has_settled(job)

    def _goes_on(self, job: TrackedJob) -> bool:
        """Return whether pods of a trial run, or have written what nobody has read yet."""
        started = list(filter(pod_parts.has_started, self._view.pods_of(job)))
        if any(naming.uid_of(pod) not in job.followers for pod in started) or self._view.running_pods(job):
            return True
        return not self._state(job).state.is_final

    def _may_be_explained(self, job: TrackedJob) -> bool:
        """Return whether the cluster may yet say why it ended a trial: some reasons come when the pod has ended."""
        if job.given_up or job.is_cancelled or not job.ended_from_outside() or self._from_outside(job) is not None:
            return False
        has_told = self._state(job).state.is_final and not any(map(pod_parts.is_alive, self._view.pods_of(job)))
        return not has_told and not self._has_waited(job, _EXPLAIN_S)

    @staticmethod
    def _has_waited(job: TrackedJob, most_s: float) -> bool:
        now_s = time.monotonic()
        job.over_since_s = job.over_since_s or now_s
        return now_s - job.over_since_s >= most_s

    def _from_outside(self, job: TrackedJob) -> WorkloadState | None:
        """Return what was done to a trial from outside, as far as the cluster tells."""
        if known := self._out_of_memory(job) or self._taken(job):
            return known
        pods = self._view.pods_of(job)
        if not self._view.is_listed(job):
            return None
        state = self._state(job)
        found = self._view.object_of(job)
        if found is not None and _is_by_others(state):
            return state
        # Some controllers delete pods themselves, to give the trial others.
        is_by_others = found is None or not job.workload.rescales
        kind = job.workload.object_type.kind
        return trial_reasons.deleted_by_others(pods, kind, found) if is_by_others else None

    def _goes_to_another_pod(self, job: TrackedJob) -> bool:
        """Return whether the long-running pod that was to run it has ended without it."""
        return job.may_be_given and self._view.object_of(job) is not None

    def _has_settled(self, job: TrackedJob) -> bool:
        """Return whether the pods have told their ends, too: they come over another watch than that of the object."""
        pods = self._view.pods_of(job)
        if pods and all(pod_parts.phase(pod) in {"Succeeded", "Failed"} for pod in pods):
            return True
        return self._has_waited(job, _SETTLE_S)

    def _state(self, job: TrackedJob) -> WorkloadState:
        """Return what the cluster says of a job."""
        if not self._view.is_listed(job):
            return WorkloadState(TrialState.PREPARING, "is not known of at the moment")
        found = self._view.object_of(job)
        if found is None:
            text = f"Lost: its {job.workload.object_type.kind} {job.name} was deleted from the cluster."
            return WorkloadState(TrialState.LOST, text)
        return job.workload.state(found, self._view.pods_of(job))

    async def finish(self, job: TrackedJob) -> None:
        """Fetch what is left in the pods, write how the trial ended, and have its objects deleted.

        Raises:
            OSError: The home cannot be written.
        """
        for pod in self._view.running_pods(job):
            follower = job.followers.get(naming.uid_of(pod))
            node = None if follower is None else follower.node
            if node is not None:
                await self._fetch_left(job, pod, node)
        status = self._final_status(job)
        job.collected.close(status)
        job.final = status
        self._deleter.delete_soon(job.workload.object_type, job.ref.job_id)
        asyncio.get_running_loop().call_later(_LINGERS_S, self._free_nodes, job)

    def _free_nodes(self, job: TrackedJob) -> None:
        """Delete pods that wait to be collected at once: they keep their places on nodes."""
        if self._view.running_pods(job):
            self._deleter.delete_at_once()

    async def _fetch_left(self, job: TrackedJob, pod: JsonObject, node: CollectedNode) -> None:
        """Fetch the files that were too much for the log: small ones first, up to the limit of the trial."""
        room_bytes = job.fetch_limit_bytes
        for path, have, size in sorted(node.missing(), key=lambda one: one[2]):
            room_bytes -= size
            if room_bytes < 0:
                return
            at = self._view.address(job, pod)
            offset = max(have, 0)
            while offset < size:
                data = await exec_command.read(self._api, at, path, offset, min(offset + (4 << 20), size))
                if not data:
                    break
                node.append(path, offset, data)
                offset += len(data)

    def _final_status(self, job: TrackedJob) -> Status:
        """Return how a trial ended: as its supervisors say, else as the cluster does."""
        if job.given_up:
            return {
                "state": str(job.given_up.state), "reason": job.given_up.reason, "ended_s": time.time(), "groups": [],
                "supervisor": list(NOBODY),
            }  # fmt: skip
        found = self._told_status(job)
        if job.is_cancelled and TrialState(str(found["state"])) not in {TrialState.SUCCEEDED, TrialState.EARLY_STOPPED}:
            found = {**found, "state": str(TrialState.CANCELLED), "reason": "Cancelled on request."}
        return {**found, "supervisor": found.get("supervisor") or list(NOBODY)}

    def _told_status(self, job: TrackedJob) -> Status:
        """Return how a trial ended by itself: as its supervisors say, else as the cluster does."""
        own = _with_lost_nodes([self._node_status(job, number) for number in range(len(job.collected.nodes))])
        counted = own[:1] if job.is_elastic else own
        are_final = all(status.state.is_final for status in counted)
        if are_final and (job.has_ended() or not job.workload.rescales):  # else other pods may follow those that ended
            ended = own[0] if len(counted) == 1 else agent_answers.ended(job.ref, own, lambda _: 0.0)
            return {**ended.detail, **self._explained(job, ended)}
        return self._status_without_end(job, own[0].detail or {"supervisor": list(NOBODY)})

    def _status_without_end(self, job: TrackedJob, first: JsonObject) -> Status:
        """Return how a trial ended whose supervisors have not told, with what its first node told last."""
        state = self._taken(job) or self._state(job)
        without_end = TrialState.FAILED if state.state is TrialState.SUCCEEDED else state.state
        reason = (state.reason or "It has written no end.") + self._printed(job) + _limits(first)
        return {**first, "state": str(without_end), "reason": reason, "ended_s": time.time(), "groups": []}

    def _out_of_memory(self, job: TrackedJob) -> WorkloadState | None:
        told = trial_reasons.out_of_memory(self._view.pods_of(job))
        return WorkloadState(TrialState.FAILED, told) if told else None

    def _taken(self, job: TrackedJob) -> WorkloadState | None:
        """Return what the cluster did to a pod."""
        return trial_reasons.from_outside(self._view.pods_of(job)) or job.disruption

    def _explained(self, job: TrackedJob, ended: JobStatus) -> Status:
        """State and reason of the end of a trial: those of the cluster where it says more than the trial can know."""
        state = self._why(job, ended)
        if state is None:
            return {"state": str(ended.state), "reason": ended.reason}
        limits = _limits(ended.detail) if state.state is TrialState.FAILED else ""
        return {"state": str(state.state), "reason": state.reason + limits}

    def _why(self, job: TrackedJob, ended: JobStatus) -> WorkloadState | None:
        """Return why a trial was ended from outside; None where it ended by itself, or nobody says why."""
        if ended.state in _BY_OTHERS:
            return self._from_outside(job)
        if ended.state is not TrialState.FAILED:
            return None
        if was_ended_from_outside({**ended.detail, "state": str(ended.state)}):  # a rank was killed
            return self._out_of_memory(job) or self._taken(job)
        needs_all = job.nodes > 1 and not job.is_elastic
        return self._taken(job) if needs_all else None  # without one node the others fail

    @staticmethod
    def _node_status(job: TrackedJob, number: int) -> JobStatus:
        ref = JobRef(job.ref.backend, job.ref.job_id, {"host": f"node {number}"})
        found = job.collected.nodes[number].status()
        if found is None:
            return JobStatus(ref, TrialState.PREPARING)
        return JobStatus(ref, TrialState(str(found["state"])), statuses.reason(found), cast("JsonObject", found))

    @staticmethod
    def _printed(job: TrackedJob) -> str:
        """Return the last that its pods have printed themselves."""
        lines: list[str] = []
        for follower in job.followers.values():
            lines += [line.strip() for line in follower.printed if line.strip()]
        return f" Its pod printed last: {' / '.join(lines[-_LAST_LINES:])}" if lines else ""


def _with_lost_nodes(own: list[JobStatus]) -> list[JobStatus]:
    """Take another node as lost where the first has ended for its sake: that one could not say its end."""
    if not own[0].reason.startswith(termination_causes.ENDED_BECAUSE):
        return own
    lost = "Its pod was deleted, or its node was lost."
    return [status if status.state.is_final else replace(status, state=TrialState.LOST, reason=lost) for status in own]


def _is_by_others(state: WorkloadState) -> bool:
    """Return whether an object says that somebody else, or the time, has ended a trial."""
    is_told = state.state in {*_BY_OTHERS, TrialState.CANCELLED} or state.reason.startswith(trial_reasons.TIMED_OUT)
    return is_told and bool(state.reason)


def _limits(status: JsonObject) -> str:
    """Return what the supervisor has said of the trial's limits, where it knows any."""
    limits = status.get("limits")
    return f" Limits: {limits}." if limits else ""

"""Who looks after long-running pods: one of them that does not answer holds up no other."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.following.cluster_view import ClusterView
from jupyter_autotrain.backends.kubernetes.following.finishing import JobFinisher
from jupyter_autotrain.backends.kubernetes.following.pilot_keeping import PilotKeeper
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.workloads import plain_job
from jupyter_autotrain.backends.kubernetes.workloads.plain_job import PooledJobWorkload
from jupyter_autotrain.backends.log_channel.collected import CollectedTrial
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.errors import BackendUnavailableError

POD: JsonObject = {
    "metadata": {"name": "pilot", "namespace": "lab", "uid": "u"},
    "spec": {"containers": [{"name": "trial"}]},
    "status": {"phase": "Running", "containerStatuses": [{"name": "trial", "state": {"running": {}}}]},
}


class LostNode:
    """An API server that remembers for which trials it was asked, and whose pods do not answer."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def arequest(self, _verb: str, path: str, *_more: Any) -> JsonObject:
        self.asked.append(path.rpartition("/")[2])
        raise BackendUnavailableError("the node does not answer")


def job(folder: Path, number: int) -> TrackedJob:
    ref = JobRef("lab", f"e-{number}-1", {"name": f"job-{number}", "namespace": "lab", "pooled": True})
    return TrackedJob(ref, PooledJobWorkload(), CollectedTrial(folder / str(number)))


def keeper_of(api: LostNode, jobs: list[TrackedJob], found: list[JsonObject], **view: Any) -> PilotKeeper:
    """Return a keeper of trials of pool `p`, all of whose pods are these."""
    given = {
        "object_of": lambda _: {"metadata": {"annotations": {plain_job.POOL: "p"}}},
        "pods_of": lambda _: found,
        "pods": SimpleNamespace(all=lambda: found),
        "objects": lambda _: SimpleNamespace(all=list, of_job=lambda _: []),
        "knows": lambda _: True,
        "namespace": "lab",
        **view,
    }
    seen = cast("ClusterView", SimpleNamespace(**given))
    return PilotKeeper(cast("KubernetesApi", api), seen, lambda: jobs, lambda _: None, "home")


def test_a_pod_that_does_not_take_its_trial_holds_up_no_other(tmp_path: Path) -> None:
    jobs = [job(tmp_path, number) for number in (1, 2)]
    api = LostNode()
    asyncio.run(keeper_of(api, jobs, [POD], pods=SimpleNamespace(all=list))._look())
    assert api.asked == ["job-1", "job-2"]


def test_a_trial_that_began_before_its_pods_are_listed_is_not_lost(tmp_path: Path) -> None:
    """As after a restart of the manager, when the list of Jobs has come and that of pods has not."""
    running = job(tmp_path, 1)
    running.collected.nodes[0].append(places.STATES, 0, b'{"state": "RUNNING", "reason": ""}\n')
    asyncio.run(keeper_of(LostNode(), [running], [], knows=lambda _: False)._look())
    assert running.given_up is None


def ended(code: int) -> JsonObject:
    status = {"name": "trial", "state": {"terminated": {"exitCode": code, "reason": "Error"}}}
    return {**POD, "status": {"phase": "Failed" if code else "Succeeded", "containerStatuses": [status]}}


def test_a_trial_whose_pod_ended_before_it_took_it_waits_for_another(tmp_path: Path) -> None:
    waiting = job(tmp_path, 1)
    api = LostNode()
    keeper = keeper_of(api, [waiting], [ended(0)])
    with pytest.raises(BackendUnavailableError):
        asyncio.run(keeper._look())
    assert api.asked == ["pilot"]  # its labels
    assert waiting.given_up is None
    finisher = JobFinisher(api, keeper._view, None)  # type: ignore[arg-type] # as far as it is used
    keeper._view.is_listed = lambda _: True  # type: ignore[method-assign] # as above
    assert not finisher.is_over(waiting)


def test_a_trial_that_its_pod_has_taken_is_not_given_to_another(tmp_path: Path) -> None:
    taken = job(tmp_path, 1)
    taken.taken_by = "u"
    api = LostNode()
    asyncio.run(keeper_of(api, [taken], [ended(1)], pods=SimpleNamespace(all=list))._look())
    assert api.asked == []


def pilots(count: int) -> tuple[list[JsonObject], list[JsonObject]]:
    """Jobs of pilots that have failed, and their pods."""
    labels = {plain_job.POOL: "p", "jupyter-autotrain/job": "pilot"}
    failed = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}
    jobs = []
    pods = []
    for number in range(count):
        jobs.append({"metadata": {"name": "pilot", "uid": f"j{number}", "labels": labels}, "status": failed})
        owners = [{"name": "pilot", "uid": f"j{number}"}]
        own = {"name": f"pod{number}", "uid": f"p{number}", "labels": labels, "ownerReferences": owners}
        pods.append({**ended(127), "metadata": own})
    return cast("list[JsonObject]", jobs), cast("list[JsonObject]", pods)


@pytest.mark.parametrize(("count", "is_given_up"), [(2, False), (3, True)])
def test_trials_whose_pods_fail_again_and_again_are_given_up_with_the_reason(
    tmp_path: Path, count: int, is_given_up: bool
) -> None:
    waiting = job(tmp_path, 1)
    made, pods = pilots(count)
    objects = SimpleNamespace(all=lambda: made, of_job=lambda _: made)
    keeper = keeper_of(
        LostNode(), [waiting], pods, pods_of=lambda _: [], objects=lambda _: objects, events_about=lambda *_: []
    )
    with contextlib.suppress(BackendUnavailableError):
        asyncio.run(keeper._look())
    assert bool(waiting.given_up) is is_given_up
    if waiting.given_up is not None:
        assert waiting.given_up.state is TrialState.FAILED
        assert "its command was not found in the image" in waiting.given_up.reason


def test_what_its_pods_wait_for_is_what_a_trial_waits_for(tmp_path: Path) -> None:
    waiting = job(tmp_path, 1)
    (made,), (pod,) = pilots(1)
    made = {**made, "status": {}}
    stuck = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes: no GPU"}
    pod = {**pod, "status": {"phase": "Pending", "conditions": [stuck]}}
    objects = SimpleNamespace(all=lambda: [made], of_job=lambda _: [made])
    keeper = keeper_of(
        LostNode(), [waiting], [pod], pods_of=lambda _: [], objects=lambda _: objects, events_about=lambda *_: []
    )
    asyncio.run(keeper._look())
    assert "no GPU" in waiting.waits_for

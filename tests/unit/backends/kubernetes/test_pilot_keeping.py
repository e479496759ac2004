"""Who looks after long-running pods: one of them that does not answer holds up no other."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.following.cluster_view import ClusterView
from jupyter_autotrain.backends.kubernetes.following.collected import CollectedTrial
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.pool import pooling
from jupyter_autotrain.backends.kubernetes.pool.pilot_keeping import PilotKeeper
from jupyter_autotrain.backends.kubernetes.pool.pooled_job import PooledJobWorkload
from jupyter_autotrain.backends.kubernetes_pod import places
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.json import JsonObject
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


def test_a_pod_that_does_not_take_its_trial_holds_up_no_other(tmp_path: Path) -> None:
    jobs = [job(tmp_path, number) for number in (1, 2)]
    api = LostNode()
    view = SimpleNamespace(
        object_of=lambda _: {"metadata": {"annotations": {pooling.POOL: "p"}}},
        pods_of=lambda _: [POD],
        pods=SimpleNamespace(all=list),
        knows=lambda _: True,
    )
    keeper = PilotKeeper(cast("KubernetesApi", api), cast("ClusterView", view), lambda: jobs, lambda _: None, "home")
    asyncio.run(keeper._look())
    assert api.asked == ["job-1", "job-2"]


def test_a_trial_that_began_before_its_pods_are_listed_is_not_lost(tmp_path: Path) -> None:
    """As after a restart of the manager, when the list of Jobs has come and that of pods has not."""
    running = job(tmp_path, 1)
    running.collected.nodes[0].append(places.STATES, 0, b'{"state": "RUNNING", "reason": ""}\n')
    view = SimpleNamespace(
        object_of=lambda _: {"metadata": {"annotations": {pooling.POOL: "p"}}},
        pods_of=lambda _: [],
        pods=SimpleNamespace(all=list),
        knows=lambda _: False,
    )
    api = cast("KubernetesApi", LostNode())
    keeper = PilotKeeper(api, cast("ClusterView", view), lambda: [running], lambda _: None, "home")
    asyncio.run(keeper._look())
    assert running.given_up is None

"""Pods of a suspended gang: they end soon while their trial has not begun, and have their grace once it has."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.following.cluster_view import ClusterView
from jupyter_autotrain.backends.kubernetes.following.gangs import GangGate, GangKeeper
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.objects.pending_reasons import GANG
from jupyter_autotrain.backends.kubernetes.workloads.plain_job import JobWorkload
from jupyter_autotrain.backends.log_channel.collected import CollectedTrial
from jupyter_autotrain.core.backend import JobRef

SUSPENDED: JsonObject = {"metadata": {"name": "job", "annotations": {GANG: "2"}}, "spec": {"suspend": True}}


class Requests:
    """An API server that only remembers what it is asked."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    async def arequest(self, *request: Any) -> JsonObject:
        self.seen.append(request)
        return {}


def pod(name: str, *, is_deleted: bool) -> JsonObject:
    metadata = {"name": name, "namespace": "lab", "uid": f"uid-{name}"}
    deleted = {"deletionTimestamp": "now"} if is_deleted else {}
    status = {"phase": "Running", "containerStatuses": [{"name": "trial", "state": {"running": {}}}]}
    return {"metadata": {**metadata, **deleted}, "spec": {"containers": [{"name": "trial"}]}, "status": status}


@pytest.fixture
def job(tmp_path: Path) -> TrackedJob:
    ref = JobRef("lab", "e-1-1", {"name": "job", "namespace": "lab", "nodes": 2})
    return TrackedJob(ref, JobWorkload(), CollectedTrial(tmp_path, 2))


def look_twice(job: TrackedJob) -> list[tuple[Any, ...]]:
    """Return what a keeper asks of the cluster for a gang of which one pod is being deleted."""
    api = Requests()
    pods = [pod("leaves", is_deleted=True), pod("stays", is_deleted=False)]
    view = SimpleNamespace(object_of=lambda _: SUSPENDED, pods_of=lambda _: pods)
    keeper = GangKeeper(
        cast("KubernetesApi", api), cast("ClusterView", view), lambda: [job], lambda _: None, GangGate()
    )

    async def look() -> None:
        await keeper._look()
        await keeper._look()

    asyncio.run(look())
    return api.seen


def test_a_pod_whose_trial_has_not_begun_is_hastened_once(job: TrackedJob) -> None:
    ((verb, path, options),) = look_twice(job)
    assert (verb, path) == ("DELETE", "/api/v1/namespaces/lab/pods/leaves")
    assert options["gracePeriodSeconds"] == 1
    assert options["preconditions"] == {"uid": "uid-leaves"}


def test_a_trial_that_has_begun_keeps_its_grace(job: TrackedJob) -> None:
    job.collected.nodes[1].append(places.STATES, 0, b'{"state": "RUNNING", "reason": ""}\n')
    assert look_twice(job) == []

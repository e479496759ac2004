"""Tests of how a trial has ended: by itself, as its supervisors say, or from outside, as the cluster says."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.following.cluster_view import ClusterView
from jupyter_autotrain.backends.kubernetes.following.deleting import ObjectDeleter
from jupyter_autotrain.backends.kubernetes.following.finishing import JobFinisher
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.objects.workload import WorkloadState
from jupyter_autotrain.backends.kubernetes.workloads.plain_job import JobWorkload
from jupyter_autotrain.backends.log_channel.collected import CollectedTrial
from jupyter_autotrain.core.backend import JobRef
from tests.unit.backends.kubernetes.pods import disruption, ended_container, pod

SIGTERM = "The machine or its scheduler ended the trial (the supervisor got SIGTERM)."
OBJECT: dict[str, Any] = {"spec": {}}
EVICTED = WorkloadState(TrialState.PREEMPTED, "Evicted: n1 was drained, or somebody evicted the pod.")
WELL = {"state": "SUCCEEDED", "reason": ""}
RAISED = {"state": "FAILED", "reason": "ValueError: no", "signal": None, "failed_s": 1.0}
KILLED = {"state": "FAILED", "reason": "Killed by signal 9 (SIGKILL).", "signal": 9, "failed_s": 1.0}
TOLD = {"state": "PREEMPTED", "reason": SIGTERM, "signal": None, "ended_s": 2.0}


def deleted(**status: Any) -> dict[str, Any]:
    found = pod("Running", node="n1", **status)
    found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return found


def end(folder: Path, *statuses: dict[str, Any], pods: Any = (), found: Any = OBJECT, **job: Any) -> tuple[str, str]:
    """Return the state and the reason of a trial whose nodes have these statuses, with these pods and this object."""
    collected = CollectedTrial(folder, len(statuses))
    for node, status in zip(collected.nodes, statuses, strict=True):
        node.folder.mkdir(parents=True)
        (node.folder / "states").write_text(json.dumps({"supervisor": [1, 0.0, ""], "ended_s": 1.0, **status}) + "\n")
        (node.folder / "files.json").write_text('{"sizes": {}, "left": []}\n')
    tracked = TrackedJob(JobRef("lab", "e-1-1", {"nodes": len(statuses)}), JobWorkload(), collected, **job)
    view = SimpleNamespace(
        pods_of=lambda _: list(pods), object_of=lambda _: found, is_listed=lambda _: True, running_pods=lambda _: []
    )
    deleter = SimpleNamespace(delete_soon=lambda *_: None)
    finisher = JobFinisher(cast("KubernetesApi", None), cast("ClusterView", view), cast("ObjectDeleter", deleter))
    asyncio.run(finisher.finish(tracked))
    assert tracked.final is not None
    return str(tracked.final["state"]), str(tracked.final["reason"])


@pytest.mark.parametrize(
    ("pods", "found", "expected"),
    [
        ([pod("Running", node="n1", conditions=disruption("EvictionByEvictionAPI"))], {"spec": {}}, EVICTED.reason),
        ([deleted()], {"spec": {}}, "A pod of the trial was deleted by somebody else"),
        ([], None, "Somebody deleted its Job from the cluster."),
        ([deleted()], {"spec": {"suspend": True}}, "Preempted: its Job was suspended, as a queue does"),
        ([pod("Running", node="n1")], {"spec": {}}, SIGTERM),
    ],
)
def test_the_cluster_says_who_told_a_supervisor_to_end(tmp_path: Path, pods: Any, found: Any, expected: str) -> None:
    state, reason = end(tmp_path, TOLD, pods=pods, found=found)
    assert state == "PREEMPTED"
    assert reason.startswith(expected)


def test_what_was_done_to_a_pod_that_is_gone_was_noted(tmp_path: Path) -> None:
    assert end(tmp_path, TOLD, disruption=EVICTED) == ("PREEMPTED", EVICTED.reason)


def test_a_time_limit_of_the_cluster_fails_a_trial(tmp_path: Path) -> None:
    state, reason = end(tmp_path, TOLD, pods=[pod("Failed", node="n1", reason="DeadlineExceeded")])
    assert (state, reason[:8]) == ("FAILED", "Timeout:")


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_trial_that_ended_well_did_so_whatever_happened_to_its_pods(tmp_path: Path, nodes: int) -> None:
    assert end(tmp_path, *[WELL] * nodes, pods=[deleted()], disruption=EVICTED) == ("SUCCEEDED", "")


def test_a_trial_that_failed_by_itself_did_so_although_its_job_told_the_other_node_to_end(tmp_path: Path) -> None:
    failed = pod("Failed", node="n1", containers=[ended_container(1)])
    state, reason = end(tmp_path, RAISED, TOLD, pods=[failed, deleted()])
    assert (state, "ValueError: no" in reason) == ("FAILED", True)


def test_a_node_that_the_cluster_took_is_why_the_others_failed(tmp_path: Path) -> None:
    assert end(tmp_path, RAISED, TOLD, disruption=EVICTED) == ("PREEMPTED", EVICTED.reason)


def test_a_rank_that_was_killed_is_out_of_memory_where_its_container_was(tmp_path: Path) -> None:
    killed = pod("Failed", containers=[ended_container(1, "OOMKilled")])
    assert end(tmp_path, KILLED, pods=[killed])[1].startswith(
        "Out of memory: the trial used more than its limit of 4Gi."
    )
    assert end(tmp_path / "other", KILLED, pods=[deleted()]) == ("FAILED", KILLED["reason"])

"""A cancel is graceful as far as that can be had, and says what it has not seen."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.agent.trial.cancel_receipt import CancelReceipt
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.exec_command import PodAddress
from jupyter_autotrain.backends.kubernetes.following.cancelling import Canceller
from jupyter_autotrain.backends.kubernetes.following.job_tracking import JobTracker
from jupyter_autotrain.backends.kubernetes.following.tracked_job import OwnedObjects, TrackedJob
from jupyter_autotrain.backends.kubernetes.workloads.plain_job import JobWorkload
from jupyter_autotrain.backends.log_channel.collected import CollectedTrial
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.errors import BackendUnavailableError

POD: JsonObject = {
    "metadata": {"name": "pod", "namespace": "lab", "uid": "u", "deletionTimestamp": "now"},
    "spec": {"containers": [{"name": "trial"}]},
    "status": {"phase": "Running", "containerStatuses": [{"name": "trial", "state": {"running": {}}}]},
}


class Cluster:
    """A namespace with one pod, in which no command can be run; it is gone after some looks."""

    def __init__(self, looks: int = 5) -> None:
        self.looks = looks
        self.asked: list[str] = []
        self.listed: list[str] = []
        self.services = 2
        self.loop = SimpleNamespace(call=asyncio.run)

    def websocket(self, *_: Any) -> Any:
        raise BackendUnavailableError("the link is dead")

    async def arequest(self, verb: str, path: str, *_: Any) -> JsonObject:
        self.asked.append(f"{verb} {path.rpartition('/')[2]}")
        return {}

    async def alist(self, path: str, _query: Mapping[str, str]) -> tuple[list[JsonObject], str]:
        plural = path.rpartition("/")[2]
        self.listed.append(plural)
        if plural == "secrets":
            raise BackendUnavailableError("it does not answer.")
        self.services -= 1
        return [{}] * self.services, "1"

    def pods(self, _job: TrackedJob) -> list[JsonObject]:
        self.looks -= 1
        return [POD] if self.looks > 0 else []


async def nothing(*_: Any) -> None:
    pass


def cancel(cluster: Cluster, folder: Path, **data: Any) -> CancelReceipt:
    job = TrackedJob(JobRef("lab", "e-1-1", {"name": "e", **data}), JobWorkload(), CollectedTrial(folder))
    job.collected.nodes[0].append(places.STATES, 0, b'{"state": "RUNNING", "reason": ""}\n')
    view = SimpleNamespace(
        wait_until_listed=lambda _: "", object_of=lambda _: None, pods_of=cluster.pods,
        running_pods=lambda _: [POD], address=lambda *_: PodAddress("lab", "pod", "trial", "python3"),
    )  # fmt: skip
    api = cast("KubernetesApi", cluster)
    deleter = SimpleNamespace(delete=nothing)
    owned = OwnedObjects(api, "lab", "home")
    tracker = SimpleNamespace(api=api, view=view, deleter=deleter, owned=owned)
    return Canceller(cast("JobTracker", tracker)).cancel(job, 1.0)


def test_a_trial_that_could_not_be_asked_keeps_the_grace_of_its_pod(tmp_path: Path) -> None:
    cluster = Cluster()
    cancel(cluster, tmp_path)
    assert cluster.asked == []  # else the pod would be killed after a second


def test_a_trial_in_a_long_running_pod_that_could_not_be_asked_is_not_cancelled(tmp_path: Path) -> None:
    """That pod is not deleted, so that nothing would end the trial."""
    with pytest.raises(BackendUnavailableError, match="the link is dead"):
        cancel(Cluster(), tmp_path, pooled=True)


def test_a_receipt_comes_when_all_that_the_trial_owned_is_gone_or_says_of_what_that_is_not_known(
    tmp_path: Path,
) -> None:
    cluster = Cluster()
    receipt = cancel(cluster, tmp_path, owns=["Secret", "Service"])
    assert cluster.listed.count("services") == 2
    assert receipt.note == "whether its secrets are gone is not known: it does not answer"

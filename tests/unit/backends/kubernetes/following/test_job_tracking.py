"""Which trials of a cluster are followed."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.following.job_tracking import JobTracker
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.workloads.plain_job import JobWorkload
from jupyter_autotrain.backends.log_channel.collected import CollectedTrial
from jupyter_autotrain.core.backend import JobRef


class Begun:
    """A loop that only counts what is begun in it."""

    def __init__(self) -> None:
        self.count = 0

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        work.close()
        self.count += 1


@pytest.fixture
def loop() -> Begun:
    return Begun()


@pytest.fixture
def tracker(loop: Begun) -> JobTracker:
    async def own_code() -> None:
        pass

    api = cast("KubernetesApi", SimpleNamespace(loop=loop))
    return JobTracker(api, "default", "home", lambda _job_id: None, own_code)


def job_in(folder: Path) -> TrackedJob:
    ref = JobRef("cluster", "e1-1-1", {"name": "e1-1-1", "namespace": "default"})
    return TrackedJob(ref, JobWorkload(), CollectedTrial(folder, 1))


def test_a_job_that_is_followed_already_begins_nothing_however_often_it_is_asked_for(tracker, loop, tmp_path):
    job = job_in(tmp_path)
    assert all(tracker.track(job) is job for _ in range(5))
    assert loop.count == 1


def test_the_job_that_is_followed_is_given_for_another_view_of_it(tracker, loop, tmp_path):
    first = tracker.track(job_in(tmp_path))
    assert tracker.track(job_in(tmp_path)) is first
    assert loop.count == 1

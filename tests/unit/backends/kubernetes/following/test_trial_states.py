"""Tests of how a trial stands, as far as that is known."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.following.job_tracking import JobTracker, status_of
from jupyter_autotrain.backends.kubernetes.following.log_following import LogFollower
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.backends.kubernetes.workloads.plain_job import JobWorkload
from jupyter_autotrain.backends.log_channel.collected import CollectedTrial
from jupyter_autotrain.core.backend import JobRef


@pytest.mark.parametrize("is_done", [False, True])
def test_a_log_that_cannot_be_read_is_told_as_long_as_it_is_wanted(tmp_path: Path, is_done: bool) -> None:
    """An earlier pod of a trial that goes on in others may be gone, and its log with it."""
    job = TrackedJob(JobRef("lab", "e-1-1", {"name": "e"}), JobWorkload(), CollectedTrial(tmp_path))
    job.collected.nodes[0].append(places.STATES, 0, b'{"state": "RUNNING", "reason": ""}\n')
    fault = "The cluster refuses: dial tcp 10.0.0.7:10250: no route to host (502 )."
    job.followers["u"] = cast("LogFollower", SimpleNamespace(fault=fault, is_done=lambda: is_done))
    view = SimpleNamespace(wait_until_listed=lambda _: "", fault=lambda _: "")
    status = status_of(job, job.ref, cast("JobTracker", SimpleNamespace(view=view)))
    assert ("no route to host" in status.doubt) is not is_done
    assert status.unreachable is not is_done


def test_an_object_that_the_list_does_not_have_may_just_have_been_made(tmp_path: Path) -> None:
    """A list that began before a submit ends after it; what settles the ends of trials looks for longer."""
    job = TrackedJob(JobRef("lab", "e-1-1", {"name": "e"}), JobWorkload(), CollectedTrial(tmp_path))
    view = SimpleNamespace(
        wait_until_listed=lambda _: "", fault=lambda _: "", object_of=lambda _: None, pods_of=lambda _: []
    )
    status = status_of(job, job.ref, cast("JobTracker", SimpleNamespace(view=view)))
    assert status.state is TrialState.PREPARING

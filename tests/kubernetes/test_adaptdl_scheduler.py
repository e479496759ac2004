"""Trials under AdaptDL's own scheduler, from its released package, on the double."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Resources
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.testing.bundles import wait_until
from jupyter_autotrain.testing.kubernetes import cluster as clusters
from jupyter_autotrain.testing.kubernetes.adaptdl.controller import ADAPTDL_JOBS, SCHEMA, AdaptDLController
from tests.kubernetes import adaptdl_scheduler, elastic_trials


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[clusters.KubernetesLab]:
    reason = clusters.missing() or adaptdl_scheduler.missing()
    if reason:
        pytest.skip(reason)
    (tmp_path / "lab").mkdir()
    made = clusters.KubernetesLab(tmp_path / "lab", without=(AdaptDLController,))
    made.store.resources.add(ADAPTDL_JOBS, SCHEMA)
    try:
        with adaptdl_scheduler.running(made, tmp_path):
            yield made
        assert made.loop.errors == []
    finally:
        made.close()


@pytest.mark.skipif(
    "AUTOTRAIN_LONG_TESTS" not in os.environ, reason="takes a minute: AUTOTRAIN_LONG_TESTS=1, as in `make soak`"
)
def test_hints_of_a_trial_bring_it_a_second_replica(lab: clusters.KubernetesLab, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with elastic_trials.backend(lab, home) as backend:
        trial = elastic_trials.start(lab, backend, home, elastic_trials.HINTS, resources=Resources(nodes=2))
        trial.wait_for("group 0 of 1 begins after step -1", within_s=90)
        trial.wait_for("group 1 of 2 begins after step", within_s=120)
        other = wire.stream_of_rank(wire.STDOUT, 1)
        wait_until(lambda: "group 1 of 2 begins" in trial.printed(other), "the second replica", within_s=60)
        trial.end()
        assert (trial.status.state, trial.status.reason) == (TrialState.SUCCEEDED, "")
        assert [step for step, _ in trial.points()] == list(range(len(trial.points())))
        wait_until(lambda: not trial.left(), "nothing left", within_s=60)

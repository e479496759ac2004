"""Trials under AdaptDL's own scheduler, from its released package, on the double."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.adaptdl_backend import AdaptdlBackend
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.testing.bundles import trial_of, wait_until
from tests.kubernetes import adaptdl_scheduler, elastic_trials
from tests.kubernetes.kubeconfigs import load_once
from tests.labs.kubernetes import cluster as clusters
from tests.labs.kubernetes.adaptdl.controller import ADAPTDL_JOBS, SCHEMA, AdaptDLController


@pytest.fixture
def round_s() -> float:
    return 2.0


@pytest.fixture
def lab(tmp_path: Path, round_s: float) -> Iterator[clusters.KubernetesLab]:
    reason = clusters.missing() or adaptdl_scheduler.missing()
    if reason:
        pytest.skip(reason)
    (tmp_path / "lab").mkdir()
    made = clusters.KubernetesLab(tmp_path / "lab", without=(AdaptDLController,))
    made.store.resources.add(ADAPTDL_JOBS, SCHEMA)
    try:
        with adaptdl_scheduler.running(made, tmp_path, round_s):
            yield made
        assert made.loop.errors == []
    finally:
        made.close()


@pytest.mark.long
@pytest.mark.parametrize("round_s", [600.0])
def test_a_trial_that_may_be_preempted_begins_at_once_and_another_says_for_what_it_waits(
    lab: clusters.KubernetesLab, tmp_path: Path
) -> None:
    home = Home(tmp_path / "home")
    options = {"kubeconfig": str(lab.kubeconfig), "namespace": "default"}
    backend = AdaptdlBackend(Profile("lab", "adaptdl", options), BackendContext(home), load_once)
    try:
        cpu = Resources(cpus=1.0)
        at_once = trial_of(home, "", resources=cpu, options={"preemptible": True})
        ref = backend.submit(at_once, Placement(), {})
        wait_until(lambda: backend.poll([ref])[0].state is TrialState.SUCCEEDED, "its end")
        pinned = backend.submit(trial_of(home, "", number=2, resources=cpu), Placement(), {})
        words = "looks once a minute at jobs that it may not preempt"
        wait_until(lambda: words in backend.poll([pinned])[0].reason, "why it waits")
        backend.cancel(pinned, 1.0)
    finally:
        backend.close()


@pytest.mark.long
def test_hints_of_a_trial_bring_it_a_second_replica(lab: clusters.KubernetesLab, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with elastic_trials.backend(lab, home) as backend:
        trial = elastic_trials.start(lab, backend, home, elastic_trials.HINTS, resources=Resources(nodes=2))
        trial.wait_for("group 0 of 1 begins after step -1")
        trial.wait_for("group 1 of 2 begins after step")
        other = wire.stream_of_rank(wire.STDOUT, 1)
        wait_until(lambda: "group 1 of 2 begins" in trial.printed(other), "the second replica")
        trial.end()
        assert (trial.status.state, trial.status.reason) == (TrialState.SUCCEEDED, "")
        assert [step for step, _ in trial.points()] == list(range(len(trial.points())))
        wait_until(lambda: not trial.left(), "nothing left")

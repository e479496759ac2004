"""A trial that AdaptDL gives other replicas while it runs: one trial, one stream, from checkpoint to checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.adaptdl_backend import AdaptdlBackend
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Resources
from jupyter_autotrain.testing.bundles import wait_until
from tests.kubernetes import elastic_trials
from tests.labs.kubernetes.adaptdl.controller import ADAPTDL_JOBS
from tests.labs.kubernetes.cluster import KubernetesLab


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("home"))


@pytest.fixture
def backend(cluster: KubernetesLab, home: Home) -> Iterator[AdaptdlBackend]:
    with elastic_trials.backend(cluster, home) as made:
        yield made


def test_a_trial_goes_on_elsewhere_from_its_checkpoint_and_no_step_is_lost_or_twice(
    cluster: KubernetesLab, backend: AdaptdlBackend, home: Home
) -> None:
    trial = elastic_trials.start(cluster, backend, home, elastic_trials.COUNTS)
    trial.wait_for("group 0 of 1 begins after step -1")
    wait_until(lambda: len(trial.points()) > 10, "reports")
    node = cluster.store.get(ADAPTDL_JOBS, "default", str(trial.ref.data["name"]))["status"]["allocation"][0]
    trial.allocate("n2" if node == "n1" else "n1")
    trial.wait_for("group 1 of 1 begins after step")
    count = len(trial.points())
    wait_until(lambda: len(trial.points()) > count + 10, "more reports")
    assert trial.seen <= {TrialState.PREPARING, TrialState.RUNNING}
    receipt = backend.cancel(trial.ref, 5.0)
    assert receipt.pids_left == ()
    assert trial.status.state is TrialState.CANCELLED
    steps = [step for step, _ in trial.points()]
    assert steps == list(range(len(steps)))
    assert trial.printed().count("begins") == 2
    wait_until(lambda: not trial.left(), "nothing left")


def test_hints_bring_a_second_replica_and_after_both_one_alone_succeeds(
    cluster: KubernetesLab, backend: AdaptdlBackend, home: Home
) -> None:
    trial = elastic_trials.start(cluster, backend, home, elastic_trials.HINTS, resources=Resources(nodes=2))
    trial.wait_for("group 1 of 2 begins after step")
    count = len(trial.points())
    wait_until(lambda: len(trial.points()) > count + 5, "reports of two replicas")
    hints = cluster.store.get(ADAPTDL_JOBS, "default", str(trial.ref.data["name"]))["status"]["train"]
    assert hints == {"initBatchSize": 8, "globalBatchSize": 8, "maxBatchSize": 64, "maxProfiledReplicas": 2}
    other = wire.stream_of_rank(wire.STDOUT, 1)
    wait_until(lambda: "group 1 of 2 begins" in trial.printed(other), "the second replica")
    trial.allocate("n1")
    trial.wait_for("group 2 of 1 begins after step")
    trial.end()
    assert (trial.status.state, trial.status.reason) == (TrialState.SUCCEEDED, "")
    assert [step for step, _ in trial.points()] == list(range(len(trial.points())))
    replicas = [count for _, count in trial.points()]
    assert sorted(set(replicas)) == [1, 2]
    assert (replicas[0], replicas[-1]) == (1, 1)
    wait_until(lambda: not trial.left(), "nothing left")

"""A trial that AdaptDL gives other replicas while it runs: one trial, one stream, from checkpoint to checkpoint."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest

from jupyter_autotrain.backends.kubernetes.adaptdl_backend import AdaptdlBackend
from jupyter_autotrain.backends.kubernetes.naming import LABEL_HOME
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import BackendContext, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.testing import trial_of
from jupyter_autotrain.testing.bundles import wait_until
from jupyter_autotrain.testing.kubernetes.adaptdl.controller import ADAPTDL_JOBS
from jupyter_autotrain.testing.kubernetes.cluster import KubernetesLab
from jupyter_autotrain.testing.kubernetes.resources import PERSISTENT_VOLUME_CLAIMS, PODS, SECRETS

COUNTS = """
import os, time
start = checkpoint.load(default=-1)
replicas = os.environ["ADAPTDL_NUM_REPLICAS"]
print(f"group {os.environ['ADAPTDL_NUM_RESTARTS']} of {replicas} begins after step {start}", flush=True)
step = start
while step < 400:
    step += 1
    if rank == 0:
        report(step, replicas=int(replicas))
    if should_stop():
        checkpoint.save(step, step)
        break
    if os.path.exists("/autotrain/storage/end"):
        break
    time.sleep(0.02)
"""


@pytest.fixture
def backend(cluster: KubernetesLab, home: Home) -> Iterator[AdaptdlBackend]:
    options = {
        "kubeconfig": str(cluster.kubeconfig), "python": sys.executable, "checkpoint": {"size": 1 << 20},
        "min_replicas": 1,
    }  # fmt: skip
    made = AdaptdlBackend(Profile("cluster", "adaptdl", options), BackendContext(home))
    yield made
    made.close()


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("home"))


class Trial:
    """A trial on the cluster."""

    def __init__(self, cluster: KubernetesLab, backend: AdaptdlBackend, ref: JobRef) -> None:
        self.cluster = cluster
        self.backend = backend
        self.ref = ref
        self.seen: set[TrialState] = set()

    @property
    def status(self) -> JobStatus:
        found = self.backend.poll([self.ref])[0]
        self.seen.add(found.state)
        return found

    def printed(self, stream: str = wire.STDOUT) -> str:
        return self.backend.read([Cursor(self.ref, stream, 0)])[0].data.decode()

    def points(self) -> list[tuple[int, int]]:
        frames = [json.loads(line) for line in self.printed(wire.METRICS).splitlines()]
        return [(frame[1], frame[3]["replicas"]) for frame in frames if frame[0] == "m"]

    def allocate(self, *nodes: str) -> None:
        """As AdaptDL's allocator does."""
        name = str(self.ref.data["name"])
        change = {"status": {"allocation": list(nodes)}}
        self.cluster.store.patch(ADAPTDL_JOBS, "default", name, change, subresource="status")

    def wait_for(self, text: str) -> None:
        def has_come() -> bool:
            assert not self.status.state.is_final, self.status.reason
            return text in self.printed()

        wait_until(has_come, text, within_s=60)

    def left(self) -> list[str]:
        found = []
        for resource in (ADAPTDL_JOBS, PODS, SECRETS, PERSISTENT_VOLUME_CLAIMS):
            found += [item["metadata"]["name"] for item in self.cluster.store.list(resource, "default", LABEL_HOME)[0]]
        return found


def start(cluster: KubernetesLab, backend: AdaptdlBackend, home: Home, code: str, **spec: object) -> Trial:
    return Trial(cluster, backend, backend.submit(trial_of(home, code, **spec), Placement(), {}))  # type: ignore[arg-type] # by name


def test_a_trial_goes_on_elsewhere_from_its_checkpoint_and_no_step_is_lost_or_twice(
    cluster: KubernetesLab, backend: AdaptdlBackend, home: Home
) -> None:
    trial = start(cluster, backend, home, COUNTS)
    trial.wait_for("group 0 of 1 begins after step -1")
    wait_until(lambda: len(trial.points()) > 10, "reports", within_s=30)
    node = cluster.store.get(ADAPTDL_JOBS, "default", str(trial.ref.data["name"]))["status"]["allocation"][0]
    trial.allocate("n2" if node == "n1" else "n1")
    trial.wait_for("group 1 of 1 begins after step")
    count = len(trial.points())
    wait_until(lambda: len(trial.points()) > count + 10, "more reports", within_s=30)
    assert trial.seen <= {TrialState.PREPARING, TrialState.RUNNING}
    receipt = backend.cancel(trial.ref, 5.0)
    assert receipt.pids_left == ()
    assert trial.status.state is TrialState.CANCELLED
    steps = [step for step, _ in trial.points()]
    assert steps == list(range(len(steps)))
    assert trial.printed().count("begins") == 2
    assert trial.left() == []


def test_hints_bring_a_second_replica_and_after_both_one_alone_succeeds(
    cluster: KubernetesLab, backend: AdaptdlBackend, home: Home
) -> None:
    code = COUNTS.replace("step = start\n", "trial.hints(batch_size=8, max_batch_size=64)\nstep = start\n")
    trial = start(cluster, backend, home, code, resources=Resources(nodes=2))
    trial.wait_for("group 1 of 2 begins after step")
    count = len(trial.points())
    wait_until(lambda: len(trial.points()) > count + 5, "reports of two replicas", within_s=60)
    hints = cluster.store.get(ADAPTDL_JOBS, "default", str(trial.ref.data["name"]))["status"]["train"]
    assert hints == {"initBatchSize": 8, "globalBatchSize": 8, "maxBatchSize": 64, "maxProfiledReplicas": 2}
    other = wire.stream_of_rank(wire.STDOUT, 1)
    wait_until(lambda: "group 1 of 2 begins" in trial.printed(other), "the second replica", within_s=15)
    trial.allocate("n1")
    trial.wait_for("group 2 of 1 begins after step")
    (pod,) = cluster.store.list(PODS, "default", LABEL_HOME)[0]
    process = cluster.access.exec(pod, "trial", ["touch", "/autotrain/storage/end"], stdin=0, stdout=1, stderr=2)
    assert process.wait(30) == 0
    wait_until(lambda: trial.status.state.is_final, "the end", within_s=60)
    assert (trial.status.state, trial.status.reason) == (TrialState.SUCCEEDED, "")
    assert [step for step, _ in trial.points()] == list(range(len(trial.points())))
    replicas = [count for _, count in trial.points()]
    assert sorted(set(replicas)) == [1, 2]
    assert (replicas[0], replicas[-1]) == (1, 1)
    wait_until(lambda: not trial.left(), "nothing left", within_s=30)

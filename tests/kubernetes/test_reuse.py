"""Long-running pods run trials one after another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.core.backend import BackendContext, Cursor, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.testing.bundles import trial_of, wait_until
from jupyter_autotrain.testing.files import data_of
from tests.kubernetes.kubeconfigs import load_once
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.resources import JOBS, PODS

CODE = "import os\nprint(os.uname().nodename, len(data.train.read_text()))\nreport(step=1, loss=0.5)"


def make(cluster: KubernetesLab, home: Home, **options: object) -> KubernetesBackend:
    given = {"kubeconfig": str(cluster.kubeconfig), "namespace": "default", "reuse": 1, "reuse_idle": 6.0, **options}
    return KubernetesBackend(Profile("lab", "kubernetes", given), BackendContext(home), load_once)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def backend(cluster: KubernetesLab, home: Home) -> Iterator[KubernetesBackend]:
    made = make(cluster, home)
    yield made
    made.close()


def ended(backend: KubernetesBackend, ref: JobRef) -> tuple[TrialState, str]:
    wait_until(lambda: backend.poll([ref])[0].state.is_final, f"the end of {ref.job_id}")
    status = backend.poll([ref])[0]
    return status.state, backend.read([Cursor(ref, wire.STDOUT, 0)])[0].data.decode() or status.reason


def test_one_pod_runs_all_trials_with_the_data_that_it_has_and_ends_when_there_are_none(
    cluster: KubernetesLab, home: Home, backend: KubernetesBackend, tmp_path: Path
) -> None:
    (tmp_path / "train.csv").write_text("1,2\n" * 1000)
    data = data_of(home, tmp_path, train="train.csv")
    trials = [trial_of(home, CODE, number=number, data=data) for number in (1, 2, 3)]
    refs = [backend.submit(trial, Placement(), {}) for trial in trials]
    found = [ended(backend, ref) for ref in refs]
    assert {state for state, _ in found} == {TrialState.SUCCEEDED}, found
    (pod,) = {text for _, text in found}  # the same host name, and the same data
    assert pod.endswith(" 4000\n")
    assert all(b'"loss"' in backend.read([Cursor(ref, wire.METRICS, 0)])[0].data for ref in refs)
    wait_until(lambda: not cluster.store.list(PODS, "default")[0] or _all_ended(cluster), "the end of the pod")


def _all_ended(cluster: KubernetesLab) -> bool:
    return all(pod["status"].get("phase") == "Succeeded" for pod in cluster.store.list(PODS, "default")[0])


def test_a_trial_that_waits_gets_another_pod_while_the_first_one_runs_a_trial(
    cluster: KubernetesLab, home: Home
) -> None:
    backend = make(cluster, home, reuse=2)
    waits = "import time\nprint('begun', flush=True)\nwhile not should_stop(): time.sleep(0.05)"
    try:
        for number in (1, 2):
            ref = backend.submit(trial_of(home, waits, number=number), Placement(), {})
            at = Cursor(ref, wire.STDOUT, 0)
            wait_until(lambda at=at: backend.read([at])[0].data == b"begun\n", "its begin")
    finally:
        backend.close()


@pytest.mark.long
def test_a_trial_in_a_long_running_pod_is_cancelled_and_the_pod_goes_on(home: Home, backend: KubernetesBackend) -> None:
    waits = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.05)"
    first = backend.submit(trial_of(home, waits, experiment_id="a"), Placement(), {})
    second = backend.submit(trial_of(home, "print('second')", experiment_id="b"), Placement(), {})
    wait_until(lambda: b"begun" in backend.read([Cursor(first, wire.STDOUT, 0)])[0].data, "its begin")
    assert "its turn" in backend.poll([second])[0].reason
    receipt = backend.cancel(first, 5.0)
    assert receipt.pids_left == ()
    assert ended(backend, second) == (TrialState.SUCCEEDED, "second\n")


def test_another_manager_goes_on_with_a_trial_in_a_long_running_pod(
    cluster: KubernetesLab, home: Home, backend: KubernetesBackend
) -> None:
    code = "import time\nprint('begun', flush=True)\nwhile not should_stop(): time.sleep(0.05)\nprint('stopped')"
    first = backend.submit(trial_of(home, code, experiment_id="a"), Placement(), {})
    second = backend.submit(trial_of(home, "print('second')", experiment_id="b"), Placement(), {})
    wait_until(lambda: b"begun" in backend.read([Cursor(first, wire.STDOUT, 0)])[0].data, "its begin")
    backend.close()
    other = make(cluster, home)
    try:
        wait_until(lambda: other.poll([first])[0].state is TrialState.RUNNING, "the trial")
        other.put(first, wire.STOP_FILE, b"enough")
        assert ended(other, first) == (TrialState.EARLY_STOPPED, "begun\nstopped\n")
        assert ended(other, second) == (TrialState.SUCCEEDED, "second\n")
        assert len([one for one in cluster.store.list(JOBS, "default")[0] if "pilot" in one["metadata"]["name"]]) == 1
    finally:
        other.close()


def test_a_trial_whose_pod_program_is_killed_is_lost_at_once_and_the_pod_goes_on(
    home: Home, backend: KubernetesBackend
) -> None:
    kill = """
import os, signal
status = open(f"/proc/{os.getppid()}/status").read()
os.kill(int(status.split("PPid:")[1].split()[0]), signal.SIGKILL)
signal.pause()
"""
    first = backend.submit(trial_of(home, kill, experiment_id="a"), Placement(), {})
    second = backend.submit(trial_of(home, "print('second')", experiment_id="b"), Placement(), {})
    state, reason = ended(backend, first)
    assert state is TrialState.LOST, reason
    assert "the long-running pod ended" not in reason
    assert ended(backend, second) == (TrialState.SUCCEEDED, "second\n")


def test_a_long_running_pod_that_cannot_run_is_not_made_for_ever_and_the_trial_says_why(
    cluster: KubernetesLab, home: Home
) -> None:
    backend = make(cluster, home, python="/no/such/python")
    try:
        ref = backend.submit(trial_of(home, "print(1)"), Placement(), {})
        state, reason = ended(backend, ref)
    finally:
        backend.close()
    assert state is TrialState.FAILED
    assert "/no/such/python" in reason


def test_a_trial_says_what_its_long_running_pod_waits_for(cluster: KubernetesLab, home: Home) -> None:
    backend = make(cluster, home, node_selector={"pool": "none"})
    try:
        ref = backend.submit(trial_of(home, "print(1)"), Placement(), {})
        wait_until(lambda: "node" in backend.poll([ref])[0].reason, "the scheduler's reason")
    finally:
        backend.close()

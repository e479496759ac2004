"""Tests of faults between a manager and its cluster while trials run: nothing is lost, nothing comes twice."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.access import credentials
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.core.backend import BackendContext, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.testing import trial_of, wait_until
from tests.kubernetes.kubeconfigs import load_once
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.resources import CONFIG_MAPS, JOBS, PODS, SECRETS

STEPS = 60
COUNTS = f"""
import time
for step in range({STEPS}):
    print(step, flush=True)
    report(step=step, loss=1.0)
    time.sleep(0.05)
"""
WAITS = "import time\nprint('begun', flush=True)\nwhile not should_stop():\n    time.sleep(0.02)"


def load(path: str, context: str) -> credentials.Access:
    """Each kubeconfig once: it takes a process of its own."""
    if "renewing" in path:
        return credentials.load(path, context)
    return load_once(path, context)


def write_anew(cluster: KubernetesLab) -> None:
    """Write the administrator's kubeconfig, with what the API server takes now."""
    cluster.kubeconfig.write_bytes(cluster.api.kubeconfig().read_bytes())


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@contextmanager
def backend_on(
    cluster: KubernetesLab, home: Home, kubeconfig: Path | None = None, **more: object
) -> Iterator[KubernetesBackend]:
    options = {"kubeconfig": str(kubeconfig or cluster.kubeconfig), "python": sys.executable, **more}
    backend = KubernetesBackend(Profile("kubernetes", "kubernetes", options), BackendContext(home), load)
    try:
        yield backend
    finally:
        backend.close()


def status(backend: KubernetesBackend, ref: JobRef) -> JobStatus:
    return backend.poll([ref])[0]


def read(backend: KubernetesBackend, ref: JobRef, stream: str = wire.STDOUT) -> bytes:
    return backend.read([Cursor(ref, stream, 0)])[0].data


def finish(backend: KubernetesBackend, ref: JobRef) -> JobStatus:
    wait_until(lambda: status(backend, ref).state.is_final, f"the end of {ref.job_id}")
    return status(backend, ref)


def has_all(backend: KubernetesBackend, ref: JobRef) -> bool:
    steps = [json.loads(line) for line in read(backend, ref, wire.METRICS).splitlines()]
    is_whole = [frame[1] for frame in steps if frame[0] == "m"] == list(range(STEPS))
    return is_whole and read(backend, ref).split() == [b"%d" % step for step in range(STEPS)]


def begun(backend: KubernetesBackend, ref: JobRef) -> None:
    wait_until(lambda: read(backend, ref), f"output of {ref.job_id}")


@pytest.mark.long
def test_an_api_server_that_is_gone_and_back_with_another_certificate_loses_nothing(
    cluster: KubernetesLab, home: Home
) -> None:
    with backend_on(cluster, home) as backend:
        ref = backend.submit(trial_of(home, COUNTS), Placement(), {})
        begun(backend, ref)
        cluster.api.stop()
        wait_until(lambda: status(backend, ref).doubt, "a doubt")
        assert status(backend, ref).unreachable
        cluster.api.start(new_certificate=True)
        write_anew(cluster)
        assert finish(backend, ref).state is TrialState.SUCCEEDED
        assert has_all(backend, ref)


@pytest.mark.long
def test_an_expired_watch_lists_anew_and_an_expired_token_is_renewed(cluster: KubernetesLab, home: Home) -> None:
    kubeconfig = cluster.api.kubeconfig(name="renewing", renewing=True)
    with backend_on(cluster, home, kubeconfig) as backend:
        ref = backend.submit(trial_of(home, COUNTS), Placement(), {})
        begun(backend, ref)
        cluster.api.compact()
        cluster.api.expire_tokens()
        write_anew(cluster)
        cluster.api.stop()
        cluster.api.start()
        assert finish(backend, ref).state is TrialState.SUCCEEDED
        assert has_all(backend, ref)


@pytest.mark.long
def test_follows_that_end_early_are_taken_up_where_they_were(cluster: KubernetesLab, home: Home) -> None:
    with backend_on(cluster, home) as backend:
        ref = backend.submit(trial_of(home, COUNTS), Placement(), {})
        begun(backend, ref)
        for _ in range(2):
            cluster.api.stop()
            cluster.api.start()
        assert finish(backend, ref).state is TrialState.SUCCEEDED
        assert has_all(backend, ref)


def test_a_pod_that_is_deleted_under_its_trial_ends_it_with_its_checkpoint_and_a_reason(
    cluster: KubernetesLab, home: Home
) -> None:
    code = "checkpoint.save(7, step=7)\n" + WAITS
    with backend_on(cluster, home) as backend:
        ref = backend.submit(trial_of(home, code), Placement(), {})
        begun(backend, ref)
        (pod,) = cluster.store.list(PODS, "default")[0]
        cluster.store.delete(PODS, "default", pod["metadata"]["name"])
        found = finish(backend, ref)
        assert found.state is TrialState.PREEMPTED
        assert found.reason
        assert backend.sizes(ref, wire.CHECKPOINTS)


def test_a_job_that_somebody_deletes_ends_the_trial_with_that_reason(cluster: KubernetesLab, home: Home) -> None:
    with backend_on(cluster, home) as backend:
        trial = trial_of(home, WAITS)
        ref = backend.submit(trial, Placement(), {})
        begun(backend, ref)  # a first process that has not begun yet ignores SIGTERM for the whole grace period
        cluster.store.delete(JOBS, "default", str(ref.data["name"]), grace_s=0)
        assert finish(backend, ref).state in {TrialState.LOST, TrialState.PREEMPTED}
        assert "deleted" in status(backend, ref).reason or "ended the trial" in status(backend, ref).reason


def test_cancel_leaves_nothing_in_the_cluster(cluster: KubernetesLab, home: Home) -> None:
    with backend_on(cluster, home) as backend:
        ref = backend.submit(trial_of(home, WAITS, secrets=("API_KEY",)), Placement(), {"API_KEY": "hunter2-hunter2"})
        begun(backend, ref)
        receipt = backend.cancel(ref, 5.0)
        assert receipt.pids_ended
        assert receipt.note == ""
        for resource in (JOBS, PODS, SECRETS):
            assert cluster.store.list(resource, "default")[0] == []
        wait_until(lambda: not cluster.store.list(CONFIG_MAPS, "default")[0], "the end of the code")


def test_a_cancel_of_a_trial_whose_python_only_starts_does_not_wait_for_the_grace_of_its_pod(
    cluster: KubernetesLab, home: Home, tmp_path: Path
) -> None:
    python = tmp_path / "image" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nwhile :; do sleep 0.05; done\n")  # the first process of a pod ignores SIGTERM
    python.chmod(0o755)
    volumes = [{"path": "/image", "host_path": str(python.parent)}]
    with backend_on(cluster, home, python="/image/python", volumes=volumes) as backend:
        ref = backend.submit(trial_of(home, ""), Placement(), {})
        wait_until(lambda: phases(cluster) == ["Running"], "its pod")
        assert backend.cancel(ref, 1.0).elapsed_s < 30.0  # the grace of the pod
        assert status(backend, ref).state is TrialState.CANCELLED
        assert phases(cluster) == []


def phases(cluster: KubernetesLab) -> list[str]:
    return [pod["status"].get("phase", "") for pod in cluster.store.list(PODS, "default")[0]]


def test_a_trial_costs_two_requests_besides_the_watches(cluster: KubernetesLab, home: Home) -> None:
    with backend_on(cluster, home) as backend:
        first = backend.submit(trial_of(home, "print(1)"), Placement(), {})
        finish(backend, first)
        wait_until(lambda: not cluster.store.list(CONFIG_MAPS, "default")[0], "the end of the first")
        before = cluster.api.requests.copy()
        refs = [backend.submit(trial_of(home, "print(1)", number=n), Placement(), {}) for n in range(2, 8)]
        for ref in refs:
            finish(backend, ref)
        more = cluster.api.requests - before
        more.pop(("list", "events"), None)  # asked for while a trial waits, by the time alone
        of_trials = {key: count for key, count in more.items() if count >= len(refs)}
        assert sum(of_trials.values()) <= 2 * len(refs), more
        assert sum(more.values()) <= 2 * len(refs) + 12, more


@pytest.mark.long
def test_two_homes_in_one_namespace_do_not_touch_each_other(cluster: KubernetesLab, home: Home, tmp_path: Path) -> None:
    other = Home(tmp_path / "other")
    with ExitStack() as stack:
        first = stack.enter_context(backend_on(cluster, home))
        second = stack.enter_context(backend_on(cluster, other))
        kept = first.submit(trial_of(home, WAITS), Placement(), {})
        ended = second.submit(trial_of(other, WAITS), Placement(), {})
        assert kept.data["name"] != ended.data["name"]
        begun(first, kept)
        begun(second, ended)
        second.cancel(ended, 5.0)
        assert status(first, kept).state is TrialState.RUNNING
        first.put(kept, wire.STOP_FILE, b"enough")
        assert finish(first, kept).state is TrialState.EARLY_STOPPED


def test_a_pod_whose_program_ends_at_once_says_how(cluster: KubernetesLab, home: Home) -> None:
    options = {"kubeconfig": str(cluster.kubeconfig), "python": "/bin/false"}
    backend = KubernetesBackend(Profile("kubernetes", "kubernetes", options), BackendContext(home))
    try:
        ref = backend.submit(trial_of(home, ""), Placement(), {})
        found = finish(backend, ref)
        assert found.state is TrialState.FAILED
        assert "exited with code 1" in found.reason
    finally:
        backend.close()

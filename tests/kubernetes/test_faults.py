"""Tests of what API servers, their administrators and their clocks do to trials."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
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
from jupyter_autotrain.errors import BackendError
from jupyter_autotrain.testing import trial_of, wait_until
from jupyter_autotrain.testing.harness import WAITS
from tests.kubernetes.kubeconfigs import load_once
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.resources import JOBS, NAMESPACES, PODS, RESOURCE_QUOTAS

STEPS = 60
COUNTS = f"""
import time
for step in range({STEPS}):
    report(step=step, count=step)
    print(step, flush=True)
    time.sleep(0.03)
"""
HELD = f"{COUNTS}import pathlib\nwhile not pathlib.Path('/gate/open').exists():\n    time.sleep(0.01)"
Make = Callable[..., KubernetesBackend]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def make(cluster: KubernetesLab, home: Home) -> Iterator[Make]:
    made: list[KubernetesBackend] = []

    def backend(of: Home = home, **options: object) -> KubernetesBackend:
        given = {"kubeconfig": str(cluster.kubeconfig), "python": sys.executable} | options
        load = credentials.load if "kubeconfig" in options else load_once
        made.append(KubernetesBackend(Profile("kubernetes", "kubernetes", given), BackendContext(of), load))
        return made[-1]

    yield backend
    for one in made:
        one.close()


def start(backend: KubernetesBackend, home: Home, code: str, **spec: object) -> JobRef:
    return backend.submit(trial_of(home, code, **spec), Placement(), {})


def status(backend: KubernetesBackend, ref: JobRef) -> JobStatus:
    return backend.poll([ref])[0]


def read(backend: KubernetesBackend, ref: JobRef, stream: str = wire.STDOUT) -> bytes:
    """Return a whole stream."""
    found = b""
    while more := backend.read([Cursor(ref, stream, len(found))])[0].data:
        found += more
    return found


def gate_volume(folder: Path) -> dict[str, str]:
    """Return a folder that a test and its trials share: /gate."""
    (folder / "gate").mkdir()
    return {"path": "/gate", "host_path": str(folder / "gate")}


def begun(backend: KubernetesBackend, ref: JobRef) -> None:
    wait_until(lambda: status(backend, ref) and read(backend, ref), f"a line of {ref.job_id}")


def end(backend: KubernetesBackend, ref: JobRef) -> JobStatus:
    wait_until(lambda: status(backend, ref).state.is_final, f"the end of {ref.job_id}", within_s=150)
    return status(backend, ref)


def until_reason(backend: KubernetesBackend, ref: JobRef, text: str) -> None:
    wait_until(lambda: text in status(backend, ref).reason, f"{text!r} as the reason of {ref.job_id}")


def check_complete(backend: KubernetesBackend, ref: JobRef) -> None:
    """Everything that COUNTS writes has come, once and in order."""
    assert (end(backend, ref).state, status(backend, ref).reason) == (TrialState.SUCCEEDED, "")
    assert read(backend, ref).split() == [str(step).encode() for step in range(STEPS)]
    frames = [json.loads(line) for line in read(backend, ref, wire.METRICS).splitlines()]
    assert [frame[1] for frame in frames if frame[0] == "m"] == list(range(STEPS))


def restart(cluster: KubernetesLab, away_s: float, *, new_certificate: bool = False) -> None:
    cluster.api.stop()
    time.sleep(away_s)  # the fault itself
    cluster.api.start(new_certificate=new_certificate)
    cluster.api.kubeconfig(name=cluster.kubeconfig.name)


@pytest.mark.parametrize("gone_s", [2.0, pytest.param(60.0, marks=pytest.mark.long)])
def test_a_server_that_is_gone_and_comes_back_with_another_certificate_loses_nothing(
    cluster: KubernetesLab, make: Make, home: Home, gone_s: float
) -> None:
    backend = make()
    ref = start(backend, home, COUNTS)
    begun(backend, ref)
    restart(cluster, gone_s, new_certificate=True)
    check_complete(backend, ref)


def test_a_trial_that_ends_while_the_server_is_gone_is_read_whole_afterwards(
    cluster: KubernetesLab, make: Make, home: Home, tmp_path: Path
) -> None:
    backend = make(volumes=[gate_volume(tmp_path)])
    ref = start(backend, home, HELD)
    begun(backend, ref)
    cluster.api.stop()
    (tmp_path / "gate" / "open").touch()
    found = cluster.store.list(JOBS, None)[0][0]["metadata"]
    wait_until(
        lambda: cluster.store.get(JOBS, found["namespace"], found["name"])["status"].get("succeeded"),
        "the end of the Job", within_s=90,
    )  # fmt: skip
    wait_until(lambda: status(backend, ref).doubt, "a doubt")
    assert status(backend, ref).state is TrialState.RUNNING
    assert status(backend, ref).unreachable
    cluster.api.start()
    check_complete(backend, ref)


def test_an_expired_token_is_renewed_in_the_middle(cluster: KubernetesLab, make: Make, home: Home) -> None:
    backend = make(kubeconfig=str(cluster.api.kubeconfig(renewing=True)))
    ref = start(backend, home, COUNTS)
    begun(backend, ref)
    cluster.api.expire_tokens()
    cluster.api.kubeconfig(name=cluster.kubeconfig.name)
    restart(cluster, 0.0)  # nothing that is open stays
    check_complete(backend, ref)


@pytest.mark.long
def test_a_token_that_cannot_be_renewed_is_told_and_the_trial_is_not_lost(
    cluster: KubernetesLab, make: Make, home: Home
) -> None:
    kubeconfig = cluster.api.kubeconfig()
    backend = make(kubeconfig=str(kubeconfig))
    ref = start(backend, home, COUNTS)
    begun(backend, ref)
    cluster.api.expire_tokens()
    cluster.api.kubeconfig(name=cluster.kubeconfig.name)
    restart(cluster, 0.0)
    probe = backend.probe()
    assert not probe.usable
    assert "Unauthorized" in probe.reason
    assert not status(backend, ref).state.is_final
    cluster.api.kubeconfig(name=kubeconfig.name)
    check_complete(backend, ref)


def test_watches_that_have_expired_list_anew(cluster: KubernetesLab, make: Make, home: Home) -> None:
    backend = make()
    ref = start(backend, home, COUNTS)
    begun(backend, ref)
    cluster.api.stop()
    cluster.api.compact()
    cluster.api.start()
    check_complete(backend, ref)


@pytest.mark.long
def test_what_a_rotated_log_does_not_hold_any_more_is_fetched_from_the_pod(
    cluster: KubernetesLab, make: Make, home: Home, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    code = """
    import os, time
    print("begun", flush=True)
    while not os.path.exists("/gate/write"):
        time.sleep(0.01)
    for line in range(30_000):
        print(f"{line:06} {'x' * 992}")
    print("written", flush=True)
    while not os.path.exists("/gate/end"):
        time.sleep(0.01)
    """
    backend = make(volumes=[gate_volume(tmp_path)])
    ref = start(backend, home, code)
    begun(backend, ref)
    (pod,) = cluster.store.list(PODS, "default")[0]
    log = cluster.access.log_path(pod, "trial", previous=False)
    assert log is not None
    before = sum(count for request, count in cluster.api.requests.items() if "exec" in str(request))
    cluster.api.stop()
    (gate / "write").touch()
    wait_until(lambda: b"written" in log.read_bytes(), "all of it in the log")
    assert b"000100 x" not in log.read_bytes()  # it lies in a file that the API does not serve
    cluster.api.start()
    (gate / "end").touch()
    assert end(backend, ref).state is TrialState.SUCCEEDED
    lines = read(backend, ref).decode().splitlines()
    assert lines[0] == "begun"
    assert [line[:6] for line in lines[1:-1]] == [f"{line:06}" for line in range(30_000)]
    assert sum(count for request, count in cluster.api.requests.items() if "exec" in str(request)) > before


def test_a_server_that_asks_to_wait_is_waited_for(cluster: KubernetesLab, make: Make, home: Home) -> None:
    backend = make()
    cluster.api.fail_next(429, retry_after_s=1, match="create .*/jobs", count=2)
    before = time.monotonic()
    ref = start(backend, home, "print('here')")
    assert time.monotonic() - before >= 2.0
    assert end(backend, ref).state is TrialState.SUCCEEDED
    assert read(backend, ref) == b"here\n"


def test_a_submit_that_is_sent_twice_is_one_object(cluster: KubernetesLab, make: Make, home: Home) -> None:
    backends = [make() for _ in range(2)]
    trial = trial_of(home, WAITS)
    refs = [backend.submit(trial, Placement(), {}) for backend in backends]
    assert refs[0] == refs[1]
    assert len(cluster.store.list(JOBS, None)[0]) == 1
    backends[0].cancel(refs[0], 1)


@pytest.mark.long
def test_two_homes_in_one_namespace_do_not_see_each_other(cluster: KubernetesLab, make: Make, tmp_path: Path) -> None:
    homes = [Home(tmp_path / name) for name in ("one", "two")]
    backends = [make(home) for home in homes]
    refs = [start(backend, home, WAITS) for backend, home in zip(backends, homes, strict=True)]
    for backend, ref in zip(backends, refs, strict=True):
        begun(backend, ref)
    backends[0].cancel(refs[0], 5)
    assert not status(backends[1], refs[1]).state.is_final
    assert len(cluster.store.list(JOBS, None)[0]) == 1
    backends[1].cancel(refs[1], 5)
    wait_until(lambda: not cluster.store.list(PODS, None)[0], "pods that are gone")


def test_a_deleted_namespace_ends_its_trials_with_the_reason(cluster: KubernetesLab, make: Make, home: Home) -> None:
    cluster.store.create(NAMESPACES, "", {"metadata": {"name": "team"}})
    backend = make(namespace="team")
    ref = start(backend, home, WAITS)
    begun(backend, ref)
    cluster.store.delete(NAMESPACES, "", "team")
    ended = end(backend, ref)
    assert ended.state in (TrialState.LOST, TrialState.FAILED, TrialState.PREEMPTED, TrialState.CANCELLED)
    assert ended.reason
    with pytest.raises(BackendError, match="team"):
        start(make(namespace="team"), home, "print(1)", number=2)


@pytest.mark.parametrize("skew_s", [3600.0, pytest.param(-3600.0, marks=pytest.mark.long)])
def test_a_server_whose_clock_is_wrong_runs_trials_as_well(
    cluster: KubernetesLab, make: Make, home: Home, monkeypatch: pytest.MonkeyPatch, skew_s: float
) -> None:
    monkeypatch.setattr(cluster.store, "clock", lambda: time.time() + skew_s)
    backend = make()
    ref = start(backend, home, COUNTS)
    check_complete(backend, ref)


def test_what_an_account_may_not_do_is_said(cluster: KubernetesLab, make: Make, home: Home) -> None:
    cluster.api.forbid("create", "jobs")
    with pytest.raises(BackendError, match="jobs") as caught:
        start(make(), home, "print(1)")
    assert "forbidden" in str(caught.value)


def test_a_full_quota_is_the_reason_why_a_trial_waits(cluster: KubernetesLab, make: Make, home: Home) -> None:
    quota = {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "0"}}}
    cluster.store.create(RESOURCE_QUOTAS, "default", quota)
    backend = make()
    ref = start(backend, home, "print('here')")
    until_reason(backend, ref, "quota small")
    cluster.store.delete(RESOURCE_QUOTAS, "default", "small")
    assert end(backend, ref).state is TrialState.SUCCEEDED


def test_an_image_that_is_missing_is_the_reason_why_a_trial_waits(
    cluster: KubernetesLab, make: Make, home: Home
) -> None:
    cluster.images.missing.add("no/such:image")
    backend = make(image="no/such:image")
    ref = start(backend, home, "print('here')")
    until_reason(backend, ref, "no/such:image")
    backend.cancel(ref, 1)


def test_a_program_that_the_image_lacks_fails_the_trial_and_is_named(make: Make, home: Home) -> None:
    backend = make(python="/no/such/python")
    ended = end(backend, start(backend, home, "print('here')"))
    assert ended.state is TrialState.FAILED
    assert "/no/such/python" in ended.reason
    assert "`python:`" in ended.reason


@pytest.mark.long
def test_an_experiment_of_a_long_name_runs(make: Make, home: Home) -> None:
    backend = make()
    ref = start(backend, home, "print('here')", experiment_id="a_Long.name-" * 10)
    assert end(backend, ref).state is TrialState.SUCCEEDED


@pytest.mark.long
def test_requests_that_fail_are_sent_again_and_nothing_is_lost(cluster: KubernetesLab, make: Make, home: Home) -> None:
    backend = make()
    cluster.api.fail_next(500, match="^(get|list|watch) ", count=3)
    ref = start(backend, home, COUNTS)
    begun(backend, ref)
    cluster.api.fail_next(503, match="^(get|list|watch) ", count=4)
    restart(cluster, 0.0)
    check_complete(backend, ref)

"""Trials that can never start end with the reason that kept them from it, and leave nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.core.backend import JobRef, JobStatus
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.errors import BackendError
from jupyter_autotrain.testing.bundles import trial_of, wait_until
from jupyter_autotrain.testing.files import data_of
from tests.kubernetes.every_kind import Submit, backend_on, left, submitting_of_every_kind
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.resources import CONFIG_MAPS, NAMESPACES, PODS, RESOURCE_QUOTAS

START_TIMEOUT_S = 2.0
FAULTS: dict[str, tuple[dict[str, object], str]] = {
    "image": ({"image": "nowhere/train:1"}, "it waits for its image nowhere/train:1: there is no such image"),
    "name": ({"image": "UPPER//x:1"}, "It cannot start: it never starts: UPPER//x:1 is not the name of an image"),
    "claim": ({"volumes": [{"path": "/data", "pvc": "absent"}]}, "there is no PVC absent in its namespace"),
    "secret": ({"volumes": [{"path": "/data", "secret": "absent"}]}, 'secret "absent" not found'),
    "account": ({"service_account": "absent"}, "there is no service account absent: correct `service_account`"),
    "selector": ({"node_selector": {"pool": "absent"}}, "other labels than its `node_selector` or `affinity` asks for"),
    "class": ({"priority_class": "absent"}, "there is no priority class absent: correct `priority_class`"),
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def end(backend: KubernetesBackend, ref: JobRef) -> JobStatus:
    wait_until(lambda: backend.poll([ref])[0].state.is_final, f"the end of {ref.job_id}")
    return backend.poll([ref])[0]


def test_what_keeps_a_trial_on_one_node_from_starting_is_told_meanwhile_and_ends_it(
    cluster: KubernetesLab, home: Home
) -> None:
    cluster.images.missing.add("nowhere/train:1")
    with backend_on(cluster, home, start_timeout=START_TIMEOUT_S) as backend:
        refs = {}
        for number, (name, (options, _)) in enumerate(FAULTS.items(), 1):
            refs[name] = backend.submit(trial_of(home, "", number=number, options=options), Placement(), {})
        for name, (_, words) in FAULTS.items():
            status = end(backend, refs[name])
            assert status.state is TrialState.FAILED, (name, status)
            assert words in status.reason, name
            limit = f"It did not start within {START_TIMEOUT_S:g} s (`start_timeout`): it "
            assert status.reason.startswith(limit) or name == "name", status.reason
        wait_until(lambda: not left(cluster), "objects that are deleted")


@pytest.fixture
def of_every_kind(cluster: KubernetesLab, tmp_path: Path) -> Iterator[Submit]:
    """Submit a trial of every kind, all at once."""
    with submitting_of_every_kind(cluster, tmp_path, start_timeout=START_TIMEOUT_S) as submit:
        yield submit


def test_an_image_that_is_not_there_ends_a_trial_of_every_kind(cluster: KubernetesLab, of_every_kind: Submit) -> None:
    cluster.images.missing.add("nowhere/train:1")
    words = "it waits for its image nowhere/train:1: there is no such image"
    for kind, (backend, ref) in of_every_kind(image="nowhere/train:1").items():
        status = end(backend, ref)
        assert status.state is TrialState.FAILED, kind
        assert f"did not start within 2 s (`start_timeout`): {words}" in status.reason, kind
    wait_until(lambda: not left(cluster), "objects that are deleted")


def test_a_quota_that_no_pod_fits_into_ends_a_trial_of_every_kind(
    cluster: KubernetesLab, of_every_kind: Submit
) -> None:
    cluster.store.create(RESOURCE_QUOTAS, "default", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}})
    words = "the quota q of its namespace is too small: it asks for pods=1, and pods=0 is allowed"
    for kind, (backend, ref) in of_every_kind().items():
        status = end(backend, ref)
        assert status.state is TrialState.FAILED, kind
        assert words in status.reason, (kind, status.reason)
    wait_until(lambda: not left(cluster), "objects that are deleted")


def test_a_namespace_that_forbids_its_pods_ends_a_trial(cluster: KubernetesLab, home: Home) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    cluster.store.create(NAMESPACES, "", {"metadata": {"name": "strict", "labels": labels}})
    with backend_on(cluster, home, start_timeout=START_TIMEOUT_S, namespace="strict") as backend:
        ref = backend.submit(trial_of(home, ""), Placement(), {})
        assert "only pods of the security standard restricted" in end(backend, ref).reason
    cluster.store.delete(NAMESPACES, "", "strict")


def test_a_node_of_several_that_cannot_start_ends_the_trial(cluster: KubernetesLab, home: Home) -> None:
    cluster.images.missing.add("nowhere/train:1")
    with backend_on(cluster, home, start_timeout=START_TIMEOUT_S, image="nowhere/train:1") as backend:
        ref = backend.submit(trial_of(home, "", resources=Resources(nodes=2)), Placement(), {})
        assert "it waits for its image nowhere/train:1" in end(backend, ref).reason


def test_the_header_gives_a_trial_another_time_to_start(cluster: KubernetesLab, home: Home) -> None:
    cluster.images.missing.add("nowhere/train:1")
    with backend_on(cluster, home, start_timeout=600.0) as backend:
        options = {"start_timeout": 1.0, "image": "nowhere/train:1"}
        ref = backend.submit(trial_of(home, "", options=options), Placement(), {})
        assert "did not start within 1 s" in end(backend, ref).reason


def test_a_trial_that_waits_for_room_that_others_use_waits_on(cluster: KubernetesLab, home: Home) -> None:
    waits = "import time\nwhile not should_stop(): time.sleep(0.05)"
    with ExitStack() as stack:
        backend = stack.enter_context(backend_on(cluster, home, start_timeout=0.1))
        big = Resources(cpus=3.0)
        refs = [
            backend.submit(trial_of(home, waits, number=number, resources=big), Placement(), {}) for number in (1, 2, 3)
        ]
        last = refs[-1]
        wait_until(lambda: "too few free CPUs" in backend.poll([last])[0].reason, "a trial without room")
        looks = [backend.poll([last])[0] for _ in range(3)]
        backend.cancel(refs[0], 1.0)
        wait_until(lambda: backend.poll([last])[0].state is TrialState.RUNNING, "its turn")
        assert not any(look.state.is_final for look in looks)
        for ref in refs[1:]:
            backend.cancel(ref, 1.0)
    wait_until(lambda: not cluster.store.list(PODS, "default")[0], "the end of all pods")
    wait_until(lambda: not cluster.store.list(CONFIG_MAPS, "default")[0], "the end of the code")


def test_a_trial_whose_long_running_pod_can_never_start_ends_too(cluster: KubernetesLab, home: Home) -> None:
    cluster.images.missing.add("nowhere/train:1")
    with backend_on(cluster, home, start_timeout=1.0, reuse=1, image="nowhere/train:1") as backend:
        ref = backend.submit(trial_of(home, ""), Placement(), {})
        ends = lambda: backend.poll([ref])[0].state.is_final  # noqa: E731 - short
        wait_until(ends, "its end")
        assert "it waits for its image nowhere/train:1" in backend.poll([ref])[0].reason
        wait_until(lambda: not left(cluster), "objects that are deleted")


@pytest.mark.long
def test_a_pod_that_writes_to_the_storage_and_can_never_start_refuses_the_submit_at_once(
    cluster: KubernetesLab, home: Home, tmp_path: Path
) -> None:
    (tmp_path / "big.bin").write_bytes(os.urandom(1_500_000))
    storage = {"host_path": str(tmp_path)}
    with backend_on(cluster, home, start_timeout=300.0, storage=storage, image="UPPER//x:1") as backend:
        trial = trial_of(home, "", data=data_of(home, tmp_path, big="big.bin"))
        began_s = time.monotonic()
        with pytest.raises(BackendError, match="UPPER//x:1"):
            backend.submit(trial, Placement(), {})
        assert time.monotonic() - began_s < 120.0

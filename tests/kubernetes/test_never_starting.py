"""Trials that can never start end with the reason that kept them from it, and leave nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from jupyter_autotrain.backends.kubernetes.adaptdl_backend import AdaptdlBackend
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.framework_backend import FrameworkBackend
from jupyter_autotrain.backends.kubernetes.kubeflow_backend import KubeflowBackend
from jupyter_autotrain.core.backend import BackendContext, JobRef, JobStatus
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.testing.bundles import trial_of, wait_until
from jupyter_autotrain.testing.kubernetes import kubeflow
from jupyter_autotrain.testing.kubernetes.cluster import KubernetesLab
from jupyter_autotrain.testing.kubernetes.objects.resources import (
    CONFIG_MAPS,
    NAMESPACES,
    PODS,
    RESOURCE_QUOTAS,
)
from tests.kubernetes.kubeconfigs import load_once

START_TIMEOUT_S = 2.0
Submit = Callable[..., dict[str, tuple[KubernetesBackend, JobRef]]]
KINDS = {
    "Job": (KubernetesBackend, {}),
    "PyTorchJob": (KubeflowBackend, {"kind": "PyTorchJob"}),
    "TrainJob": (KubeflowBackend, {"kind": "TrainJob"}),
    "MPIJob": (KubeflowBackend, {"kind": "MPIJob"}),
    "AdaptDLJob": (AdaptdlBackend, {}),
    "Framework": (FrameworkBackend, {}),
}
FAULTS: dict[str, tuple[dict[str, object], str]] = {
    "image": ({"image": "nowhere/train:1"}, "it waits for its image nowhere/train:1: there is no such image"),
    "name": ({"image": "UPPER//x:1"}, "It cannot start: it never starts: UPPER//x:1 is no name of an image"),
    "claim": ({"volumes": [{"path": "/data", "pvc": "absent"}]}, "there is no PVC absent in its namespace"),
    "secret": ({"volumes": [{"path": "/data", "secret": "absent"}]}, 'secret "absent" not found'),
    "account": ({"service_account": "absent"}, "there is no service account absent: correct `service_account`"),
    "selector": ({"node_selector": {"pool": "absent"}}, "other labels than its `node_selector` or `affinity` asks for"),
    "class": ({"priority_class": "absent"}, "there is no priority class absent: correct `priority_class`"),
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@contextmanager
def backend_on(cluster: KubernetesLab, home: Home, kind: str = "Job", **more: object) -> Iterator[KubernetesBackend]:
    make, options = KINDS[kind]
    given = {"kubeconfig": str(cluster.kubeconfig), "namespace": "default", "start_timeout": START_TIMEOUT_S}
    backend = make(Profile("lab", "lab", {**given, **options, **more}), BackendContext(home), load_once)
    try:
        yield backend
    finally:
        backend.close()


def end(backend: KubernetesBackend, ref: JobRef) -> JobStatus:
    wait_until(lambda: backend.poll([ref])[0].state.is_final, f"the end of {ref.job_id}", within_s=60)
    return backend.poll([ref])[0]


def left(cluster: KubernetesLab) -> list[str]:
    kinds = {"pods", "jobs", "configmaps", "secrets", "services", "pytorchjobs", "trainjobs", "mpijobs", "jobsets"}
    kinds |= {"adaptdljobs", "frameworks"}
    found = [one for one in cluster.store.resources if one.plural in kinds]
    return [item["metadata"]["name"] for one in found for item in cluster.store.list(one, "default")[0]]


def test_what_keeps_a_trial_on_one_node_from_starting_is_told_meanwhile_and_ends_it(
    cluster: KubernetesLab, home: Home
) -> None:
    cluster.images.missing.add("nowhere/train:1")
    with backend_on(cluster, home) as backend:
        refs = {}
        for number, (name, (options, _)) in enumerate(FAULTS.items(), 1):
            refs[name] = backend.submit(trial_of(home, "", number=number, options=options), Placement(), {})
        for name, (_, words) in FAULTS.items():
            status = end(backend, refs[name])
            assert status.state is TrialState.FAILED, (name, status)
            assert words in status.reason, name
            limit = f"It did not start within {START_TIMEOUT_S:g} s (`start_timeout`): it "
            assert status.reason.startswith(limit) or name == "name", status.reason
        wait_until(lambda: not left(cluster), "objects that are deleted", within_s=60)


@pytest.fixture
def of_every_kind(cluster: KubernetesLab, tmp_path: Path) -> Iterator[Submit]:
    """Submits a trial of every kind, all at once."""
    kubeflow.install(cluster.store, mpi_operator="0.8")
    with ExitStack() as stack:

        def submit(**options: object) -> dict[str, tuple[KubernetesBackend, JobRef]]:
            made = {}
            for kind in KINDS:
                home = Home(tmp_path / kind)
                backend = stack.enter_context(backend_on(cluster, home, kind, **options))
                made[kind] = (backend, backend.submit(trial_of(home, ""), Placement(), {}))
            return made

        yield submit


def test_an_image_that_is_not_there_ends_a_trial_of_every_kind(cluster: KubernetesLab, of_every_kind: Submit) -> None:
    cluster.images.missing.add("nowhere/train:1")
    words = "it waits for its image nowhere/train:1: there is no such image"
    for kind, (backend, ref) in of_every_kind(image="nowhere/train:1").items():
        status = end(backend, ref)
        assert status.state is TrialState.FAILED, kind
        assert f"did not start within 2 s (`start_timeout`): {words}" in status.reason, kind
    wait_until(lambda: not left(cluster), "objects that are deleted", within_s=60)


def test_a_quota_that_no_pod_fits_into_ends_a_trial_of_every_kind(
    cluster: KubernetesLab, of_every_kind: Submit
) -> None:
    cluster.store.create(RESOURCE_QUOTAS, "default", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}})
    words = "the quota q of its namespace is too small: it asks for pods=1, and pods=0 is allowed"
    for kind, (backend, ref) in of_every_kind().items():
        status = end(backend, ref)
        assert status.state is TrialState.FAILED, kind
        assert words in status.reason, (kind, status.reason)
    wait_until(lambda: not left(cluster), "objects that are deleted", within_s=60)


def test_a_namespace_that_forbids_its_pods_ends_a_trial(cluster: KubernetesLab, home: Home) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    cluster.store.create(NAMESPACES, "", {"metadata": {"name": "strict", "labels": labels}})
    with backend_on(cluster, home, namespace="strict") as backend:
        ref = backend.submit(trial_of(home, ""), Placement(), {})
        assert "only pods of the security standard restricted" in end(backend, ref).reason
    cluster.store.delete(NAMESPACES, "", "strict")


def test_a_node_of_several_that_cannot_start_ends_the_trial(cluster: KubernetesLab, home: Home) -> None:
    cluster.images.missing.add("nowhere/train:1")
    with backend_on(cluster, home, image="nowhere/train:1") as backend:
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
        wait_until(lambda: "too few free CPUs" in backend.poll([last])[0].reason, "a trial without room", within_s=60)
        looks = [backend.poll([last])[0] for _ in range(3)]
        backend.cancel(refs[0], 1.0)
        wait_until(lambda: backend.poll([last])[0].state is TrialState.RUNNING, "its turn", within_s=60)
        assert not any(look.state.is_final for look in looks)
        for ref in refs[1:]:
            backend.cancel(ref, 1.0)
    wait_until(lambda: not cluster.store.list(PODS, "default")[0], "the end of all pods", within_s=60)
    wait_until(lambda: not cluster.store.list(CONFIG_MAPS, "default")[0], "the end of the code", within_s=60)

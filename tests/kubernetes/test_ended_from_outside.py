"""Trials that the cluster, or somebody in it, ends: they say who did it, whatever their supervisor knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.core.backend import Cursor, JobRef, JobStatus
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.testing.bundles import trial_of, wait_until
from tests.kubernetes.api.conftest import client_of
from tests.kubernetes.cluster import objects
from tests.kubernetes.every_kind import KINDS, Submit, backend_on, left, submitting_of_every_kind
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.resources import JOBS, PODS, PRIORITY_CLASSES
from tests.labs.kubernetes.objects.values import Json

WAITS = "import time\nprint('begun', flush=True)\nwhile not should_stop(): time.sleep(0.02)"
SIGTERM = "the supervisor got SIGTERM"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def of_every_kind(cluster: KubernetesLab, tmp_path: Path) -> Iterator[Submit]:
    with submitting_of_every_kind(cluster, tmp_path) as submit:
        yield submit


def begun(backend: KubernetesBackend, ref: JobRef) -> None:
    def printed() -> bytes:
        backend.poll([ref])
        return backend.read([Cursor(ref, wire.STDOUT, 0)])[0].data

    wait_until(printed, f"output of {ref.job_id}")


def end(backend: KubernetesBackend, ref: JobRef) -> JobStatus:
    wait_until(lambda: backend.poll([ref])[0].state.is_final, f"the end of {ref.job_id}")
    return backend.poll([ref])[0]


def pods_of(cluster: KubernetesLab, ref: JobRef) -> list[Json]:
    found: list[Json] = cluster.store.list(PODS, "default")[0]
    name = str(ref.data["name"])
    return [pod for pod in found if pod["metadata"]["name"].startswith(name) or _is_of(pod, name)]


def _is_of(pod: Json, name: str) -> bool:
    return name in (pod["metadata"].get("labels") or {}).values()


def test_an_eviction_is_the_reason_of_a_trial_of_every_kind(cluster: KubernetesLab, of_every_kind: Submit) -> None:
    made = of_every_kind(WAITS)
    for backend, ref in made.values():
        begun(backend, ref)
    with client_of(cluster.kubeconfig) as api:
        for _, ref in made.values():
            for pod in pods_of(cluster, ref):
                name = pod["metadata"]["name"]
                eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name=name, namespace="default"))
                client.CoreV1Api(api).create_namespaced_pod_eviction(name, "default", eviction)
    for kind, (backend, ref) in made.items():
        status = end(backend, ref)
        assert status.state is TrialState.PREEMPTED, (kind, status)
        assert "was drained, or somebody evicted the pod" in status.reason, kind
    wait_until(lambda: not left(cluster), "objects that are deleted")


@pytest.mark.parametrize("kinds", [("Job", "TrainJob", "Framework"), pytest.param((*KINDS,), marks=pytest.mark.long)])
def test_a_deleted_pod_is_the_reason_of_a_trial_of_every_kind(
    cluster: KubernetesLab, of_every_kind: Submit, kinds: tuple[str, ...]
) -> None:
    made = of_every_kind(WAITS, kinds)
    for backend, ref in made.values():
        begun(backend, ref)
    for _, ref in made.values():
        for pod in pods_of(cluster, ref):
            cluster.store.delete(PODS, "default", pod["metadata"]["name"])
    for kind, (backend, ref) in made.items():
        status = end(backend, ref)
        assert status.state in {TrialState.PREEMPTED, TrialState.LOST}, (kind, status)  # a JobSet makes it again
        # AdaptDL and FrameworkController delete pods themselves: of them it is not known who did.
        told = "deleted" if kind not in {"AdaptDLJob", "Framework"} else ""
        assert told in status.reason, (kind, status.reason)
        assert SIGTERM not in status.reason or not told, kind


@pytest.mark.parametrize("kinds", [("Job", "MPIJob", "AdaptDLJob"), pytest.param((*KINDS,), marks=pytest.mark.long)])
def test_a_deleted_object_is_the_reason_of_a_trial_of_every_kind(
    cluster: KubernetesLab, of_every_kind: Submit, kinds: tuple[str, ...]
) -> None:
    made = of_every_kind(WAITS, kinds)
    for backend, ref in made.values():
        begun(backend, ref)
        resource = next(one for one in cluster.store.resources if one.kind == backend.workload_of(ref).object_type.kind)
        cluster.store.delete(resource, "default", str(ref.data["name"]), propagation="Background")
    for kind, (backend, ref) in made.items():
        status = end(backend, ref)
        assert status.state in {TrialState.PREEMPTED, TrialState.LOST}, (kind, status)
        assert "deleted" in status.reason, (kind, status.reason)
        assert kind in status.reason


def test_a_more_urgent_pod_is_the_reason_of_a_trial_whose_node_it_took(cluster: KubernetesLab, home: Home) -> None:
    cluster.store.create(PRIORITY_CLASSES, "", {"metadata": {"name": "urgent"}, "value": 1000})
    with backend_on(cluster, home) as backend:
        big = Resources(cpus=3.0)
        refs = [
            backend.submit(trial_of(home, WAITS, number=number, resources=big), Placement(), {}) for number in (1, 2)
        ]
        for ref in refs:
            begun(backend, ref)
        limits = {"resources": {"limits": {"cpu": "2"}}}
        spec = objects.pod_spec("", containers=[objects.container("exec sleep 1000", **limits)])
        objects.make_pod(cluster, "urgent", spec | {"priorityClassName": "urgent"})
        wait_until(lambda: any(backend.poll([ref])[0].state.is_final for ref in refs), "a victim")
        (victim,) = [status for status in backend.poll(refs) if status.state.is_final]
        assert victim.state is TrialState.PREEMPTED
        assert victim.reason.startswith("Preempted: the scheduler gave its place on n")
        for ref in refs:
            backend.cancel(ref, 1.0)
    cluster.store.delete(PRIORITY_CLASSES, "", "urgent")


def test_a_queue_that_suspends_a_job_is_the_reason_of_its_trial(cluster: KubernetesLab, home: Home) -> None:
    with backend_on(cluster, home) as backend:
        ref = backend.submit(trial_of(home, WAITS), Placement(), {})
        begun(backend, ref)
        cluster.store.patch(JOBS, "default", str(ref.data["name"]), {"spec": {"suspend": True}})
        status = end(backend, ref)
        assert status.state is TrialState.PREEMPTED
        assert status.reason.startswith("Preempted: its Job was suspended, as a queue does")


def test_a_disk_that_a_trial_fills_is_the_reason_of_its_end(cluster: KubernetesLab, home: Home) -> None:
    patch = {"spec": {"containers": [{"name": "trial", "resources": {"limits": {"ephemeral-storage": "1Mi"}}}]}}
    code = "print('begun', flush=True)\nopen('/filled', 'wb').write(bytes(9_000_000))\nimport time\ntime.sleep(1000)"
    with backend_on(cluster, home, pod_patch=patch) as backend:
        status = end(backend, backend.submit(trial_of(home, code), Placement(), {}))
        assert status.state is TrialState.PREEMPTED
        assert 'exceeded its local ephemeral storage limit "1Mi"' in status.reason


def test_memory_above_the_limit_is_the_reason_also_where_the_kernel_kills_one_process_alone(
    cluster: KubernetesLab, home: Home
) -> None:
    patch = {"spec": {"containers": [{"name": "trial", "resources": {"limits": {"memory": "300Mi"}}}]}}
    code = "kept = bytearray(600_000_000)\nimport time\ntime.sleep(1000)"
    for node in cluster.nodes.values():
        node.kubelet.services.cgroup_version = 1
    try:
        with backend_on(cluster, home, pod_patch=patch) as backend:
            status = end(backend, backend.submit(trial_of(home, code), Placement(), {}))
            assert status.state is TrialState.FAILED
            assert status.reason.startswith("Out of memory: the trial used more than its limit of 300Mi.")
    finally:
        for node in cluster.nodes.values():
            node.kubelet.services.cgroup_version = 2


def test_a_supervisor_that_is_told_to_end_and_nobody_says_why_says_so_itself(
    cluster: KubernetesLab, home: Home
) -> None:
    with backend_on(cluster, home) as backend:
        ref = backend.submit(trial_of(home, WAITS), Placement(), {})
        begun(backend, ref)
        (pod,) = cluster.store.list(PODS, "default", naming.LABEL_HOME)[0]
        process = cluster.access.exec(pod, "trial", ["kill", "1"], stdin=0, stdout=1, stderr=2)
        assert process.wait(240) == 0
        status = end(backend, ref)
        assert status.state is TrialState.PREEMPTED
        assert SIGTERM in status.reason

"""Trials on several nodes of a cluster that has no queue: all of their pods begin, or none keeps a node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes import trial_program
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.core.backend import BackendContext, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.testing.bundles import trial_of, wait_until
from tests.kubernetes.kubeconfigs import load_once
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.resources import JOBS, PODS

WHOLE_NODE = 3.0  # CPUs of four: two pods of it do not fit on a node
WAITS = "import time\nprint('begun', flush=True)\nwhile not should_stop(): time.sleep(0.05)"


@pytest.fixture
def homes(tmp_path: Path) -> list[Home]:
    return [Home(tmp_path / "one"), Home(tmp_path / "other")]


@pytest.fixture
def start_timeout() -> float:
    return 3.0


@pytest.fixture
def backends(cluster: KubernetesLab, homes: list[Home], start_timeout: float) -> Iterator[list[KubernetesBackend]]:
    options = {"kubeconfig": str(cluster.kubeconfig), "namespace": "default", "start_timeout": start_timeout}
    profile = Profile("lab", "kubernetes", options)
    made = [KubernetesBackend(profile, BackendContext(home), load_once) for home in homes]
    yield made
    for backend in made:
        backend.close()


def submit(backend: KubernetesBackend, home: Home, name: str, nodes: int = 2, code: str = WAITS) -> JobRef:
    resources = Resources(cpus=WHOLE_NODE, nodes=nodes)
    return backend.submit(trial_of(home, code, experiment_id=name, resources=resources), Placement(), {})


def placed(cluster: KubernetesLab) -> dict[str, int]:
    """Return how many pods of each trial hold a node."""
    found: dict[str, int] = {}
    for pod in cluster.store.list(PODS, "default")[0]:
        name = pod["metadata"]["labels"]["jupyter-autotrain/experiment"]
        found[name] = found.get(name, 0) + bool(pod["spec"].get("nodeName"))
    return found


def is_running(backend: KubernetesBackend, ref: JobRef) -> bool:
    return backend.poll([ref])[0].state is TrialState.RUNNING


@pytest.mark.parametrize("start_timeout", [60.0])  # the pods of the first may be slow to go
def test_of_two_gangs_on_a_cluster_that_holds_one_both_run_one_after_the_other(
    cluster: KubernetesLab, homes: list[Home], backends: list[KubernetesBackend]
) -> None:
    backend = backends[0]
    first, second = (submit(backend, homes[0], name) for name in ("first", "second"))
    wait_until(lambda: placed(cluster).get("first") == 2, "the first gang")
    wait_until(lambda: is_running(backend, first), "its trial")
    told = ("until all its 2 nodes can begin together", "waits for a node")
    wait_until(lambda: any(text in backend.poll([second])[0].reason for text in told), "why the second waits")
    backend.cancel(first, 5.0)
    wait_until(lambda: is_running(backend, second), "the second gang")
    backend.cancel(second, 5.0)


@pytest.mark.long
def test_gangs_of_two_homes_that_hold_each_other_up_give_way(
    cluster: KubernetesLab, homes: list[Home], backends: list[KubernetesBackend]
) -> None:
    refs = [submit(backend, home, name) for backend, home, name in zip(backends, homes, "ab", strict=True)]
    running: list[int] = []

    def one_runs() -> bool:
        running[:] = [index for index, ref in enumerate(refs) if is_running(backends[index], ref)]
        return bool(running)

    wait_until(one_runs, "one of the gangs")
    backends[running[0]].cancel(refs[running[0]], 5.0)
    other = 1 - running[0]
    ends = lambda: backends[other].poll([refs[other]])[0].state  # noqa: E731 - short
    wait_until(lambda: ends() is TrialState.RUNNING or ends().is_final, "what becomes of the other")
    backends[other].cancel(refs[other], 5.0)


def test_a_gang_that_never_fits_gives_up_with_a_message_and_frees_the_nodes(
    cluster: KubernetesLab, homes: list[Home], backends: list[KubernetesBackend]
) -> None:
    backend = backends[0]
    ref = submit(backend, homes[0], "three", nodes=3)
    wait_until(lambda: backend.poll([ref])[0].state.is_final, "its end")
    status = backend.poll([ref])[0]
    assert status.state is TrialState.FAILED
    assert "did not give it 3 nodes at the same time within 3 s" in status.reason
    wait_until(lambda: not cluster.store.list(PODS, "default")[0], "pods that are gone")
    wait_until(lambda: not cluster.store.list(JOBS, "default")[0], "the job that is deleted")


@pytest.fixture
def slow_python(tmp_path: Path) -> dict[str, object]:
    """Return an interpreter that takes long to start; meanwhile, as a container's first process, it ignores SIGTERM."""
    path = tmp_path / "python"
    path.write_text("#!/bin/sh\ntrap '' TERM\nsleep 600\n")
    path.chmod(0o755)
    return {"python": "/image/python", "volumes": [{"path": "/image", "host_path": str(tmp_path)}]}


@pytest.mark.parametrize("start_timeout", [0.5])
def test_pods_of_a_gang_that_gives_up_end_soon_although_their_python_has_not_started(
    backends: list[KubernetesBackend],
    homes: list[Home],
    cluster: KubernetesLab,
    slow_python: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trial_program, "_GRACE_S", 600)  # which the test could not wait for
    backend = backends[0]
    trial = trial_of(homes[0], WAITS, resources=Resources(cpus=WHOLE_NODE, nodes=3), options=slow_python)
    ref = backend.submit(trial, Placement(), {})
    wait_until(lambda: backend.poll([ref])[0].state.is_final, "its end")
    assert "did not give it 3 nodes at the same time" in backend.poll([ref])[0].reason
    wait_until(lambda: not cluster.store.list(PODS, "default")[0], "pods that are gone")

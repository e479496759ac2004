"""Trials as objects of every kind, on the double."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.backends.kubernetes.adaptdl_backend import AdaptdlBackend
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.framework_backend import FrameworkBackend
from jupyter_autotrain.backends.kubernetes.kubeflow_backend import KubeflowBackend
from jupyter_autotrain.core.backend import BackendContext, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.testing.bundles import trial_of
from tests.kubernetes.kubeconfigs import load_once
from tests.labs.kubernetes import kubeflow
from tests.labs.kubernetes.cluster import KubernetesLab

Submit = Callable[..., dict[str, tuple[KubernetesBackend, JobRef]]]
KINDS: dict[str, tuple[type[KubernetesBackend], dict[str, JsonValue]]] = {
    "Job": (KubernetesBackend, {}),
    "PyTorchJob": (KubeflowBackend, {"kind": "PyTorchJob"}),
    "TrainJob": (KubeflowBackend, {"kind": "TrainJob"}),
    "MPIJob": (KubeflowBackend, {"kind": "MPIJob"}),
    "AdaptDLJob": (AdaptdlBackend, {}),
    "Framework": (FrameworkBackend, {}),
}
_LEFT = frozenset({
    "pods", "jobs", "configmaps", "secrets", "services", "pytorchjobs", "trainjobs", "mpijobs", "jobsets",
    "adaptdljobs", "frameworks",
})  # fmt: skip


@contextmanager
def backend_on(cluster: KubernetesLab, home: Home, kind: str = "Job", **more: JsonValue) -> Iterator[KubernetesBackend]:
    make, options = KINDS[kind]
    given = {"kubeconfig": str(cluster.kubeconfig), "namespace": "default", **options, **more}
    backend = make(Profile("lab", "lab", given), BackendContext(home), load_once)
    try:
        yield backend
    finally:
        backend.close()


@contextmanager
def submitting_of_every_kind(cluster: KubernetesLab, folder: Path, **common: JsonValue) -> Iterator[Submit]:
    """Give what submits a trial of every kind: its code, and options of all profiles; by kind, what has it."""
    kubeflow.install(cluster.store, mpi_operator="0.8")
    with ExitStack() as stack:

        def submit(
            code: str = "", kinds: Iterable[str] = KINDS, **options: JsonValue
        ) -> dict[str, tuple[KubernetesBackend, JobRef]]:
            made = {}
            for kind in kinds:
                home = Home(folder / kind)
                backend = stack.enter_context(backend_on(cluster, home, kind, **common, **options))
                made[kind] = (backend, backend.submit(trial_of(home, code), Placement(), {}))
            return made

        yield submit


def left(cluster: KubernetesLab) -> list[str]:
    """Return what of trials is in the cluster."""
    found = [one for one in cluster.store.resources if one.plural in _LEFT]
    return [item["metadata"]["name"] for one in found for item in cluster.store.list(one, "default")[0]]

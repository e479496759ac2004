"""Trials on several nodes of the double."""

from __future__ import annotations

import json
from typing import Any

from jupyter_autotrain.agent import wire
from jupyter_autotrain.backends.kubernetes.backend import KubernetesBackend
from jupyter_autotrain.backends.kubernetes.framework_backend import FrameworkBackend
from jupyter_autotrain.backends.kubernetes.kubeflow_backend import KubeflowBackend
from jupyter_autotrain.core.backend import BackendContext, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement, Resources
from jupyter_autotrain.testing import trial_of, wait_until
from tests.kubernetes.kubeconfigs import load_once
from tests.labs.kubernetes import kubeflow
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.controllers.framework import FRAMEWORKS
from tests.labs.kubernetes.custom import trainer, training_operator
from tests.labs.kubernetes.objects.resources import CONFIG_MAPS, JOBS, PODS, SECRETS, SERVICES

KINDS = (
    "Job",
    "PyTorchJob",
    "TrainJob",
    "MPIJob v2beta1 of 0.8",
    "MPIJob v2beta1 of 0.4",
    "MPIJob v1",
    "TFJob",
    "PaddleJob",
    "Framework",
)
_MADE = (
    PODS, JOBS, SERVICES, SECRETS, CONFIG_MAPS, trainer.TRAINJOBS, trainer.JOBSETS, training_operator.PYTORCHJOBS,
    training_operator.TFJOBS, training_operator.PADDLEJOBS, training_operator.MPIJOBS, FRAMEWORKS,
)  # fmt: skip
_WITHIN_S = 240.0


class MultiNode:
    """A backend on the double that makes objects of one kind.

    Args:
        cluster: The double.
        home: Of the trials.
        kind: One of `KINDS`.
        options: Of the profile besides.
    """

    def __init__(self, cluster: KubernetesLab, home: Home, kind: str, **options: Any) -> None:
        name, _, version = kind.partition(" ")
        _, _, release = version.partition(" of ")
        self.store = cluster.store
        self.home = home
        kubeflow.install(self.store, mpi_operator=release)
        made = {"kubeconfig": str(cluster.kubeconfig), "namespace": "default", **options}
        context = BackendContext(home)
        self.backend: KubernetesBackend
        if name == "Framework":
            made = {"service_account": "default", **made}  # its barrier needs one
            self.backend = FrameworkBackend(Profile("lab", "frameworkcontroller", made), context, load_once)
        elif name == "Job":
            self.backend = KubernetesBackend(Profile("lab", "kubernetes", made), context, load_once)
        else:
            self.backend = KubeflowBackend(Profile("lab", "kubeflow", {**made, "kind": name}), context, load_once)

    def submit(self, code: str, nodes: int = 2, workers: int = 1, **spec: Any) -> JobRef:
        resources = Resources(nodes=nodes, workers_per_node=workers)
        return self.backend.submit(trial_of(self.home, code, resources=resources, **spec), Placement(), {})

    def status(self, ref: JobRef) -> JobStatus:
        return self.backend.poll([ref])[0]

    def finish(self, ref: JobRef) -> JobStatus:
        def ended() -> bool:
            status = self.status(ref)
            return status.state.is_final and not status.doubt

        wait_until(ended, f"the end of {ref.job_id}", within_s=_WITHIN_S)
        return self.status(ref)

    def text(self, ref: JobRef, stream: str = wire.STDOUT) -> str:
        data = b""
        while chunk := self.backend.read([Cursor(ref, stream, len(data))])[0].data:
            data += chunk
        return data.decode()

    def of_rank(self, ref: JobRef, rank: int) -> str:
        return self.text(ref, wire.stream_of_rank(wire.STDOUT, rank))

    def begun(self, ref: JobRef, ranks: int, word: str = "begun") -> None:
        wait_until(lambda: all(word in self.of_rank(ref, rank) for rank in range(ranks)), word, within_s=_WITHIN_S)

    def metrics(self, ref: JobRef) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for line in self.text(ref, wire.METRICS).splitlines():
            frame = json.loads(line)
            if frame[0] == "m":
                found |= frame[3]
        return found

    def pods(self) -> dict[str, Any]:
        return {pod["metadata"]["name"]: pod for pod in self.store.list(PODS, "default")[0]}

    def left(self) -> list[str]:
        """Return the objects of the namespace."""
        found = []
        for resource in _MADE:
            items = self.store.list(resource, "default")[0]
            found += [f"{resource.kind}/{item['metadata']['name']}" for item in items]
        return [name for name in found if name != "ConfigMap/kube-root-ca.crt"]

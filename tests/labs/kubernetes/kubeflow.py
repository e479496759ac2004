"""Kubeflow's operators in the double: what is installed, in which release."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.labs.kubernetes.controllers import job_kinds
from tests.labs.kubernetes.controllers.jobset import JobSetController
from tests.labs.kubernetes.controllers.loop import Controller, ControlLoop
from tests.labs.kubernetes.controllers.mpijob import MPIJobController
from tests.labs.kubernetes.controllers.mpijob_v1 import MPIJobV1Controller
from tests.labs.kubernetes.controllers.replica_job import ReplicaJobController
from tests.labs.kubernetes.controllers.trainjob import TrainJobController
from tests.labs.kubernetes.custom import trainer, training_operator
from tests.labs.kubernetes.custom.kubeflow_admission import KubeflowAdmission
from tests.labs.kubernetes.objects.resources import Resource
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

CONTROLLERS: tuple[Callable[[ObjectStore, ControlLoop], Controller], ...] = (
    partial(ReplicaJobController, kind=job_kinds.PyTorch()),
    partial(ReplicaJobController, kind=job_kinds.TensorFlow()),
    partial(ReplicaJobController, kind=job_kinds.Paddle()),
    MPIJobController,
    MPIJobV1Controller,
    JobSetController,
    TrainJobController,
)
_KINDS = (
    training_operator.PYTORCHJOBS, training_operator.TFJOBS, training_operator.PADDLEJOBS, training_operator.MPIJOBS_V1,
    training_operator.MPIJOBS, trainer.TRAINJOBS, trainer.RUNTIMES, trainer.CLUSTER_RUNTIMES, trainer.JOBSETS,
)  # fmt: skip
STOCK_RUNTIME = "torch-distributed"


def install(
    store: ObjectStore,
    *,
    release: str = trainer.RELEASES[-1],
    has_trainer: bool = True,
    has_training_operator: bool = True,
    mpi_operator: str = "",
) -> None:
    """Serve these operators' kinds, and no other ones of Kubeflow.

    Args:
        store: The cluster's objects.
        release: Of Kubeflow Trainer.
        has_trainer: Kubeflow Trainer, with its stock runtime.
        has_training_operator: The training operator (`v1`).
        mpi_operator: The release, 0.4 or 0.8, of the MPI operator (`v2beta1`), which takes the place of the other's
            MPIJob; "": there is none.
    """
    remove(store)
    schemas: dict[Resource, Json] = {}
    if has_trainer:
        schemas |= trainer.schemas(release)
    if has_training_operator:
        schemas |= training_operator.schemas()
    if mpi_operator:
        schemas.pop(training_operator.MPIJOBS_V1, None)
        schemas |= training_operator.mpi_operator_schemas(mpi_operator)
    for resource, schema in schemas.items():
        store.resources.add(resource, schema)
    store.admission.append(KubeflowAdmission(store))
    if has_trainer:
        runtime = trainer.runtime(
            STOCK_RUNTIME, "torch", "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime", {"torch": {}}
        )
        store.create(trainer.CLUSTER_RUNTIMES, "", runtime)


def remove(store: ObjectStore) -> None:
    """Serve no kind of Kubeflow."""
    for resource in _KINDS:
        _delete_all(store, resource)
        store.resources.remove(resource)
    store.admission[:] = [one for one in store.admission if not isinstance(one, KubeflowAdmission)]


def _delete_all(store: ObjectStore, resource: Resource) -> None:
    for found in store.list(resource, None)[0]:
        metadata = found["metadata"]
        store.delete(resource, metadata.get("namespace", ""), metadata["name"])

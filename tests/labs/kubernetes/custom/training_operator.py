"""The kinds of Kubeflow's training operator (release 1.9) and of the MPI operator (0.4, 0.8)."""

from __future__ import annotations

from tests.labs.kubernetes.custom.schema_parts import (
    INTEGER,
    QUANTITY,
    TEXT,
    TRUTH,
    array,
    built_in,
    condition,
    enum,
    fields,
    mapping,
    whole,
)
from tests.labs.kubernetes.objects.resources import Resource
from tests.labs.kubernetes.objects.values import Json

_GROUP = "kubeflow.org"
PYTORCHJOBS = Resource(_GROUP, "v1", "pytorchjobs", "PyTorchJob", subresources=("status", "scale"))
TFJOBS = Resource(_GROUP, "v1", "tfjobs", "TFJob")
PADDLEJOBS = Resource(_GROUP, "v1", "paddlejobs", "PaddleJob", subresources=("status", "scale"))
MPIJOBS_V1 = Resource(_GROUP, "v1", "mpijobs", "MPIJob")
MPIJOBS = Resource(_GROUP, "v2beta1", "mpijobs", "MPIJob")


def _replicas() -> Json:
    policy = enum("Always", "OnFailure", "Never", "ExitCode")
    return mapping(fields(replicas=INTEGER, restartPolicy=policy, template=built_in("PodTemplateSpec")))


def _run_policy() -> Json:
    scheduling = fields(
        minAvailable=INTEGER, minResources=mapping(QUANTITY), priorityClass=TEXT, queue=TEXT,
        scheduleTimeoutSeconds=INTEGER,
    )  # fmt: skip
    return fields(
        activeDeadlineSeconds=INTEGER, backoffLimit=INTEGER, cleanPodPolicy=enum("None", "Running", "All"),
        managedBy=TEXT, schedulingPolicy=scheduling, suspend={"type": "boolean", "default": False},
        ttlSecondsAfterFinished=INTEGER,
    )  # fmt: skip


def _status() -> Json:
    replica = fields(active=INTEGER, failed=INTEGER, selector=TEXT, succeeded=INTEGER)
    return fields(
        completionTime=TEXT, conditions=array(condition()), lastReconcileTime=TEXT, replicaStatuses=mapping(replica),
        startTime=TEXT,
    )  # fmt: skip


def _job(replicas: str, **more: Json) -> Json:
    spec = fields((replicas,), runPolicy=_run_policy(), **{replicas: _replicas()}, **more)
    return whole(spec, _status(), ())


def _elastic(more: dict[str, Json] | None = None) -> Json:
    counts = dict.fromkeys(("maxReplicas", "maxRestarts", "minReplicas"), INTEGER)
    return fields((), metrics=array({"type": "object"}), **counts, **(more or {}))


def schemas() -> dict[Resource, Json]:
    """Return the schemas of the training operator's kinds."""
    rendezvous = {
        "nProcPerNode": INTEGER, "rdzvBackend": enum("c10d", "etcd", "etcd-v2"), "rdzvHost": TEXT, "rdzvId": TEXT,
        "rdzvPort": INTEGER, "rdzvConf": array(fields(key=TEXT, value=TEXT)), "standalone": TRUTH,
    }  # fmt: skip
    return {
        PYTORCHJOBS: _job("pytorchReplicaSpecs", elasticPolicy=_elastic(rendezvous), nprocPerNode=TEXT),
        TFJOBS: _job("tfReplicaSpecs", enableDynamicWorker=TRUTH, successPolicy=TEXT),
        PADDLEJOBS: _job("paddleReplicaSpecs", elasticPolicy=_elastic()),
        MPIJOBS_V1: _job("mpiReplicaSpecs", cleanPodPolicy=TEXT, mainContainer=TEXT, slotsPerWorker=INTEGER),
    }


def mpi_operator_schemas(release: str) -> dict[Resource, Json]:
    """Return the schema of the MPI operator's kind.

    Args:
        release: 0.4 or 0.8.
    """
    later: dict[str, Json] = {
        "launcherCreationPolicy": {**enum("AtStartup", "WaitForWorkersReady"), "default": "AtStartup"},
        "runLauncherAsWorker": {"type": "boolean", "default": False},
    }
    mpijob = _job(
        "mpiReplicaSpecs",
        **(later if release == "0.8" else {}),
        mpiImplementation={**enum("OpenMPI", "Intel", "MPICH"), "default": "OpenMPI"},
        slotsPerWorker={"type": "integer", "default": 1},
        sshAuthMountPath={"type": "string", "default": "/root/.ssh"},
    )
    return {MPIJOBS: mpijob}

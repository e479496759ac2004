"""The kinds of Kubeflow Trainer in two releases, and JobSet."""

from __future__ import annotations

from tests.labs.kubernetes.custom.schema_parts import (
    ANYTHING,
    INTEGER,
    QUANTITY,
    TEXT,
    TRUTH,
    array,
    built_in,
    condition,
    fields,
    mapping,
    metadata,
    whole,
)
from tests.labs.kubernetes.objects.resources import Resource
from tests.labs.kubernetes.objects.values import Json

_GROUP = "trainer.kubeflow.org"
_VERSION = "v1alpha1"
TRAINJOBS = Resource(_GROUP, _VERSION, "trainjobs", "TrainJob")
RUNTIMES = Resource(_GROUP, _VERSION, "trainingruntimes", "TrainingRuntime", subresources=())
CLUSTER_RUNTIMES = Resource(_GROUP, _VERSION, "clustertrainingruntimes", "ClusterTrainingRuntime", False, ())
JOBSETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
RELEASES = ("2.1", "2.2")


def schemas(release: str = RELEASES[-1]) -> dict[Resource, Json]:
    """Return the schemas of a release."""
    runtime = whole(fields(mlPolicy=_ml_policy(), podGroupPolicy=ANYTHING, template=_jobset_template()), None, ())
    return {
        TRAINJOBS: _trainjob(release),
        RUNTIMES: runtime,
        CLUSTER_RUNTIMES: runtime,
        JOBSETS: whole(_jobset(), ANYTHING),
    }


def _trainjob(release: str) -> Json:
    has_patches = release == RELEASES[-1]
    reference = fields(
        ("name",), apiGroup=TEXT, kind={"type": "string", "default": "ClusterTrainingRuntime"}, name=TEXT
    )
    trainer = fields(
        args=array(TEXT), command=array(TEXT), env=array(built_in("EnvVar")), image=TEXT, numNodes=INTEGER,
        numProcPerNode=INTEGER if has_patches else QUANTITY,
        resourcesPerNode=fields(limits=mapping(QUANTITY), requests=mapping(QUANTITY), claims=array(ANYTHING)),
    )  # fmt: skip
    later = {"activeDeadlineSeconds": {"type": "integer", "minimum": 1}, "runtimePatches": array(_patch())}
    earlier = {"labels": mapping(TEXT), "annotations": mapping(TEXT), **_overrides()}
    spec = fields(
        ("runtimeRef",),
        initializer=ANYTHING, managedBy=TEXT, runtimeRef=reference, trainer=trainer,
        suspend={"type": "boolean", "default": False},
        **(later if has_patches else earlier),
    )  # fmt: skip
    return whole(spec, _status(), ())


def _status() -> Json:
    names = ("name", "ready", "succeeded", "failed", "active", "suspended")
    counted = fields(names, **dict.fromkeys(names[1:], INTEGER), name=TEXT)
    return fields(conditions=array(condition()), jobsStatus=array(counted), trainerStatus=ANYTHING)


def _overrides() -> Json:
    """Return how the earlier release changes the pods of a runtime."""
    target = array(fields(("name",), name=TEXT))
    spec = fields(**_pod_fields("2.1"))
    return {"podTemplateOverrides": array(fields(targetJobs=target, metadata=metadata(), spec=spec))}


def _pod_fields(release: str) -> Json:
    """Return what of a pod's spec can be changed."""
    container = {"name": TEXT, "env": array(built_in("EnvVar")), "volumeMounts": array(built_in("VolumeMount"))}
    if release == "2.2":
        container["securityContext"] = built_in("SecurityContext")
    containers = array(fields(("name",), **container))
    found: Json = {
        "containers": containers, "initContainers": containers, "nodeSelector": mapping(TEXT),
        "schedulingGates": array(built_in("PodSchedulingGate")), "serviceAccountName": TEXT,
        "tolerations": array(built_in("Toleration")), "volumes": array(built_in("Volume")),
        "affinity": built_in("Affinity"), "imagePullSecrets": array(built_in("LocalObjectReference")),
    }  # fmt: skip
    if release == "2.2":
        found["securityContext"] = built_in("PodSecurityContext")
        found["terminationGracePeriodSeconds"] = INTEGER
    return found


def _patch() -> Json:
    inner: Json = {"metadata": metadata()}
    pod = fields(**inner, spec=fields(**_pod_fields("2.2")))
    job = fields(**inner, spec=fields(template=pod))
    jobs = fields(replicatedJobs=array(fields(("name",), name=TEXT, template=job)))
    return fields(
        ("manager",), manager=TEXT, time=TEXT, trainingRuntimeSpec=fields(template=fields(**inner, spec=jobs))
    )


def _ml_policy() -> Json:
    return fields(numNodes=INTEGER, torch=ANYTHING, mpi=ANYTHING, jax=ANYTHING, xgboost=ANYTHING, flux=ANYTHING)


def _jobset_template() -> Json:
    return fields(metadata=metadata(), spec=_jobset())


def _jobset() -> Json:
    job = fields(("name", "template"), dependsOn=array(ANYTHING), groupName=TEXT, name=TEXT, replicas=INTEGER,
                 template=fields(metadata=metadata(), spec=built_in("JobSpec")))  # fmt: skip
    return fields(
        coordinator=ANYTHING, failurePolicy=ANYTHING, managedBy=TEXT, network=ANYTHING, replicatedJobs=array(job),
        startupPolicy=ANYTHING, successPolicy=ANYTHING, suspend=TRUTH, ttlSecondsAfterFinished=INTEGER,
    )  # fmt: skip


def runtime(name: str, framework: str, image: str, policy: Json | None = None) -> Json:
    """Return a runtime as its administrator installs it: one job, whose pods run the trial."""
    container = {"name": "node", "image": image}
    job = {
        "name": "node",
        "template": {
            "metadata": {"labels": {f"{_GROUP}/trainjob-ancestor-step": "trainer"}},
            "spec": {"template": {"spec": {"containers": [container]}}},
        },
    }
    return {
        "apiVersion": f"{_GROUP}/{_VERSION}",
        "kind": CLUSTER_RUNTIMES.kind,
        "metadata": {"name": name, "labels": {f"{_GROUP}/framework": framework}},
        "spec": {"mlPolicy": {"numNodes": 1, **(policy or {})}, "template": {"spec": {"replicatedJobs": [job]}}},
    }

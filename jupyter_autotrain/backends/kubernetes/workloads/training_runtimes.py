"""The runtimes of Kubeflow Trainer, which its administrator has installed, and how its releases want their TrainJobs.

A runtime brings an image and a JobSet. A trial can run in one whose trainer step is one replicated job: then all its
pods run the trial's program. In a runtime for MPI only the launcher would.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends.kubernetes.access.served import ServedCluster, TrialNeeds, properties
from jupyter_autotrain.backends.kubernetes.objects.fields import items, part, text
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.errors import BackendError

GROUP = "trainer.kubeflow.org"
CLUSTER_RUNTIMES = ObjectType(GROUP, "v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime")
RUNTIMES = ObjectType(GROUP, "v1alpha1", "trainingruntimes", "TrainingRuntime")
CONTAINER = "node"
_STEP_LABEL = f"{GROUP}/trainjob-ancestor-step"
_FRAMEWORK_LABEL = f"{GROUP}/framework"
_SUPPORT_LABEL = f"{GROUP}/support"
_PLAIN = ("plainml", "torch", "")
_PREFERRED = {
    "env": ("torch", "plainml", ""),
    "torchrun": ("torch", "plainml", ""),
    "mpi": ("mpi", *_PLAIN),
    "tensorflow": ("tensorflow", *_PLAIN),
    "paddle": ("paddle", *_PLAIN),
}


@dataclass(frozen=True, slots=True)
class Runtime:
    """A runtime that a TrainJob can name.

    Attributes:
        name: Of the object.
        kind: ClusterTrainingRuntime or TrainingRuntime.
        job: The replicated job of its trainer step.
        framework: By its label; "" without.
        jobs: How many replicated jobs it has; more than one bring a data set or a model.
        deprecated: Its label says so.
        gang: The scheduler of its policy for groups of pods: volcano, coscheduling, or "".
        fault: Why a trial cannot run in it; "" where it can.
    """

    name: str = "torch-distributed"
    kind: str = CLUSTER_RUNTIMES.kind
    job: str = "node"
    framework: str = "torch"
    jobs: int = 1
    deprecated: bool = False
    gang: str = ""
    fault: str = ""


def installed(served: ServedCluster, namespace: str) -> list[Runtime]:
    """Return all runtimes that a TrainJob in a namespace can name."""
    found = [_runtime(one, RUNTIMES.kind) for one in served.objects(RUNTIMES, namespace)]
    return found + [_runtime(one, CLUSTER_RUNTIMES.kind) for one in served.objects(CLUSTER_RUNTIMES, "")]


def _runtime(found: JsonObject, kind: str) -> Runtime:
    labels = part(found, "metadata", "labels")
    spec = part(found, "spec")
    jobs = items(spec, "template", "spec", "replicatedJobs")
    job = _trainer_job(jobs)
    return Runtime(
        name=text(found, "metadata", "name"),
        kind=kind,
        job=text(job, "name"),
        framework=str(labels.get(_FRAMEWORK_LABEL, "")),
        jobs=len(jobs),
        deprecated=labels.get(_SUPPORT_LABEL) == "deprecated",
        gang=next(iter(part(spec, "podGroupPolicy")), ""),
        fault=_fault(spec, job),
    )


def _trainer_job(jobs: Sequence[JsonObject]) -> JsonObject:
    for job in jobs:
        if part(job, "template", "metadata", "labels").get(_STEP_LABEL) == "trainer":
            return job
    return {}


def _fault(spec: JsonObject, job: JsonObject) -> str:
    if not job:
        return "no job of it is its trainer step"
    if "mpi" in part(spec, "mlPolicy"):
        return "its nodes only serve SSH to a launcher"
    containers = items(job, "template", "spec", "template", "spec", "containers")
    if CONTAINER not in [container.get("name") for container in containers]:
        return f"no container of it is named {CONTAINER}"
    return ""


def choose(runtimes: Sequence[Runtime], name: str, gang: str, needs: TrialNeeds) -> Runtime:
    """Choose the runtime for a trial: the one that is named, or that of the framework which does the least besides.

    Raises:
        BackendError: There is none that fits.
    """
    if name:
        return _named(runtimes, name)
    preferred = _PREFERRED.get(needs.launcher, _PLAIN)
    fit = [one for one in runtimes if not one.fault and one.framework in preferred]
    if gang:
        fit = [one for one in fit if one.gang == gang]
    if not fit:
        raise BackendError(_none_fits(runtimes, gang), f"One for {preferred[0]} was expected.", _WHAT_TO_DO)

    def rank(one: Runtime) -> tuple[int, bool, int, bool, str]:
        is_of_cluster = one.kind == CLUSTER_RUNTIMES.kind
        return preferred.index(one.framework), one.deprecated, one.jobs, is_of_cluster, one.name

    return min(fit, key=rank)


_WHAT_TO_DO = "Name one with `runtime:`, use another `kind:`, or `type: kubernetes`."


def _named(runtimes: Sequence[Runtime], name: str) -> Runtime:
    for one in runtimes:
        if one.name == name and one.fault:
            raise BackendError(f"A trial cannot run in the runtime {name}: {one.fault}.", "", _WHAT_TO_DO)
        if one.name == name:
            return one
    if not runtimes:  # they may not be listed, which needs a right of its own
        return Runtime(name)
    names = [one.name for one in runtimes]
    near = closest_match(name, names)
    expected = f"{near} was expected" if near else f"Installed are {', '.join(sorted(names))}"
    raise BackendError(f"The cluster has no runtime {name}.", f"{expected}.", _WHAT_TO_DO)


def _none_fits(runtimes: Sequence[Runtime], gang: str) -> str:
    if not runtimes:
        return "The cluster has no training runtime, or they may not be listed."
    told = [f"{one.name} ({one.fault or one.framework or 'no framework'})" for one in runtimes]
    with_gang = f" with the scheduler {gang}" if gang else ""
    return f"No training runtime of the cluster fits the trial{with_gang}: {', '.join(sorted(told))}."


_POD_SPEC = ("replicatedJobs", "template", "spec", "template", "spec")
_PATHS = {
    "runtimePatches": ("runtimePatches", "trainingRuntimeSpec", "template", "spec", *_POD_SPEC),
    "podTemplateOverrides": ("podTemplateOverrides", "spec"),
}
_WITHOUT_LABELS = "podSpecOverrides"  # of Trainer 2.0: it changes the spec of pods alone
_MANAGER = "jupyter-autotrain/trial"
_NEWEST_FIELDS = frozenset(
    {
        "affinity", "containers", "imagePullSecrets", "initContainers", "nodeSelector", "schedulingGates",
        "securityContext", "serviceAccountName", "terminationGracePeriodSeconds", "tolerations", "volumes",
    }
)  # fmt: skip
_NEWEST_CONTAINER_FIELDS = frozenset({"env", "name", "securityContext", "volumeMounts"})


@dataclass(frozen=True, slots=True)
class TrainJobLayout:
    """The fields of one release.

    Attributes:
        overrides: The field that changes the pods of the runtime.
        pod_fields: What it can change of a pod's spec.
        container_fields: What it can change of a container.
        has_deadline: Whether there is `activeDeadlineSeconds`.
        overrides_have_manager: Whether `podTemplateOverrides` says who has written it.
    """

    overrides: str = "runtimePatches"
    pod_fields: Collection[str] = _NEWEST_FIELDS
    container_fields: Collection[str] = _NEWEST_CONTAINER_FIELDS
    has_deadline: bool = True
    overrides_have_manager: bool = True

    def override(self, job: str, metadata: JsonObject, spec: JsonObject) -> JsonValue:
        """Return the value of the field that changes the pods.

        Args:
            job: The replicated job that is changed.
            metadata: Labels and annotations for its pods.
            spec: The part of the pods' spec.
        """
        if self.overrides == "podTemplateOverrides":
            manager = {"manager": _MANAGER} if self.overrides_have_manager else {}
            return [{**manager, "targetJobs": [{"name": job}], "metadata": metadata, "spec": spec}]
        pod = {"spec": {"template": {"metadata": metadata, "spec": spec}}}
        jobs: JsonValue = [{"name": job, "template": pod}]
        return [{"manager": _MANAGER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}]


def layout_of(schema: JsonObject) -> TrainJobLayout:
    """Return the layout that a served schema has; the newest one where it tells nothing.

    Raises:
        BackendError: It is that of a release whose pods cannot be labelled, so that they would not be found.
    """
    fields = properties(schema, "spec")
    for overrides, path in _PATHS.items():
        if overrides in fields:
            return TrainJobLayout(
                overrides=overrides,
                pod_fields=frozenset(properties(schema, "spec", *path)),
                container_fields=frozenset(properties(schema, "spec", *path, "containers")),
                has_deadline="activeDeadlineSeconds" in fields,
                overrides_have_manager="manager" in properties(schema, "spec", overrides),
            )
    if _WITHOUT_LABELS in fields:
        raise BackendError(
            "This Kubeflow Trainer is release 2.0, whose TrainJobs cannot label their pods.",
            "Trainer 2.1 or later was expected.",
            "Have it updated, or use `kind: PyTorchJob` where it is served.",
        )
    return TrainJobLayout()

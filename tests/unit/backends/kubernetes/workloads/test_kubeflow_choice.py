"""Which of Kubeflow's kinds a trial becomes on a cluster, and in which runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.access.served import TrialNeeds
from jupyter_autotrain.backends.kubernetes.kubeflow_backend import choose
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType, Workload
from jupyter_autotrain.backends.kubernetes.options.kubeflow_options import KubeflowOptions
from jupyter_autotrain.backends.kubernetes.workloads.training_runtimes import CLUSTER_RUNTIMES, RUNTIMES
from jupyter_autotrain.backends.kubernetes.workloads.trainjob import TrainJobWorkload
from jupyter_autotrain.errors import BackendError
from tests.unit.backends.kubernetes.kubeflow_cases import rendered

V1 = ("kubeflow.org/v1/pytorchjobs", "kubeflow.org/v1/mpijobs", "kubeflow.org/v1/tfjobs", "kubeflow.org/v1/paddlejobs")
V2 = "trainer.kubeflow.org/v1alpha1/trainjobs"
MPI = "kubeflow.org/v2beta1/mpijobs"
STEP = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}


def runtime(name: str, framework: str = "torch", **changes: Any) -> JsonObject:
    """Return a runtime as an administrator installs it."""
    pod = {"spec": {"containers": [{"name": changes.get("container", "node")}]}}
    job = {"name": "node", "template": {"metadata": {"labels": changes.get("step", STEP)}, "spec": {"template": pod}}}
    more = [{"name": "dataset-initializer"}] if changes.get("has_data") else []
    labels = {"trainer.kubeflow.org/framework": framework, **changes.get("labels", {})}
    spec = {"mlPolicy": {changes.get("policy", "torch"): {}}, "template": {"spec": {"replicatedJobs": [*more, job]}}}
    if "gang" in changes:
        spec["podGroupPolicy"] = {changes["gang"]: {}}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def fields(*path: str, **leaves: Any) -> JsonObject:
    """Return a schema with properties below a path."""
    schema: dict[str, Any] = {"type": "object", "properties": leaves}
    for name in reversed(path):
        is_list = name in ("runtimePatches", "podTemplateOverrides", "replicatedJobs")
        inner = {"type": "array", "items": schema} if is_list else schema
        schema = {"type": "object", "properties": {name: inner}}
    return schema


class Cluster:
    """A server with these kinds, runtimes and schemas."""

    def __init__(
        self,
        *kinds: str,
        runtimes: Sequence[JsonObject] = (),
        own: Sequence[JsonObject] = (),
        schemas: dict[str, JsonObject] | None = None,
    ) -> None:
        self.kinds = kinds
        self.found = {CLUSTER_RUNTIMES: runtimes, RUNTIMES: own}
        self.schemas = schemas or {}

    def has(self, object_type: ObjectType) -> bool:
        return f"{object_type.api_version}/{object_type.plural}" in self.kinds

    def schema(self, object_type: ObjectType) -> JsonObject:
        return self.schemas.get(f"{object_type.api_version}/{object_type.plural}", {})

    def objects(self, object_type: ObjectType, namespace: str) -> Sequence[JsonObject]:
        assert bool(namespace) == (object_type == RUNTIMES)
        return self.found[object_type]


def kind_of(workload: Workload) -> str:
    return f"{workload.object_type.kind} {workload.object_type.version}"


def chosen(cluster: Cluster | None, launcher: str = "env", **options: Any) -> Workload:
    elastic = bool(options.pop("elastic", False))
    return choose(cluster, options, TrialNeeds(launcher, 2, elastic, "team"))


def runtime_of(workload: Workload) -> str:
    assert isinstance(workload, TrainJobWorkload)
    return f"{workload.runtime.kind}/{workload.runtime.name}"


def test_the_newest_api_wins_and_kind_overrides_it() -> None:
    both = Cluster(*V1, V2, runtimes=[runtime("torch-distributed")])
    assert kind_of(chosen(both)) == "TrainJob v1alpha1"
    assert kind_of(chosen(both, kind="PyTorchJob")) == "PyTorchJob v1"
    assert kind_of(chosen(both, kind="TFJob")) == "TFJob v1"
    assert kind_of(chosen(Cluster(*V1))) == "PyTorchJob v1"
    assert kind_of(chosen(Cluster(*V1, MPI), kind="MPIJob")) == "MPIJob v2beta1"
    assert kind_of(chosen(Cluster(*V1), kind="MPIJob")) == "MPIJob v1"


@pytest.mark.parametrize(
    ("launcher", "kind"),
    [
        ("env", "PyTorchJob"),
        ("torchrun", "PyTorchJob"),
        ("mpi", "MPIJob"),
        ("tensorflow", "TFJob"),
        ("paddle", "PaddleJob"),
    ],
)
def test_of_the_training_operator_the_kind_is_that_of_the_launcher(launcher: str, kind: str) -> None:
    assert kind_of(chosen(Cluster(*V1), launcher)) == f"{kind} v1"


def test_a_kind_that_runs_any_program_stands_in_for_one_that_is_not_served() -> None:
    assert kind_of(chosen(Cluster("kubeflow.org/v1/pytorchjobs"), "mpi")) == "PyTorchJob v1"
    assert kind_of(chosen(Cluster(MPI), "torchrun")) == "MPIJob v2beta1"


def test_an_elastic_trial_is_a_pytorchjob_since_no_other_makes_lost_nodes_again() -> None:
    both = Cluster(*V1, V2, runtimes=[runtime("torch-distributed")])
    assert kind_of(chosen(both, "torchrun", elastic=True)) == "PyTorchJob v1"
    with pytest.raises(BackendError, match="does not make a lost node again"):
        chosen(both, "torchrun", elastic=True, kind="TrainJob")


def test_a_cluster_without_kubeflow_is_told_with_what_to_do() -> None:
    with pytest.raises(BackendError, match="serves none of these kinds: TrainJob, PyTorchJob") as caught:
        chosen(Cluster())
    assert "type: kubernetes" in caught.value.action


def test_without_a_cluster_the_newest_release_is_assumed() -> None:
    assert runtime_of(chosen(None)) == "ClusterTrainingRuntime/torch-distributed"
    assert runtime_of(chosen(None, runtime="mine")) == "ClusterTrainingRuntime/mine"
    assert kind_of(chosen(None, kind="MPIJob")) == "MPIJob v2beta1"
    assert kind_of(chosen(None, "torchrun", elastic=True)) == "PyTorchJob v1"


STOCK = (
    runtime("deepspeed-distributed", "deepspeed", policy="mpi", step={}),
    runtime("mpi-distributed", "mpi", policy="mpi"),
    runtime("torch-distributed"),
    runtime("torch-distributed-with-data-cache", has_data=True),
    runtime("torch-old", labels={"trainer.kubeflow.org/support": "deprecated"}),
    runtime("torchtune-llama", "torchtune"),
)


def test_the_runtime_is_the_one_of_the_framework_that_does_the_least_besides() -> None:
    assert runtime_of(chosen(Cluster(V2, runtimes=STOCK))) == "ClusterTrainingRuntime/torch-distributed"
    own = [runtime("of-the-team")]
    assert runtime_of(chosen(Cluster(V2, runtimes=STOCK, own=own))) == "TrainingRuntime/of-the-team"


def test_a_runtime_for_mpi_whose_nodes_only_serve_ssh_is_passed_over() -> None:
    assert runtime_of(chosen(Cluster(V2, runtimes=STOCK), "mpi")) == "ClusterTrainingRuntime/torch-distributed"
    plain = runtime("mpi-images", "mpi", policy="numNodes")
    assert runtime_of(chosen(Cluster(V2, runtimes=[*STOCK, plain]), "mpi")) == "ClusterTrainingRuntime/mpi-images"


def test_a_runtime_that_is_named_is_used_or_refused_with_the_reason() -> None:
    cluster = Cluster(V2, runtimes=STOCK)
    assert runtime_of(chosen(cluster, runtime="torchtune-llama")).endswith("/torchtune-llama")
    with pytest.raises(BackendError, match="its nodes only serve SSH"):
        chosen(cluster, runtime="mpi-distributed")
    with pytest.raises(BackendError, match="no runtime torch-distribute") as caught:
        chosen(cluster, runtime="torch-distribute")
    assert "torch-distributed was expected" in caught.value.expected
    assert runtime_of(chosen(Cluster(V2), runtime="mine")) == "ClusterTrainingRuntime/mine"  # they may not be listed


def test_without_a_fitting_runtime_the_training_operator_is_used_or_the_runtimes_are_told() -> None:
    deepspeed = [STOCK[0]]
    assert kind_of(chosen(Cluster(*V1, V2, runtimes=deepspeed))) == "PyTorchJob v1"
    with pytest.raises(BackendError, match=r"deepspeed-distributed \(no job of it is its trainer step\)"):
        chosen(Cluster(V2, runtimes=deepspeed))
    with pytest.raises(BackendError, match="no training runtime, or they may not be listed"):
        chosen(Cluster(V2))


def test_with_a_scheduler_for_gangs_the_runtime_is_one_that_has_it() -> None:
    gang = runtime("torch-gang", gang="volcano")
    cluster = Cluster(V2, runtimes=[*STOCK, gang])
    assert runtime_of(chosen(cluster, scheduler="volcano")) == "ClusterTrainingRuntime/torch-gang"
    with pytest.raises(BackendError, match="with the scheduler volcano"):
        chosen(Cluster(V2, runtimes=STOCK), scheduler="volcano")


POD = ("replicatedJobs", "template", "spec", "template", "spec")
LAYOUTS = {
    "runtimePatches": ("spec", "runtimePatches", "trainingRuntimeSpec", "template", "spec", *POD),
    "podTemplateOverrides": ("spec", "podTemplateOverrides", "spec"),
}


def test_a_trainer_whose_pods_cannot_be_labelled_is_not_used() -> None:
    """They would never be found: the trial would end as failed though it ran."""
    schema = fields("spec", podSpecOverrides={})
    with pytest.raises(BackendError, match=r"release 2\.0") as caught:
        chosen(Cluster(V2, runtimes=STOCK, schemas={V2: schema}))
    assert "Trainer 2.1 or later" in caught.value.expected
    both = chosen(Cluster(V2, *V1, runtimes=STOCK, schemas={V2: schema}))
    assert kind_of(both) == "PyTorchJob v1"


@pytest.mark.parametrize("overrides", LAYOUTS)
def test_the_pods_of_a_trainjob_are_changed_by_the_field_that_the_server_has(overrides: str) -> None:
    container = {"type": "array", "items": fields(name={}, volumeMounts={})}
    schema = fields(*LAYOUTS[overrides], volumes={}, containers=container, nodeSelector={}, tolerations={})
    cluster = Cluster(V2, runtimes=STOCK, schemas={V2: schema})
    spec = rendered(chosen(cluster), {"node_selector": {"pool": "x"}}, timeout_s=5.0)[0]["spec"]
    assert sorted(name for name in spec if name in LAYOUTS) == [overrides]
    assert "activeDeadlineSeconds" not in spec  # it came later
    assert "{'pool': 'x'}" in str(spec[overrides])
    with pytest.raises(BackendError, match="serviceAccountName"):
        rendered(chosen(cluster), {"service_account": "trainer"})


def test_an_mpijob_runs_in_its_launcher_too_where_the_server_knows_that() -> None:
    for known in (True, False):
        leaves = {"runLauncherAsWorker": {}} if known else {"slotsPerWorker": {}}
        cluster = Cluster(MPI, schemas={MPI: fields("spec", **leaves)})
        found, *services = rendered(chosen(cluster, "mpi"), {}, launcher="mpi", nodes=2)
        assert ("runLauncherAsWorker" in found["spec"]) is known
        assert bool(services) is not known  # else the operator names the launcher


def test_the_options_take_a_kind_in_any_letter_case_and_refuse_an_unknown_one() -> None:
    assert KubeflowOptions.model_validate({"kind": "pytorchjob", "runtime": "mine"}).kind == "PyTorchJob"
    with pytest.raises(ValueError, match="MPIJob"):
        KubeflowOptions.model_validate({"kind": "MPIJobs"})

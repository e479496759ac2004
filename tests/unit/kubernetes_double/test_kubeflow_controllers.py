"""Kubeflow's controllers of the double: pods, names, labels, variables, conditions, as the operators have them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.objects.workload import Workload
from jupyter_autotrain.backends.kubernetes.workloads.training_operator import (
    MPIJobWorkload,
    PyTorchJobWorkload,
    mpijob_v1,
    paddlejob,
    tfjob,
)
from jupyter_autotrain.backends.kubernetes.workloads.training_runtimes import layout_of
from jupyter_autotrain.backends.kubernetes.workloads.trainjob import TrainJobWorkload
from tests.labs.kubernetes import kubeflow
from tests.labs.kubernetes.controllers.garbage_collector import GarbageCollector
from tests.labs.kubernetes.controllers.job import JobController
from tests.labs.kubernetes.controllers.loop import ControlLoop
from tests.labs.kubernetes.custom import trainer, training_operator
from tests.labs.kubernetes.objects.errors import ApiError
from tests.labs.kubernetes.objects.metadata import copied
from tests.labs.kubernetes.objects.resources import (
    CONFIG_MAPS,
    JOBS,
    NAMESPACES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from tests.labs.kubernetes.store.object_store import ObjectStore
from tests.unit.backends.kubernetes.kubeflow_cases import FULL, request
from tests.unit.backends.kubernetes.kubeflow_cases import rendered as manifests_of

TEAM = "team"
PLAIN = {name: value for name, value in FULL.items() if name not in ("image_pull_secrets", "service_account")}
Json = dict[str, Any]


def pods_of(workload: Workload, name: str) -> str:
    is_trainjob = isinstance(workload, TrainJobWorkload)
    return f"{'jobset.sigs.k8s.io/jobset-name' if is_trainjob else 'training.kubeflow.org/job-name'}={name}"


def until(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < deadline, f"still waiting for {what}"
        time.sleep(0.005)
    return found


class Cluster:
    """Objects and controllers, without nodes: the tests say how pods are."""

    def __init__(self) -> None:
        self.store = ObjectStore()
        self.store.create(NAMESPACES, "", {"metadata": {"name": TEAM}})
        self.store.create(SERVICE_ACCOUNTS, TEAM, {"metadata": {"name": "trainer"}})
        self.loop = ControlLoop(self.store)
        self.loop.add(JobController(self.store, self.loop, 0.05))
        self.loop.add(GarbageCollector(self.store, self.loop))
        for make in kubeflow.CONTROLLERS:
            self.loop.add(make(self.store, self.loop))

    def resource(self, workload: Workload) -> Resource:
        object_type = workload.object_type
        found = self.store.resources.find(object_type.group, object_type.version, object_type.plural)
        assert found is not None
        return found

    def create(self, workload: Workload, options: Json | None = None, **needs: Any) -> str:
        for manifest in manifests_of(workload, options or {}, **needs):
            resource = self.store.resources.of_kind(manifest["apiVersion"], manifest["kind"])
            assert resource is not None
            self.store.create(resource, TEAM, json.loads(json.dumps(manifest)))
        return request(workload, {}, **needs).name

    def get(self, workload: Workload, name: str) -> Json:
        return self.store.get(self.resource(workload), TEAM, name)

    def found_pods(self, selector: str = "") -> dict[str, Json]:
        found = self.store.list(PODS, TEAM, selector)[0]
        return {pod["metadata"]["name"]: pod for pod in found if "deletionTimestamp" not in pod["metadata"]}

    def pods(self, count: int, selector: str = "") -> dict[str, Json]:
        def found() -> list[dict[str, Json]]:
            now = self.found_pods(selector)
            return [now] if len(now) == count else []

        pods: dict[str, Json] = until(found, f"{count} pods")[0]
        return pods

    def say(self, pod: str, phase: str, container: str = "", exit_code: int | None = None) -> None:
        """Tell the status of a pod, as its kubelet does."""
        ready = {"type": "Ready", "status": "True" if phase == "Running" else "False"}
        status: Json = {"phase": phase, "conditions": [ready]}
        if exit_code is not None:
            ended = {"terminated": {"exitCode": exit_code}}
            told = {"name": container, "state": ended, "ready": False, "restartCount": 0, "image": "x", "imageID": ""}
            status["containerStatuses"] = [told]
        self.store.patch(PODS, TEAM, pod, {"status": status}, subresource="status")

    def until_state(self, workload: Workload, name: str, state: TrialState) -> None:
        until(lambda: workload.state(self.get(workload, name), []).state is state, state)

    def labels(self, pod: Json) -> Json:
        found = pod["metadata"]["labels"]
        return {key.rpartition("/")[2]: value for key, value in found.items() if "kubeflow.org" in key}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    found = Cluster()
    kubeflow.install(found.store)
    found.loop.start()
    yield found
    found.loop.stop()
    assert found.loop.errors == []


def variables(pod: Json) -> Json:
    return {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}


def test_a_pytorchjob_has_a_master_and_workers_with_their_ranks_and_services(cluster: Cluster) -> None:
    workload = PyTorchJobWorkload()
    name = cluster.create(workload, FULL, nodes=3, workers_per_node=2)
    pods = cluster.pods(3, pods_of(workload, name))
    assert sorted(pods) == [f"{name}-master-0", f"{name}-worker-0", f"{name}-worker-1"]
    assert [variables(pods[pod])["RANK"] for pod in sorted(pods)] == ["0", "1", "2"]
    worker = variables(pods[f"{name}-worker-1"])
    assert (worker["MASTER_ADDR"], worker["WORLD_SIZE"], worker["PET_NNODES"]) == (f"{name}-master-0", "6", "3")
    assert cluster.labels(pods[f"{name}-worker-1"]) == {
        "operator-name": "pytorchjob-controller", "job-name": name, "replica-type": "worker", "replica-index": "1",
    }  # fmt: skip
    assert cluster.labels(pods[f"{name}-master-0"])["job-role"] == "master"
    assert pods[f"{name}-worker-0"]["spec"]["initContainers"][0]["name"] == "init-pytorch"
    names = lambda: sorted(one["metadata"]["name"] for one in cluster.store.list(SERVICES, TEAM)[0])  # noqa: E731 - short
    until(lambda: names() == sorted(pods), "a service of each pod")


def test_a_pytorchjob_ends_with_its_master_or_fails_with_any_replica(cluster: Cluster) -> None:
    workload = PyTorchJobWorkload()
    name = cluster.create(workload, nodes=2)
    cluster.pods(2)
    cluster.say(f"{name}-master-0", "Running")
    cluster.until_state(workload, name, TrialState.RUNNING)
    cluster.say(f"{name}-master-0", "Succeeded", "pytorch", 0)
    cluster.until_state(workload, name, TrialState.SUCCEEDED)
    running = [one["status"] for one in cluster.get(workload, name)["status"]["conditions"] if one["type"] == "Running"]
    assert running == ["False"]
    cluster.store.delete(training_operator.PYTORCHJOBS, TEAM, name)
    cluster.pods(0)
    name = cluster.create(workload, nodes=2)
    cluster.pods(2)
    cluster.say(f"{name}-worker-0", "Failed", "pytorch", 1)
    cluster.until_state(workload, name, TrialState.FAILED)


def test_a_lost_worker_of_an_elastic_pytorchjob_is_made_again_but_not_one_that_failed(
    cluster: Cluster,
) -> None:
    workload = PyTorchJobWorkload()
    name = cluster.create(workload, launcher="torchrun", nodes=3, min_nodes=1)
    pods = cluster.pods(3)
    assert variables(pods[f"{name}-worker-0"])["PET_RDZV_ENDPOINT"] == f"{name}-master-0:23456"
    assert variables(pods[f"{name}-worker-0"])["PET_NNODES"] == "1:3"
    lost = pods[f"{name}-worker-1"]["metadata"]["uid"]
    cluster.say(f"{name}-worker-1", "Failed", "pytorch", 137)
    until(lambda: lost not in {pod["metadata"]["uid"] for pod in cluster.pods(3).values()}, "another pod")
    cluster.until_state(workload, name, TrialState.RUNNING)
    cluster.say(f"{name}-worker-0", "Failed", "pytorch", 1)
    cluster.until_state(workload, name, TrialState.FAILED)


def test_an_elastic_pytorchjob_shrinks_when_its_workers_are_scaled(cluster: Cluster) -> None:
    name = cluster.create(PyTorchJobWorkload(), launcher="torchrun", nodes=3, min_nodes=1)
    cluster.pods(3)
    fewer = {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1}}}}
    cluster.store.patch(training_operator.PYTORCHJOBS, TEAM, name, fewer)
    assert sorted(cluster.pods(2)) == [f"{name}-master-0", f"{name}-worker-0"]


@pytest.mark.parametrize("workload", [PyTorchJobWorkload(), tfjob(), paddlejob(), mpijob_v1()])
def test_a_suspended_job_has_no_pods_until_it_goes_on(cluster: Cluster, workload: Workload) -> None:
    (manifest, *_) = copied(manifests_of(workload, {}, nodes=1))
    manifest = json.loads(json.dumps(manifest))
    manifest["spec"]["runPolicy"]["suspend"] = True
    resource = cluster.resource(workload)
    cluster.store.create(resource, TEAM, manifest)
    name = manifest["metadata"]["name"]

    def conditions() -> Json:
        found = cluster.get(workload, name).get("status", {}).get("conditions", ())
        return {one["type"]: one["status"] for one in found}

    until(lambda: conditions().get("Suspended") == "True", "the condition")
    assert workload.state(cluster.get(workload, name), []).state is TrialState.PREPARING
    cluster.pods(0)
    cluster.store.patch(resource, TEAM, name, {"spec": {"runPolicy": {"suspend": False}}})
    cluster.pods(1)
    until(lambda: conditions().get("Suspended") == "False", "the condition")


def test_a_job_over_its_time_limit_fails_and_its_pods_are_deleted(cluster: Cluster) -> None:
    workload = PyTorchJobWorkload()
    name = cluster.create(workload, {"patch": {"spec": {"runPolicy": {"activeDeadlineSeconds": 1}}}})
    cluster.until_state(workload, name, TrialState.FAILED)
    assert "limit of 1 s" in workload.state(cluster.get(workload, name), []).reason
    cluster.pods(0)


def test_a_finished_job_goes_after_its_time_to_live(cluster: Cluster) -> None:
    workload = PyTorchJobWorkload()
    name = cluster.create(workload, {"ttl": 1.0})
    cluster.pods(1)
    cluster.say(f"{name}-master-0", "Succeeded", "pytorch", 0)
    until(lambda: not cluster.store.list(training_operator.PYTORCHJOBS, TEAM)[0], "its end")
    cluster.pods(0)


def test_a_tfjob_tells_its_cluster_and_ends_with_worker_0(cluster: Cluster) -> None:
    workload = tfjob()
    name = cluster.create(workload, nodes=2)
    pods = cluster.pods(2, pods_of(workload, name))
    config = json.loads(variables(pods[f"{name}-worker-1"])["TF_CONFIG"])
    assert config["task"] == {"type": "worker", "index": 1}
    assert config["cluster"] == {"worker": [f"{name}-worker-{index}.team.svc:2222" for index in range(2)]}
    cluster.say(f"{name}-worker-0", "Succeeded", "tensorflow", 0)
    cluster.until_state(workload, name, TrialState.SUCCEEDED)


def test_a_paddlejob_ends_when_all_workers_have(cluster: Cluster) -> None:
    workload = paddlejob()
    name = cluster.create(workload, nodes=2)
    pods = cluster.pods(2, pods_of(workload, name))
    assert variables(pods[f"{name}-worker-1"])["PADDLE_MASTER"] == f"{name}-worker-0:36543"
    cluster.say(f"{name}-worker-1", "Running")
    cluster.say(f"{name}-worker-0", "Succeeded", "paddle", 0)
    cluster.until_state(workload, name, TrialState.RUNNING)
    cluster.say(f"{name}-worker-1", "Succeeded", "paddle", 0)
    cluster.until_state(workload, name, TrialState.SUCCEEDED)


@pytest.mark.parametrize("is_worker", [True, False])
def test_an_mpijob_of_the_mpi_operator_has_a_launcher_job_and_workers(cluster: Cluster, is_worker: bool) -> None:
    kubeflow.install(cluster.store, mpi_operator="0.8" if is_worker else "0.4")
    workload = MPIJobWorkload(launcher_is_worker=is_worker)
    name = cluster.create(workload, PLAIN, launcher="mpi", nodes=3)
    pods = cluster.pods(3, pods_of(workload, name))
    (launcher,) = [pod for pod in pods.values() if cluster.labels(pod)["job-role"] == "launcher"]
    workers = [pods[f"{name}-worker-{index}"] for index in range(2)]
    numbers = [cluster.labels(pod)["replica-index"] for pod in workers]
    assert numbers == (["1", "2"] if is_worker else ["0", "1"])
    assert {pod["spec"]["subdomain"] for pod in pods.values()} == {name if is_worker else f"{name}-worker"}
    named = {one["metadata"]["name"]: one["spec"]["selector"] for one in cluster.store.list(SERVICES, TEAM)[0]}
    own = launcher["metadata"]["labels"]
    reached = [service for service, selector in named.items() if selector.items() <= own.items()]
    assert reached == [name if is_worker else f"{name}-launcher"]
    assert launcher["spec"]["hostname"] == f"{name}-launcher"
    assert variables(launcher)["K_MPI_JOB_ROLE"] == "launcher"
    assert ("NVIDIA_DRIVER_CAPABILITIES" in variables(launcher)) is not is_worker
    hosts = cluster.store.get(CONFIG_MAPS, TEAM, f"{name}-config")["data"]["hostfile"]
    assert hosts.count("slots=1") == (3 if is_worker else 2)
    assert cluster.store.get(SECRETS, TEAM, f"{name}-ssh")["type"] == "kubernetes.io/ssh-auth"
    for pod in pods:
        cluster.say(pod, "Running")
    cluster.until_state(workload, name, TrialState.RUNNING)
    cluster.say(launcher["metadata"]["name"], "Succeeded", "mpi", 0)
    cluster.until_state(workload, name, TrialState.SUCCEEDED)


def test_an_mpijob_whose_launcher_failed_is_not_tried_again(cluster: Cluster) -> None:
    kubeflow.install(cluster.store, mpi_operator="0.8")
    workload = MPIJobWorkload()
    name = cluster.create(workload, launcher="mpi")
    (launcher,) = cluster.pods(1)
    cluster.say(launcher, "Failed", "mpi", 1)
    cluster.until_state(workload, name, TrialState.FAILED)


def test_an_mpijob_of_the_training_operator_has_pods_alone(cluster: Cluster) -> None:
    workload = mpijob_v1()
    name = cluster.create(workload, launcher="mpi", nodes=3)
    pods = cluster.pods(3, pods_of(workload, name))
    assert sorted(pods) == [f"{name}-launcher", f"{name}-worker-0", f"{name}-worker-1"]
    (service,) = cluster.store.list(SERVICES, TEAM)[0]
    selector = service["spec"]["selector"]
    behind = [pod for pod, found in pods.items() if selector.items() <= found["metadata"]["labels"].items()]
    assert behind == [f"{name}-launcher"]
    cluster.say(f"{name}-launcher", "Succeeded", "mpi", 0)
    cluster.until_state(workload, name, TrialState.SUCCEEDED)


@pytest.mark.parametrize("release", trainer.RELEASES)
def test_a_trainjob_becomes_a_jobset_of_its_runtime_in_each_release(cluster: Cluster, release: str) -> None:
    kubeflow.install(cluster.store, release=release)
    schema = cluster.store.resources.schema(trainer.TRAINJOBS)
    assert schema is not None
    workload = TrainJobWorkload(layout=layout_of(schema))
    name = cluster.create(workload, PLAIN, nodes=2, workers_per_node=2)
    pods = sorted(cluster.pods(2, pods_of(workload, name)).values(), key=lambda pod: pod["spec"]["hostname"])
    assert [pod["spec"]["hostname"] for pod in pods] == [f"{name}-node-0-0", f"{name}-node-0-1"]
    assert pods[0]["spec"]["subdomain"] == name
    assert pods[0]["spec"]["nodeSelector"] == {"pool": "training"}
    container = pods[1]["spec"]["containers"][0]
    assert (container["name"], container["image"]) == ("node", "lab/torch:1")
    assert "/autotrain/run" in [mount["mountPath"] for mount in container["volumeMounts"]]
    own = variables(pods[1])
    assert (own["PET_NNODES"], own["PET_NPROC_PER_NODE"]) == ("2", "2")
    assert own["AUTOTRAIN_FIRST_ADDRESS"] == f"{name}-node-0-0.{name}"
    assert "jupyter-autotrain/job" in pods[0]["metadata"]["labels"]
    for pod in pods:
        cluster.say(pod["metadata"]["name"], "Running")
    cluster.until_state(workload, name, TrialState.RUNNING)
    for pod in pods:
        cluster.say(pod["metadata"]["name"], "Succeeded", "node", 0)
    cluster.until_state(workload, name, TrialState.SUCCEEDED)
    cluster.store.delete(trainer.TRAINJOBS, TEAM, name)
    until(lambda: not cluster.store.list(JOBS, TEAM)[0] and not cluster.store.list(trainer.JOBSETS, TEAM)[0], "its end")


def suspended_trainjob(cluster: Cluster, workload: Workload, options: Json) -> str:
    (manifest,) = json.loads(json.dumps(manifests_of(workload, options)))
    manifest["spec"]["suspend"] = True
    cluster.store.create(trainer.TRAINJOBS, TEAM, manifest)
    until(lambda: cluster.store.list(JOBS, TEAM)[0], "the job")
    name: str = manifest["metadata"]["name"]
    return name


def test_a_suspended_trainjob_has_no_pods_until_it_goes_on(cluster: Cluster) -> None:
    workload = TrainJobWorkload()
    name = suspended_trainjob(cluster, workload, {})
    cluster.pods(0)
    assert workload.state(cluster.get(workload, name), []).state is TrialState.PREPARING
    cluster.store.patch(trainer.TRAINJOBS, TEAM, name, {"spec": {"suspend": False}})
    cluster.pods(1)


def test_a_trainjob_over_its_limit_of_time_fails_and_says_so(cluster: Cluster) -> None:
    workload = TrainJobWorkload()
    name = suspended_trainjob(cluster, workload, {"patch": {"spec": {"activeDeadlineSeconds": 1}}})
    cluster.store.patch(trainer.TRAINJOBS, TEAM, name, {"spec": {"suspend": False}})
    cluster.until_state(workload, name, TrialState.FAILED)
    assert "limit of 1 s" in workload.state(cluster.get(workload, name), []).reason


def refused(cluster: Cluster, workload: Workload, change: Callable[[Json], Any]) -> str:
    (manifest, *_) = json.loads(json.dumps(manifests_of(workload, {}, nodes=2)))
    change(manifest)
    with pytest.raises(ApiError) as caught:
        cluster.store.create(cluster.resource(workload), TEAM, manifest)
    return str(caught.value)


def rename(roles: str, manifest: Json) -> None:
    for role in manifest["spec"][roles].values():
        role["template"]["spec"]["containers"][0]["name"] = "trial"


def test_webhooks_refuse_what_schemas_cannot_say(cluster: Cluster) -> None:
    told = refused(cluster, PyTorchJobWorkload(), partial(rename, "pytorchReplicaSpecs"))
    assert "must have at least one container with name pytorch" in told
    told = refused(cluster, TrainJobWorkload(), lambda one: one["spec"]["runtimeRef"].update(name="none"))
    assert "specified runtime must be created" in told
    reserved = [{"name": "PET_NNODES", "value": "1"}]
    told = refused(cluster, TrainJobWorkload(), lambda one: one["spec"]["trainer"].update(env=reserved))
    assert "must not have reserved envs" in told

"""Trials as AdaptDLJobs: what is rendered, and what their phases mean."""

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.adaptdl_backend import AdaptDLJob
from jupyter_autotrain.errors import BackendError
from tests.unit.backends.kubernetes.goldens import check_golden
from tests.unit.backends.kubernetes.pods import ended_container, pod, unschedulable, waiting_container
from tests.unit.backends.kubernetes.requests import OPTIONS, request

WORKLOAD = AdaptDLJob()
NAME = WORKLOAD.object_name("ab12-3-1", "home")


def state(phase, *pods, group=None, **status):
    return WORKLOAD.state({"status": {"phase": phase, "group": group, **status}}, list(pods))


def test_the_golden_manifest_is_as_it_was(request_golden):
    check_golden(request_golden, "adaptdljob.json", WORKLOAD.render(request(NAME, nodes=4, min_nodes=1)))


def test_a_name_has_room_for_the_host_names_of_all_groups():
    name = WORKLOAD.object_name("x" * 100, "home")
    assert len(f"{name}-9999-9999") <= 63
    assert name == WORKLOAD.object_name("x" * 100, "home")
    assert name != WORKLOAD.object_name("x" * 100, "another home")
    assert WORKLOAD.object_name("ab12-3-1", "h") != WORKLOAD.object_name("ab12-31", "h")


def test_a_volume_at_dev_shm_is_left_to_adaptdl():
    (job,) = WORKLOAD.render(request(NAME))
    spec = job["spec"]["template"]["spec"]
    assert "/dev/shm" not in [mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]]
    assert "shared-memory" not in [volume["name"] for volume in spec["volumes"]]


def test_replicas_come_from_nodes_and_from_options():
    def replicas(**options):
        spec = WORKLOAD.render(request(NAME, nodes=2, options={**OPTIONS, **options}))[0]["spec"]
        return spec["minReplicas"], spec["maxReplicas"]

    assert replicas() == (2, 2)
    assert replicas(min_replicas=0) == (0, 2)
    assert replicas(min_replicas=1, max_replicas=8) == (1, 8)


def test_a_job_may_be_preempted_where_its_checkpoints_outlive_a_pod_and_where_that_is_asked_for():
    (kept,) = WORKLOAD.render(request(NAME))
    assert kept["spec"]["preemptible"] is True
    (not_kept,) = WORKLOAD.render(request(NAME, options={"storage": {"s3": {"bucket": "team"}}}))
    assert not_kept["spec"]["preemptible"] is False
    (asked,) = WORKLOAD.render(request(NAME, options={**OPTIONS, "preemptible": False}))
    assert asked["spec"]["preemptible"] is False
    (at_once,) = WORKLOAD.render(request(NAME, nodes=2, options={"preemptible": True}))
    assert at_once["spec"] | {"template": None} == {
        "minReplicas": 2, "maxReplicas": 2, "preemptible": True, "template": None
    }  # fmt: skip


@pytest.mark.parametrize("options", [{"preemptible": True, "min_replicas": 1}, {"min_replicas": 1}])
def test_an_elastic_job_without_a_volume_is_refused(options):
    with pytest.raises(BackendError, match="nothing that it saves outlives its pods"):
        WORKLOAD.render(request(NAME, nodes=2, options=options))


def test_more_least_than_most_replicas_are_refused():
    with pytest.raises(BackendError, match="`min_replicas` 5 is more than `max_replicas` 2"):
        WORKLOAD.render(request(NAME, options={**OPTIONS, "min_replicas": 5, "max_replicas": 2}))


def test_a_checkpoint_volume_is_claimed_with_the_job_and_mounted():
    checkpoint = {"storage_class": "nfs", "size": 3_000_000_000}
    job, claim = WORKLOAD.render(request(NAME, nodes=2, options={"checkpoint": checkpoint}))
    assert claim["metadata"]["name"] == job["metadata"]["name"]
    assert claim["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "2862Mi"}},
        "storageClassName": "nfs",
    }
    spec = job["spec"]["template"]["spec"]
    assert spec["volumes"][-1]["persistentVolumeClaim"] == {"claimName": NAME}
    mounts = {mount["mountPath"]: mount for mount in spec["containers"][0]["volumeMounts"]}
    assert {mounts[path]["name"] for path in ("/autotrain/storage", "/autotrain/run")} == {spec["volumes"][-1]["name"]}


def test_what_a_pod_makes_lies_on_the_volume_one_folder_for_each_replica_with_the_checkpoints_of_all():
    storage = {"storage": {"pvc": "training", "sub_path": "team/ada"}}
    (job,) = WORKLOAD.render(request(NAME, nodes=2, options=storage))
    spec = job["spec"]["template"]["spec"]
    mounts = {mount["mountPath"]: mount for mount in spec["containers"][0]["volumeMounts"]}
    folder = "team/ada/experiments/0123456789ab/ab12/3-1"
    assert mounts["/autotrain/run"]["subPathExpr"] == f"{folder}/node-$(ADAPTDL_REPLICA_RANK)"
    assert mounts["/autotrain/run/trial/checkpoints"]["subPath"] == f"{folder}/checkpoints"
    assert mounts["/autotrain/storage"]["subPath"] == "team/ada"
    assert [volume["name"] for volume in spec["volumes"]].count("storage") == 1


def test_one_replica_claims_a_volume_of_one_node():
    _, claim = WORKLOAD.render(request(NAME, options={"checkpoint": {}}))
    assert claim["spec"] == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}


def test_before_its_first_pods_it_says_what_it_waits_for():
    assert state("").reason == "waits for AdaptDL's scheduler"
    assert state("Pending").reason == "waits for AdaptDL to give it nodes: none has room now for a replica of it"
    pinned = WORKLOAD.state({"spec": {"preemptible": False}, "status": {"phase": "Pending"}}, [])
    assert "looks once a minute at jobs that it may not preempt" in pinned.reason
    assert "`checkpoint:` or `preemptible: true`" in pinned.reason
    assert state("Pending", allocation=["n1"]).reason == "waits for AdaptDL to make its pods"
    full = pod(conditions=unschedulable("0/2 nodes are available: 2 Insufficient cpu."))
    assert state("Starting", full, group=0).reason.startswith("waits for a node with room: 0 of 2")
    image = pod(node="n1", containers=[waiting_container("ImagePullBackOff", "not found")])
    found = state("Starting", image, group=0)
    assert found.state is TrialState.PREPARING
    assert "waits for its image" in found.reason


def test_while_it_is_rescaled_it_goes_on_running():
    assert state("Running", group=0) == state("Running", group=7)
    for phase, status, expected in [
        ("Stopping", {"group": 0}, "saves its checkpoint: AdaptDL gives it other replicas"),
        ("Pending", {"group": 0}, "waits for AdaptDL to start it with other replicas"),
        ("Starting", {"group": 1, "replicas": 2}, "with 2 replicas; it goes on from its checkpoint"),
        ("Starting", {"group": 2, "replicas": 1}, "with 1 replica; it goes on"),
    ]:
        found = state(phase, **status)
        assert found.state is TrialState.RUNNING
        assert expected in found.reason


def test_its_end_is_told_by_its_pods_or_by_adaptdl():
    assert state("Succeeded").state is TrialState.SUCCEEDED
    killed = pod("Failed", containers=[ended_container(137, "OOMKilled")])
    found = state("Failed", killed, reason="PodFailure", message="x-0-0 Failed")
    assert (found.state, found.reason[:13]) == (TrialState.FAILED, "Out of memory")
    assert state("Failed", reason="Invalid", message="incorrect node for pod x").reason == (
        "AdaptDL says it failed: incorrect node for pod x"
    )
    refused = 'pods "x" is forbidden: exceeded quota: gpus, requested: pods=1, used: pods=4, limited: pods=4'
    assert (
        "the quota gpus of its namespace is used up"
        in state("Failed", reason="PodCreationError", message=refused).reason
    )

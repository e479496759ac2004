"""Tests of why a trial waits and ended, in a user's words, from pods and events as servers send them."""

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.objects import pending_reasons, trial_reasons
from jupyter_autotrain.backends.kubernetes.objects.workload import Obstacle
from tests.unit.backends.kubernetes.pods import (
    disruption,
    ended_container,
    event,
    pod,
    unschedulable,
    waiting_container,
)

NO_ROOM = (
    "0/5 nodes are available: 1 node(s) had untolerated taint {nvidia.com/gpu: present}, 2 Insufficient cpu, "
    "3 Insufficient nvidia.com/gpu, 1 node(s) didn't match Pod's node affinity/selector. preemption: 0/5 nodes are "
    "available: 5 No preemption victims found for incoming pod."
)


def waits(*pods, **more):
    return trial_reasons.preparing(list(pods), **more).reason


def test_an_unschedulable_pod_is_told_with_the_numbers_of_the_scheduler():
    text = waits(pod(conditions=unschedulable(NO_ROOM)))
    assert text == (
        "waits for a node with room: 0 of 5 nodes can take it (1 has a taint that it does not tolerate "
        "(nvidia.com/gpu=present); 2 have too few free CPUs, it asks for 16; 3 have too few free GPUs (nvidia.com/gpu, "
        "it asks for 4); 1 has other labels than its `node_selector` or `affinity` asks for)"
    )


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "0/1 nodes are available: 1 node(s) had taint {node.kubernetes.io/not-ready: }, that the pod didn't "
            "tolerate.",
            "0 of 1 node can take it (1 has a taint that it does not tolerate (node.kubernetes.io/not-ready))",
        ),
        ("0/2 nodes are available: 2 Too many pods.", "2 have as many pods as they may have"),
        ("0/2 nodes are available: 2 node(s) were unschedulable.", "2 have been closed for new pods"),
        (
            "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        ("no nodes available to schedule pods", "waits for a node: no nodes available to schedule pods"),
        ("", "waits for a node"),
    ],
)
def test_other_words_of_the_scheduler_are_told_or_passed_on(message, expected):
    assert expected in waits(pod(conditions=unschedulable(message)))


def test_a_scheduling_gate_is_named():
    held = pod(conditions=unschedulable("", "SchedulingGated"))
    held["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    assert waits(held) == "waits behind a scheduling gate of its pod (kueue.x-k8s.io/admission)"


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("failed to resolve reference: registry.example/train:1: not found", "there is no such image"),
        ("pull access denied, repository does not exist or may require authorization", "name a secret with the login"),
        ("dial tcp: lookup registry.example: no such host", "its registry does not answer the node"),
        ("unexpected EOF", "it cannot be pulled"),
    ],
)
def test_an_image_that_cannot_be_pulled_is_told_with_the_registrys_words(message, why):
    text = waits(pod(node="n1", containers=[waiting_container("ErrImagePull", message)]))
    assert text.startswith("waits for its image registry.example/train:1: ")
    assert why in text
    assert message in text


def test_a_backed_off_pull_is_told_with_the_words_of_the_event():
    backed_off = pod(node="n1", containers=[waiting_container("ImagePullBackOff", 'Back-off pulling image "x"')])
    words = 'Failed to pull image "registry.example/train:1": code = NotFound: manifest unknown'
    text = waits(backed_off, events=[event("Failed", words), event("BackOff", "Back-off pulling image")])
    assert "there is no such image: correct `image`" in text
    assert "manifest unknown" in text
    assert "The registry says" not in waits(backed_off, events=[event("Failed", words, about="another-pod")])


def test_a_newer_backed_off_pull_tells_the_words_itself():
    message = 'Back-off pulling image "x": ErrImagePull: unauthorized: authentication required'
    text = waits(pod(node="n1", containers=[waiting_container("ImagePullBackOff", message)]))
    assert "name a secret with the login in `image_pull_secrets`" in text
    assert "The registry says: ErrImagePull: unauthorized" in text


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        (
            "CreateContainerConfigError",
            'secret "at-1" not found',
            'waits for what its container trial needs: secret "at-1" not found',
        ),
        ("CreateContainerConfigError", 'configmap "code" not found', 'configmap "code" not found'),
        ("InvalidImageName", "", "is not the name of an image; correct `image`"),
        ("ErrImageNeverPull", "", "its node has none, and `image_pull_policy` is Never"),
        (
            "RunContainerError",
            'failed to create: exec: "python3": executable file not found in $PATH: unknown',
            "the image has no python3: name the interpreter of the image by `python:`",
        ),
        ("CreateContainerError", 'exec: "/run.sh": permission denied', "/run.sh of the image may not be executed"),
        ("SomethingNew", "of a later release", "waits: SomethingNew (of a later release)"),
    ],
)
def test_a_container_that_cannot_begin_says_what_it_lacks_and_what_to_do(reason, message, expected):
    assert expected in waits(pod(node="n1", containers=[waiting_container(reason, message)]))


def test_a_container_that_ends_again_and_again_says_how_it_ended():
    last = {"terminated": {"exitCode": 127, "reason": "Error"}}
    status = waiting_container("CrashLoopBackOff", "back-off 10s", lastState=last)
    assert waits(pod(node="n1", containers=[status])) == (
        "waits: its container trial ends again and again. It exited with code 127: its command was not found in the "
        "image"
    )


def test_a_running_init_container_is_waited_for_by_name():
    init = {"name": "fetch", "state": {"running": {}}}
    waits_too = waiting_container("PodInitializing")
    text = waits(pod(node="n1", init=[init], containers=[waits_too]))
    assert text == "waits for its init container fetch, which runs on n1"


def test_a_pod_that_is_being_started_says_where():
    assert "is being started on n1" in waits(pod(node="n1", containers=[waiting_container("ContainerCreating")]))
    assert waits(pod()) == "waits for the scheduler to look at it"
    assert waits() == ""


@pytest.mark.parametrize(
    ("scheduler", "text", "obstacle"),
    [
        ("default-scheduler", "waits for the scheduler to look at it", Obstacle.FAULT),
        ("absent", "waits for the scheduler absent to look at it", Obstacle.FAULT),
        ("volcano", "waits for the scheduler volcano to look at it", Obstacle.NONE),
    ],
)
def test_a_scheduler_that_does_not_look_at_a_pod_is_named(scheduler, text, obstacle):
    unseen = pod()
    unseen["spec"]["schedulerName"] = scheduler
    state = trial_reasons.preparing([unseen])
    assert (state.reason, state.obstacle) == (text, obstacle)


def test_of_several_pods_it_says_how_many_have_begun():
    text = waits(pod("Running"), pod(conditions=unschedulable("0/1 nodes are available: 1 Insufficient memory.")))
    assert text.endswith("; 1 of its 2 pods have begun")


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        (
            "FailedCreate",
            'Error creating: pods "x" is forbidden: exceeded quota: compute, requested: requests.cpu=2, used: '
            "requests.cpu=3, limited: requests.cpu=4",
            "waits: the quota compute of its namespace is used up: it asks for requests.cpu=2, requests.cpu=3 of "
            "requests.cpu=4 are taken",
        ),
        (
            "FailedCreate",
            'Error creating: pods "x" is forbidden: error looking up service account ml/trainer: serviceaccount '
            '"trainer" not found',
            "there is no service account trainer: correct `service_account`",
        ),
        (
            "FailedCreate",
            'Error creating: pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true',
            "only pods of the security standard restricted: runAsNonRoot != true",
        ),
        ("FailedMount", 'MountVolume.SetUp failed: configmap "code" not found', "waits for its volumes: MountVolume"),
        ("FailedCreatePodSandBox", "network is not ready", "waits for its node to set it up: network is not ready"),
    ],
)
def test_what_only_an_event_says_is_found_there(reason, message, expected):
    assert expected in waits(events=[event(reason, message)])


def test_a_refusal_that_is_older_than_a_pod_and_a_mount_that_was_mended_are_not_told():
    made = pod(node="n1", containers=[waiting_container("ContainerCreating")])
    made["metadata"]["creationTimestamp"] = "2026-11-24T02:00:05Z"
    refused = {**event("FailedCreate", 'pods "x" is forbidden: no'), "lastTimestamp": "2026-11-24T02:00:04Z"}
    mount = event("FailedMount", 'MountVolume.SetUp failed: configmap "code" not found')
    assert "waits for its volumes" in waits(made, events=[refused, mount])
    made["status"]["conditions"] = [{"type": "PodReadyToStartContainers", "status": "True"}]
    assert waits(made, events=[refused, mount]).startswith("is being started on n1")
    refused["lastTimestamp"] = "2026-11-24T02:00:06Z"
    assert "the cluster refuses its pods" in waits(made, events=[refused, mount])


@pytest.mark.parametrize(
    ("asked", "limited", "obstacle"),
    [("pods=1", "pods=5", Obstacle.NONE), ("requests.cpu=2500m,pods=1", "requests.cpu=2,pods=5", Obstacle.FAULT)],
)
def test_a_quota_that_others_use_up_is_waited_for_and_one_that_is_too_small_is_an_obstacle(asked, limited, obstacle):
    words = f"pods is forbidden: exceeded quota: q, requested: {asked}, used: pods=5, limited: {limited}"
    assert trial_reasons.preparing([], [event("FailedCreate", words)]).obstacle is obstacle


def test_the_worst_of_several_pods_is_told():
    queued = pod(conditions=unschedulable("0/1 nodes are available: 1 Insufficient memory."))
    wrong = pod(node="n1", containers=[waiting_container("InvalidImageName")])
    assert "never starts" in waits(queued, wrong)


def test_an_object_that_kueue_holds_is_queued_with_kueues_words():
    job = {"metadata": {"labels": {pending_reasons.KUEUE_LABEL: "research"}}, "spec": {"suspend": True}}
    why = "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu, 1 more needed"
    assert waits(found=job) == "is queued by Kueue in research"
    assert waits(found=job, events=[event("Pending", why)]) == f"is queued by Kueue in research: {why}"


def test_a_suspended_object_without_a_queue_says_who_has_to_act():
    assert "somebody sets it to false" in waits(found={"spec": {"runPolicy": {"suspend": True}}})
    resumed = {"spec": {"suspend": False}, "status": {"conditions": [{"type": "Suspended", "status": "False"}]}}
    assert waits(found=resumed) == ""


def test_a_pod_group_of_volcano_says_that_all_begin_or_none():
    group = {"spec": {"queue": "team"}, "status": {"phase": "Inqueue"}}
    assert pending_reasons.gang(group) == "is queued by Volcano in team: all its pods begin, or none"
    assert pending_reasons.gang({"status": {"phase": "Running"}}) == ""


def ends(*pods):
    state = trial_reasons.ended(list(pods))
    assert state is not None
    return state


def test_a_container_over_its_memory_limit_is_told_with_the_limit():
    state = ends(pod("Failed", containers=[ended_container(137, "OOMKilled")]))
    assert state.state is TrialState.FAILED
    assert state.reason.startswith("Out of memory: the trial used more than its limit of 4Gi.")


@pytest.mark.parametrize(
    ("status", "state", "expected"),
    [
        (
            {"reason": "Evicted", "message": "The node was low on resource: memory."},
            TrialState.PREEMPTED,
            "Evicted: the node ran short of something. The node was low on resource: memory.",
        ),
        (
            {"conditions": disruption("PreemptionByScheduler")},
            TrialState.PREEMPTED,
            "Preempted: the scheduler gave its place on n1 to a pod of higher priority.",
        ),
        ({"conditions": disruption("EvictionByEvictionAPI")}, TrialState.PREEMPTED, "n1 was drained"),
        ({"conditions": disruption("DeletionByTaintManager")}, TrialState.LOST, "The node n1 was lost"),
        ({"conditions": disruption("DeletionByPodGC")}, TrialState.LOST, "no longer part of the cluster"),
        ({"reason": "NodeLost"}, TrialState.LOST, "The node n1 was lost"),
        ({"reason": "NodeShutdown"}, TrialState.PREEMPTED, "The node n1 was shut down."),
        ({"reason": "OutOfcpu", "message": "Node didn't have enough"}, TrialState.PREEMPTED, "Another pod took"),
        (
            {"reason": "DeadlineExceeded", "message": "Pod was active longer than the specified deadline"},
            TrialState.FAILED,
            "Timeout: the trial ran longer than its limit (`timeout:` in the header).",
        ),
        ({"message": "odd", "reason": "Unheard"}, TrialState.FAILED, "Its pod failed: Unheard: odd."),
    ],
)
def test_what_the_cluster_did_to_a_pod_is_told_with_its_node(status, state, expected):
    found = ends(pod("Failed", node="n1", **status))
    assert found.state is state
    assert expected in found.reason


def test_what_the_cluster_did_goes_before_what_it_caused_in_other_pods():
    failed = pod("Failed", node="n1", containers=[ended_container(1)])
    evicted = pod("Failed", node="n2", conditions=disruption("PreemptionByScheduler"))
    assert ends(failed, evicted).state is TrialState.PREEMPTED


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        (ended_container(3), "The container trial exited with code 3."),
        (ended_container(137), "The container trial was ended by signal 9."),
        (ended_container(127), "its command was not found in the image"),
        (ended_container(1, message="no such user"), "exited with code 1: no such user."),
        (
            ended_container(128, "StartError", message='exec: "python3": executable file not found in $PATH'),
            "The image has no python3: name the interpreter of the image by `python:`",
        ),
    ],
)
def test_a_container_tells_how_it_ended_and_what_to_do(container, expected):
    assert expected in ends(pod("Failed", node="n1", containers=[container])).reason


def test_a_failed_init_container_is_told_by_name():
    found = ends(pod("Failed", init=[ended_container(2, name="fetch", message="404")]))
    assert found.reason == (
        "The trial never began: its init container failed. The container fetch exited with code 2: 404."
    )


def test_pods_that_went_well_tell_nothing():
    assert trial_reasons.ended([pod("Succeeded", containers=[ended_container(0, "Completed")]), pod("Running")]) is None


def test_a_long_message_is_cut_and_brought_on_one_line():
    text = waits(pod(containers=[waiting_container("ErrImagePull", "not found\n" + "x" * 5000)]))
    assert "\n" not in text
    assert len(text) < 600

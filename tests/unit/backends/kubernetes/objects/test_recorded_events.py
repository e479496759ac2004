"""Reasons from what a real cluster said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_autotrain.backends.kubernetes.objects import trial_reasons
from jupyter_autotrain.backends.kubernetes.objects.workload import Obstacle
from tests.unit.backends.kubernetes.pods import event, pod, unschedulable, waiting_container

RECORDED = Path(__file__).parents[4] / "kubernetes" / "recorded" / "events.json"
EVENTS = json.loads(RECORDED.read_text())
WARNINGS = [(one["reason"], one["message"]) for one in EVENTS if one["type"] == "Warning"]
# What is told of each, by a part of its message, and whether waiting helps.
BUSY = "waits for a node with room: 0 of 1 node can take it (1 has too few free CPUs)"
NO_NODE = "waits for a node that fits: none of 1 node could take it, however empty"
SAID = {
    "1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption": (
        BUSY, Obstacle.NONE
    ),
    "1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not": (
        f"{NO_NODE} (1 has too few free CPUs)", Obstacle.FAULT
    ),
    "1 Insufficient cpu.": (BUSY, Obstacle.NONE),
    "1 Insufficient nvidia.com/gpu": (f"{NO_NODE} (1 has too few free GPUs (nvidia.com/gpu))", Obstacle.FAULT),
    "1 node(s) didn't match Pod's node affinity/selector": (
        f"{NO_NODE} (1 has other labels than its `node_selector` or `affinity` asks for)", Obstacle.FAULT
    ),
    'persistentvolumeclaim "nosuch" not found. not found': (
        "waits for its volume: there is no PVC nosuch in its namespace; make it, or correct the profile",
        Obstacle.FAULT,
    ),
    'violates PodSecurity "restricted:latest"': (
        "waits: the namespace allows only pods of the security standard restricted: allowPrivilegeEscalation != false",
        Obstacle.FAULT,
    ),
    "no PriorityClass with name nosuch was found": (
        "waits: there is no priority class nosuch: correct `priority_class`", Obstacle.FAULT
    ),
    "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0": (
        "waits: the quota q of its namespace is too small: it asks for pods=1, and pods=0 is allowed", Obstacle.FAULT
    ),
    'serviceaccount "nosuch" not found': (
        "waits: there is no service account nosuch: correct `service_account`", Obstacle.FAULT
    ),
    "failed quota: q: must specify limits.cpu for: trial; requests.cpu for: trial": (
        "waits: the quota q of its namespace wants what its pods do not say: limits.cpu for: trial; requests.cpu for: "
        "trial (`resources: {cpus: ..., memory: ...}`)",
        Obstacle.FAULT,
    ),
    'secret "nosuch" not found': (
        'waits for its volumes: MountVolume.SetUp failed for volume "volume-1" : secret "nosuch" not found',
        Obstacle.FAULT,
    ),
}  # fmt: skip
# Events of pods and nodes that tell no obstacle by themselves: the state of a container, or the end of a pod, does.
TOLD_OTHERWISE = frozenset({
    "BackoffLimitExceeded", "CgroupV1", "Evicted", "Failed", "InspectFailed", "NodeNotReady"
})  # fmt: skip


def known(message: str) -> tuple[str, Obstacle] | None:
    return next((told for part, told in SAID.items() if part in message), None)


@pytest.mark.parametrize(("reason", "message"), WARNINGS)
def test_each_warning_that_keeps_a_trial_from_starting_is_told_in_a_users_words(reason: str, message: str) -> None:
    pods = [pod(conditions=unschedulable(message))] if reason == "FailedScheduling" else []
    for one in pods:
        one["spec"]["containers"] = []  # nothing is known of what it asks for
    state = trial_reasons.preparing(pods, [event(reason, message)])
    expected = known(message)
    assert (expected is None) is (reason in TOLD_OTHERWISE)
    if expected is None:
        assert state.reason == ""
    else:
        assert state.reason.startswith(expected[0])
        assert state.obstacle is expected[1]


def recorded(begin: str) -> str:
    return next(message for _, message in WARNINGS if message.startswith(begin))


@pytest.mark.parametrize(
    ("waiting", "message", "expected", "obstacle"),
    [
        (
            "ErrImagePull",
            recorded("Failed to pull image").partition('": ')[2],
            "waits for its image registry.example/train:1: its registry does not answer the node. The registry says: "
            'failed to pull and unpack image "registry.example/library/nosuch:1": failed to resolve image',
            Obstacle.FAULT,
        ),
        ("InvalidImageName", recorded("Failed to apply default image tag"), "never starts: ", Obstacle.LASTING),
        (
            "RunContainerError",
            recorded("Error: failed to create containerd task"),
            "waits: the image has no /no/python: name the interpreter of the image by `python:`",
            Obstacle.FAULT,
        ),
    ],
)
def test_the_words_of_a_kubelet_are_told_where_they_are_the_state_of_a_container(
    waiting: str, message: str, expected: str, obstacle: Obstacle
) -> None:
    state = trial_reasons.preparing([pod(node="node-a", containers=[waiting_container(waiting, message)])])
    assert state.reason.startswith(expected)
    assert state.obstacle is obstacle


def test_a_backed_off_pull_is_told_with_the_event_of_the_pull() -> None:
    backed_off = pod(node="node-a", containers=[waiting_container("ImagePullBackOff", "Back-off pulling image")])
    events = [event(reason, message) for reason, message in WARNINGS if reason == "Failed"]
    assert "its registry does not answer the node" in trial_reasons.preparing([backed_off], events).reason


def test_a_normal_event_is_never_an_obstacle() -> None:
    for one in EVENTS:
        if one["type"] == "Normal":
            assert trial_reasons.preparing([], [event(one["reason"], one["message"])]).reason == "", one

"""Tests of what pods of the double say of themselves, in a user's words."""

from __future__ import annotations

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.objects import trial_reasons
from jupyter_autotrain.testing.bundles import wait_until
from tests.kubernetes.cluster import objects
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.objects.resources import EVENTS


def told(cluster: KubernetesLab, expected: str) -> str:
    """Return what the pod waits for, once that is expected."""

    def found() -> str:
        events = cluster.store.list(EVENTS, "default")[0]
        now = trial_reasons.preparing([objects.pod(cluster, "p")], events).reason
        return now if expected in now else ""

    return wait_until(found, expected)


def spec(script: str, **more: object) -> objects.Json:
    return {"restartPolicy": "Never", "containers": [objects.container(script, **more)]}


def test_a_pod_without_room_says_what_the_nodes_lack(cluster: KubernetesLab) -> None:
    objects.make_pod(cluster, "p", spec("true", resources={"requests": {"cpu": "100"}}))
    text = told(cluster, "too few free CPUs")
    begin = "waits for a node that fits: none of 2 nodes could take it, however empty"
    assert text == f"{begin} (2 have too few free CPUs, it asks for 100)"


def test_an_image_that_is_not_there_is_told_with_the_registrys_words(cluster: KubernetesLab) -> None:
    cluster.images.missing.add("nowhere/train:1")
    objects.make_pod(cluster, "p", spec("true", image="nowhere/train:1"))
    text = told(cluster, "The registry says")
    assert text.startswith("waits for its image nowhere/train:1: there is no such image: correct `image`")


def test_a_secret_that_is_missing_is_named(cluster: KubernetesLab) -> None:
    reference = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "absent", "key": "TOKEN"}}}
    objects.make_pod(cluster, "p", spec("true", env=[reference]))
    assert 'secret "absent" not found' in told(cluster, "waits for what its container main needs")


def test_a_command_that_the_image_lacks_is_named(cluster: KubernetesLab) -> None:
    objects.make_pod(cluster, "p", spec("", command=["no-such-python"]))
    objects.wait_for_phase(cluster, "p", "Failed")
    state = trial_reasons.ended([objects.pod(cluster, "p")])
    assert state is not None
    assert state.state is TrialState.FAILED
    assert state.reason.startswith("The image has no no-such-python: name the interpreter of the image by `python:`")

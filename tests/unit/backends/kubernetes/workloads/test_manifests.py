"""Queues and patches of a trial's object, whatever kind it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

import pytest

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.objects.workload import (
    NodeVariables,
    ObjectType,
    Workload,
    WorkloadRequest,
    WorkloadState,
)
from jupyter_autotrain.backends.kubernetes.workloads.manifests import Manifests, manifests
from jupyter_autotrain.errors import BackendError

TEMPLATE = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "trial", "command": ["python3"]}]},
}


class OneKind(Workload):
    """A workload that puts the template into an object as it is."""

    node_variables = NodeVariables()
    deletes_pods_at_once = False

    def __init__(self, kind: str) -> None:
        self.object_type = ObjectType("batch", "v1", "jobs", kind)

    def render(self, request: WorkloadRequest) -> Sequence[JsonObject]:
        metadata = {"name": request.name, "namespace": request.namespace, "labels": dict(request.labels)}
        kind = self.object_type.kind
        spec = {"backoffLimit": 0, "template": request.template}
        return [{"apiVersion": "batch/v1", "kind": kind, "metadata": metadata, "spec": spec}]

    def state(self, found: JsonObject, pods: Sequence[JsonObject]) -> WorkloadState:
        return WorkloadState(TrialState.RUNNING)


def rendered(options: dict, kind: str = "Job") -> Manifests:
    request = WorkloadRequest("t-1", "team", {"app": "x"}, {}, 2, 2, 1, "env", TEMPLATE, options)
    return manifests(OneKind(kind), request)


def pods_of(found: JsonObject) -> dict:
    return cast("dict", found)["spec"]["template"]["metadata"]


def test_a_queue_of_kueue_is_a_label_of_the_object() -> None:
    (job,) = rendered({"queue": "team-a"}).objects
    assert job["metadata"]["labels"] == {"app": "x", "kueue.x-k8s.io/queue-name": "team-a"}
    assert "suspend" not in job["spec"]  # that is Kueue's own


def test_pods_of_a_kind_that_kueue_does_not_know_are_a_group() -> None:
    (framework,) = rendered({"queue": "team-a"}, "Framework").objects
    assert "kueue.x-k8s.io/queue-name" not in framework["metadata"]["labels"]
    assert pods_of(framework) == {
        "labels": {"app": "x", "kueue.x-k8s.io/queue-name": "team-a", "kueue.x-k8s.io/pod-group-name": "t-1"},
        "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"},
    }


def test_pods_of_a_trial_that_is_rescaled_are_queued_one_by_one() -> None:
    """A group of Kueue is admitted with the number of pods that it says, which here is another each time."""
    workload = OneKind("AdaptDLJob")
    workload.node_variables = NodeVariables(count="ADAPTDL_NUM_REPLICAS")
    request = WorkloadRequest("t-1", "team", {"app": "x"}, {}, 4, 1, 1, "env", TEMPLATE, {"queue": "team-a"})
    (found,) = manifests(workload, request).objects
    assert pods_of(found) == {"labels": {"app": "x", "kueue.x-k8s.io/queue-name": "team-a"}}


def test_with_volcano_a_trial_is_a_pod_group() -> None:
    job, group = rendered({"scheduler": "volcano", "queue": "gpus", "priority_class": "low"}).objects
    assert pods_of(job)["annotations"] == {"scheduling.k8s.io/group-name": "t-1"}
    assert group == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "t-1", "namespace": "team", "labels": {"app": "x"}},
        "spec": {"minMember": 2, "queue": "gpus", "priorityClassName": "low"},
    }


def test_a_patch_is_merged_last_and_says_what_it_replaced() -> None:
    patch = {"metadata": {"annotations": {"a": "b"}}, "spec": {"backoffLimit": 3, "suspend": True}}
    found = rendered({"queue": "team-a", "patch": patch})
    assert found.objects[0]["spec"] == {"backoffLimit": 3, "suspend": True, "template": TEMPLATE}
    assert found.notes == ("`patch` replaces spec.backoffLimit.",)


@pytest.mark.parametrize(
    ("patch", "found", "expected"),
    [
        ({"spec": [1]}, "spec is [1]", "a mapping"),
        ({"metadata": {"labels": "a"}}, "metadata.labels is 'a'", "a mapping"),
        ({"spec": {"template": {"spec": {"containers": {}}}}}, "spec.template.spec.containers is {}", "a list"),
    ],
)
def test_a_patch_of_another_type_is_refused_with_its_key_and_what_was_expected(
    patch: dict, found: str, expected: str
) -> None:
    with pytest.raises(BackendError, match=re.escape(f"`patch`: {found}.\nExpected {expected}")):
        rendered({"patch": patch})


@pytest.mark.parametrize(
    ("patch", "lost"),
    [
        ({"metadata": {"name": "other"}}, "metadata.name"),
        ({"metadata": {"labels": None}}, "metadata.labels.app"),
        ({"spec": {"template": None}}, r"spec.template.metadata.labels.app, spec.template.spec.containers\[trial\]"),
        ({"spec": {"template": {"spec": {"containers": [{"name": "trial", "command": None}]}}}}, "command"),
    ],
)
def test_a_patch_cannot_take_the_name_the_labels_or_the_program(patch: dict, lost: str) -> None:
    with pytest.raises(BackendError, match=lost):
        rendered({"patch": patch})

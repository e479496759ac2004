"""Objects as the official client makes, reads, changes and deletes them."""

from __future__ import annotations

import pytest
from kubernetes import client

from tests.kubernetes.api.requests import Requests, config_map, core_path, job, jobs, pod

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def test_the_official_client_reads_what_it_made_as_it_made_it(batch: client.BatchV1Api, namespace: str) -> None:
    made = batch.create_namespaced_job(namespace, job("a", parallelism=2, completions=2))
    read = batch.read_namespaced_job("a", namespace)  # a controller may have written its status, and so its version
    assert read.spec.to_dict() == made.spec.to_dict()
    assert (read.metadata.uid, read.metadata.labels) == (made.metadata.uid, made.metadata.labels)
    assert made.spec.backoff_limit == 6
    assert made.spec.completion_mode == "NonIndexed"
    assert made.spec.selector.match_labels == {"batch.kubernetes.io/controller-uid": made.metadata.uid}
    labels = made.spec.template.metadata.labels
    assert (labels["job-name"], labels["batch.kubernetes.io/job-name"]) == ("a", "a")


def test_a_second_object_of_a_name_is_refused_with_409(requests: Requests, namespace: str) -> None:
    assert requests("POST", jobs(namespace), job("a")).code == 201
    answer = requests("POST", jobs(namespace), job("a"))
    assert (answer.code, answer.body["reason"]) == (409, "AlreadyExists")
    assert answer.message == 'jobs.batch "a" already exists'
    assert answer.body["details"] == {"name": "a", "group": "batch", "kind": "jobs"}


def test_an_object_that_is_not_there_is_404(requests: Requests, namespace: str) -> None:
    answer = requests("GET", core_path(namespace, "pods", "a"))
    assert (answer.code, answer.body["reason"], answer.message) == (404, "NotFound", 'pods "a" not found')
    assert requests("GET", "/apis/nothing.example/v1/namespaces/x/things").code == 404


def test_a_replacement_of_an_older_version_conflicts(requests: Requests, namespace: str) -> None:
    path = core_path(namespace, "configmaps")
    first = requests("POST", path, config_map("a", data={"x": "1"})).body
    second = requests("PUT", f"{path}/a", first | {"data": {"x": "2"}})
    assert second.body["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
    answer = requests("PUT", f"{path}/a", first | {"data": {"x": "3"}})
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    assert (
        "the object has been modified; please apply your changes to the latest version and try again" in answer.message
    )


def test_a_change_that_changes_nothing_leaves_the_version(requests: Requests, namespace: str) -> None:
    path = core_path(namespace, "configmaps")
    first = requests("POST", path, config_map("a", data={"x": "1"})).body
    again = requests("PATCH", f"{path}/a", {"data": {"x": "1"}}, MERGE).body
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_status_changes_only_by_its_subresource(requests: Requests, namespace: str) -> None:
    made = requests("POST", jobs(namespace), job("a") | {"status": {"active": 7}}).body
    assert made["status"].get("active") is None
    generation = made["metadata"]["generation"]
    body = {"status": {"failed": 2}, "spec": {"parallelism": 9}}
    changed = requests("PATCH", jobs(namespace, "a") + "/status", body, MERGE).body
    assert (changed["status"]["failed"], changed["spec"]["parallelism"]) == (2, 1)
    assert changed["metadata"]["generation"] == generation
    changed = requests("PATCH", jobs(namespace, "a"), {"spec": {"parallelism": 3}, "status": {"failed": 9}}, MERGE).body
    assert (changed["status"]["failed"], changed["spec"]["parallelism"]) == (2, 3)
    assert changed["metadata"]["generation"] == generation + 1


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        (MERGE, {"data": {"x": None, "z": "3"}}),
        (STRATEGIC, {"data": {"x": None, "z": "3"}}),
    ],
)
def test_each_kind_of_patch_removes_and_adds(requests: Requests, namespace: str, kind: str, patch: object) -> None:
    path = core_path(namespace, "configmaps")
    requests("POST", path, config_map("a", data={"x": "1", "y": "2"}))
    assert requests("PATCH", f"{path}/a", patch, kind).body["data"] == {"y": "2", "z": "3"}


def test_a_strategic_patch_appends_owners_by_their_uid(requests: Requests, namespace: str) -> None:
    path = core_path(namespace, "configmaps")
    requests("POST", path, config_map("a"))
    # An object whose owners do not exist is deleted by the garbage collector at any moment.
    uids = {name: requests("POST", path, config_map(name)).body["metadata"]["uid"] for name in ("b", "c")}
    for name in ("b", "c", "c"):
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uids[name]}
        answer = requests("PATCH", f"{path}/a", {"metadata": {"ownerReferences": [owner]}}, STRATEGIC)
    owners = answer.body["metadata"]["ownerReferences"]
    assert sorted(owner["name"] for owner in owners) == ["b", "c"]


def test_a_patch_that_does_not_apply_is_refused(requests: Requests, namespace: str) -> None:
    path = core_path(namespace, "configmaps")
    requests("POST", path, config_map("a", data={"x": "1"}))
    assert requests("PATCH", f"{path}/a", {}, "application/x-patch").code == 415


def test_objects_are_selected_by_labels_and_fields(core: client.CoreV1Api, namespace: str) -> None:
    for name, labels in {"a": {"app": "x", "tier": "1"}, "b": {"app": "x"}, "c": {"app": "y", "tier": "2"}}.items():
        core.create_namespaced_config_map(namespace, config_map(name) | {"metadata": {"name": name, "labels": labels}})

    def names(label_selector: str = "", field_selector: str = "") -> list[str]:
        found = core.list_namespaced_config_map(
            namespace, label_selector=label_selector, field_selector=field_selector
        ).items
        return [item.metadata.name for item in found if item.metadata.labels]

    assert names("app=x") == ["a", "b"]
    assert names("app!=x") == ["c"]
    assert names("app in (x, y),tier") == ["a", "c"]
    assert names("app notin (y),!tier") == ["b"]
    assert names(field_selector="metadata.name=b") == ["b"]


def test_a_field_that_cannot_be_selected_by_is_400(requests: Requests, namespace: str) -> None:
    answer = requests("GET", core_path(namespace, "pods"), fieldSelector="spec.image=x")
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
    assert "field label not supported: spec.image" in answer.message


def test_a_collection_is_deleted_by_its_labels_only(core: client.CoreV1Api, namespace: str) -> None:
    for name in ("a", "b"):
        metadata = {"name": name, "labels": {"app": name}}
        core.create_namespaced_config_map(namespace, config_map(name) | {"metadata": metadata})
    core.delete_collection_namespaced_config_map(namespace, label_selector="app=a")
    left = core.list_namespaced_config_map(namespace, label_selector="app").items
    assert [item.metadata.name for item in left] == ["b"]


def test_a_dry_run_checks_and_stores_nothing(requests: Requests, namespace: str) -> None:
    answer = requests("POST", jobs(namespace), job("a"), dryRun="All")
    assert (answer.code, answer.body["spec"]["backoffLimit"]) == (201, 6)
    assert requests("GET", jobs(namespace, "a")).code == 404
    assert requests("POST", jobs(namespace), job("A"), dryRun="All").code == 422
    requests("POST", jobs(namespace), job("b"))
    requests("DELETE", jobs(namespace, "b"), dryRun="All")
    assert requests("GET", jobs(namespace, "b")).code == 200


def test_a_deletion_of_another_object_of_the_same_name_conflicts(requests: Requests, namespace: str) -> None:
    path = core_path(namespace, "configmaps")
    requests("POST", path, config_map("a"))
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "another"}}
    assert requests("DELETE", f"{path}/a", options).code == 409
    assert requests("DELETE", f"{path}/a").body["status"] == "Success"


def test_an_object_with_finalizers_stays_until_the_last_is_removed(requests: Requests, namespace: str) -> None:
    path = core_path(namespace, "configmaps")
    metadata = {"name": "a", "finalizers": ["example.org/keep"]}
    requests("POST", path, config_map("a") | {"metadata": metadata})
    requests("DELETE", f"{path}/a")
    assert requests("GET", f"{path}/a").body["metadata"]["deletionTimestamp"]
    requests("PATCH", f"{path}/a", {"metadata": {"finalizers": None}}, MERGE)
    assert requests("GET", f"{path}/a").code == 404


def test_a_pod_without_a_node_is_deleted_at_once(requests: Requests, namespace: str) -> None:
    path = core_path(namespace, "pods")
    assert requests("POST", path, pod("a")).body["status"]["phase"] == "Pending"
    requests("DELETE", f"{path}/a")
    assert requests("GET", f"{path}/a").code == 404


def test_a_name_is_made_from_a_prefix(core: client.CoreV1Api, namespace: str) -> None:
    body = {"metadata": {"generateName": "part-"}}
    names = {core.create_namespaced_config_map(namespace, body).metadata.name for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("part-") and len(name) == 10 for name in names)


def test_a_long_list_comes_in_parts(core: client.CoreV1Api, namespace: str) -> None:
    for index in range(5):
        metadata = {"name": f"part-{index}", "labels": {"part": "yes"}}
        core.create_namespaced_config_map(namespace, config_map("") | {"metadata": metadata})
    first = core.list_namespaced_config_map(namespace, label_selector="part", limit=3)
    rest = core.list_namespaced_config_map(
        namespace, label_selector="part", limit=3, _continue=first.metadata._continue
    )
    assert [item.metadata.name for item in first.items + rest.items] == [f"part-{index}" for index in range(5)]
    assert not rest.metadata._continue


def test_a_method_that_a_path_does_not_have_is_405(requests: Requests, namespace: str) -> None:
    answer = requests("PUT", jobs(namespace), job("a"))
    assert (answer.code, answer.body["reason"]) == (405, "MethodNotAllowed")

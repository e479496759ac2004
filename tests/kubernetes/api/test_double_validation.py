"""Tests of what a server refuses, and in which words."""

from __future__ import annotations

import base64

import pytest

from tests.kubernetes.api.conftest import make_quota
from tests.kubernetes.api.requests import Requests, config_map, core_path, job, jobs, pod, pod_spec

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
LIMIT = 1024 * 1024


def misspelled(name: str) -> dict:
    found = job(name, paralelism=2)
    found["spec"]["template"]["spec"]["containers"][0]["comand"] = ["true"]
    return found


def test_unknown_fields_are_refused_by_their_paths_when_strict(requests: Requests, namespace: str) -> None:
    answer = requests("POST", jobs(namespace), misspelled("a"), fieldValidation="Strict")
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
    assert answer.message.startswith('Job in version "v1" cannot be handled as a Job: strict decoding error: ')
    assert 'unknown field "spec.paralelism"' in answer.message
    assert 'unknown field "spec.template.spec.containers[0].comand"' in answer.message
    assert requests("GET", jobs(namespace, "a")).code == 404


@pytest.mark.parametrize(("level", "warnings"), [("", 2), ("Warn", 2), ("Ignore", 0)])
def test_unknown_fields_are_dropped_otherwise(requests: Requests, namespace: str, level: str, warnings: int) -> None:
    query = {"fieldValidation": level} if level else {}
    answer = requests("POST", jobs(namespace), misspelled("a"), **query)
    assert answer.code == 201
    assert len(answer.warnings) == warnings
    assert all('unknown field \\"spec.' in text for text in answer.warnings)
    assert "paralelism" not in answer.body["spec"]
    assert "comand" not in answer.body["spec"]["template"]["spec"]["containers"][0]


def test_a_level_of_validation_that_is_none_is_refused(requests: Requests, namespace: str) -> None:
    assert requests("POST", jobs(namespace), job("a"), fieldValidation="strict").code in (400, 422)


def test_a_patch_with_an_unknown_field_is_refused_when_strict(requests: Requests, namespace: str) -> None:
    requests("POST", jobs(namespace), job("a"))
    answer = requests("PATCH", jobs(namespace, "a"), {"spec": {"paralelism": 2}}, MERGE, fieldValidation="Strict")
    assert answer.code == 422
    assert 'strict decoding error: unknown field "spec.paralelism"' in answer.message


def test_a_value_of_another_type_is_400(requests: Requests, namespace: str) -> None:
    answer = requests("POST", jobs(namespace), job("a", parallelism="2"))
    assert answer.code == 400
    assert "json: cannot unmarshal string into Go struct field" in answer.message
    assert "parallelism of type int32" in answer.message


def test_what_is_wrong_is_told_all_at_once_with_its_fields(requests: Requests, namespace: str) -> None:
    spec = pod_spec(containers=[{"name": "a_b", "image": "x"}, {"name": "c"}], restartPolicy="Sometimes")
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    answer = requests("POST", core_path(namespace, "pods"), body)
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert set(answer.fields) >= {"spec.containers[0].name", "spec.containers[1].image", "spec.restartPolicy"}
    assert answer.message.startswith('Pod "a" is invalid: [')
    assert 'Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"' in answer.message


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"containers": []}, "spec.containers", "Required value"),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds", "must be between 1 and 2147483647, inclusive"),
        ({"hostname": "A"}, "spec.hostname", "a lowercase RFC 1123 label"),
    ],
)
def test_a_pod_that_cannot_be_is_422(requests: Requests, namespace: str, change: dict, field: str, words: str) -> None:
    answer = requests("POST", core_path(namespace, "pods"), pod("a", **change))
    assert answer.code == 422
    assert field in answer.fields
    assert words in answer.message


def test_a_volume_without_a_type_is_an_empty_folder(requests: Requests, namespace: str) -> None:
    answer = requests("POST", core_path(namespace, "pods"), pod("a", volumes=[{"name": "v"}]))
    assert answer.code == 201
    assert {"name": "v", "emptyDir": {}} in answer.body["spec"]["volumes"]


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ({"limits": {"nvidia.com/gpu": "0.5"}}, "must be an integer"),
        ({"requests": {"nvidia.com/gpu": 1}}, "Limit must be set for non overcommitable resources"),
        ({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}, "must be less than or equal to cpu limit"),
        ({"limits": {"gpu": 1}}, "must be a standard resource type or fully qualified"),
    ],
)
def test_resources_that_cannot_be_are_422(requests: Requests, namespace: str, resources: dict, words: str) -> None:
    container = {"name": "main", "image": "x", "resources": resources}
    answer = requests("POST", core_path(namespace, "pods"), pod("a", containers=[container]))
    assert answer.code == 422
    assert words in answer.message


def test_a_limit_is_the_request_where_there_is_none(requests: Requests, namespace: str) -> None:
    container = {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 1, "cpu": "2"}}}
    answer = requests("POST", core_path(namespace, "pods"), pod("a", containers=[container]))
    expected = {"nvidia.com/gpu": "1", "cpu": "2"}
    assert answer.body["spec"]["containers"][0]["resources"] == {"limits": expected, "requests": expected}


def test_a_mount_of_no_volume_is_422(requests: Requests, namespace: str) -> None:
    container = {"name": "main", "image": "x", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    answer = requests("POST", core_path(namespace, "pods"), pod("a", containers=[container]))
    assert answer.fields == ["spec.containers[0].volumeMounts[0].name"]
    assert 'Not found: "v"' in answer.message


def test_a_job_does_not_restart_its_pods_always(requests: Requests, namespace: str) -> None:
    answer = requests("POST", jobs(namespace), job("a", template={"spec": pod_spec(restartPolicy="Always")}))
    assert (answer.code, answer.fields) == (422, ["spec.template.spec.restartPolicy"])


def test_an_indexed_job_needs_its_completions(requests: Requests, namespace: str) -> None:
    answer = requests("POST", jobs(namespace), job("a", completionMode="Indexed", parallelism=2))
    assert answer.code == 422
    assert "spec.completions" in answer.fields


def test_the_template_of_a_job_is_immutable(requests: Requests, namespace: str) -> None:
    requests("POST", jobs(namespace), job("a", suspend=False))
    container = {"name": "main", "image": "another"}
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    answer = requests("PATCH", jobs(namespace, "a"), patch, STRATEGIC)
    assert (answer.code, answer.fields) == (422, ["spec.template"])
    assert answer.message.endswith("field is immutable")
    assert requests("PATCH", jobs(namespace, "a"), {"spec": {"parallelism": 0}}, MERGE).code == 200


def test_a_queue_may_say_where_a_suspended_job_runs(requests: Requests, namespace: str) -> None:
    requests("POST", jobs(namespace), job("a"))
    patch = {"spec": {"suspend": False, "template": {"spec": {"nodeSelector": {"nowhere": "still"}}}}}
    assert requests("PATCH", jobs(namespace, "a"), patch, MERGE).code == 200


def test_the_spec_of_a_pod_is_immutable(requests: Requests, namespace: str) -> None:
    requests("POST", core_path(namespace, "pods"), pod("a"))
    answer = requests("PATCH", core_path(namespace, "pods", "a"), {"spec": {"hostname": "b"}}, MERGE)
    assert (answer.code, answer.fields) == (422, ["spec"])
    assert "pod updates may not change fields other than" in answer.message
    assert requests("PATCH", core_path(namespace, "pods", "a"), {"metadata": {"labels": {"a": "b"}}}, MERGE).code == 200


def test_a_config_map_holds_a_mebibyte_and_no_more(requests: Requests, namespace: str) -> None:
    path = core_path(namespace, "configmaps")

    def of_size(name: str, size: int) -> dict:
        return config_map(name, binaryData={"x": base64.b64encode(b"\xff" * size).decode()})

    assert requests("POST", path, of_size("fits", LIMIT - 576)).code == 201
    answer = requests("POST", path, of_size("large", LIMIT + 1))
    assert answer.code == 422
    assert "Too long" in answer.message
    assert str(LIMIT) in answer.message


def test_data_that_is_not_base64_is_400(requests: Requests, namespace: str) -> None:
    answer = requests("POST", core_path(namespace, "configmaps"), config_map("a", binaryData={"x": "%%%"}))
    assert answer.code == 400
    assert "illegal base64 data" in answer.message


def test_an_immutable_config_map_keeps_its_data(requests: Requests, namespace: str) -> None:
    path = core_path(namespace, "configmaps")
    requests("POST", path, config_map("a", data={"x": "1"}, immutable=True))
    answer = requests("PATCH", f"{path}/a", {"data": {"x": "2"}}, MERGE)
    assert (answer.code, answer.fields) == (422, ["data"])
    assert "field is immutable when `immutable` is set" in answer.message
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "0000"}
    assert requests("PATCH", f"{path}/a", {"metadata": {"ownerReferences": [owner]}}, MERGE).code == 200


def test_a_body_over_three_mebibytes_is_413(requests: Requests, namespace: str) -> None:
    body = config_map("a", data={"x": "x" * (3 * LIMIT + 1)})
    answer = requests("POST", core_path(namespace, "configmaps"), body)
    assert (answer.code, answer.body["reason"]) == (413, "RequestEntityTooLarge")
    assert answer.message == f"Request entity too large: limit is {3 * LIMIT}"


def test_a_secret_gives_its_texts_back_encoded(requests: Requests, namespace: str) -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"x": "text"}}
    answer = requests("POST", core_path(namespace, "secrets"), body)
    assert answer.body["data"] == {"x": base64.b64encode(b"text").decode()}
    assert (answer.body["type"], "stringData" in answer.body) == ("Opaque", False)


@pytest.mark.parametrize("name", ["A", "a_b", "-a", "a" * 254])
def test_names_are_lower_case_subdomains(requests: Requests, namespace: str, name: str) -> None:
    answer = requests("POST", core_path(namespace, "configmaps"), config_map(name))
    assert answer.code == 422
    assert set(answer.fields) == {"metadata.name"}


def test_the_name_of_a_job_is_a_label_of_its_pods(requests: Requests, namespace: str) -> None:
    answer = requests("POST", jobs(namespace), job("a" * 64))
    assert answer.code == 422
    assert "must be no more than 63" in answer.message
    assert requests("POST", jobs(namespace), job("a" * 63)).code == 201


def test_a_label_has_no_more_than_63_characters(requests: Requests, namespace: str) -> None:
    metadata = {"name": "a", "labels": {"x": "a" * 64}}
    answer = requests("POST", core_path(namespace, "configmaps"), config_map("a") | {"metadata": metadata})
    assert (answer.code, set(answer.fields)) == (422, {"metadata.labels"})


def test_a_full_quota_forbids_and_says_the_numbers(requests: Requests, namespace: str) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small"},
        "spec": {"hard": {"count/jobs.batch": "1"}},
    }
    make_quota(requests, namespace, quota)
    answers = [requests("POST", jobs(namespace), job(f"j{index}")) for index in range(10)]
    refused = [answer for answer in answers if answer.code != 201]
    assert refused
    assert {answer.code for answer in refused} == {403}
    assert "exceeded quota: small, requested: count/jobs.batch=1, used: " in refused[-1].message
    assert "limited: count/jobs.batch=1" in refused[-1].message


def test_a_quota_of_cpus_needs_them_said(requests: Requests, namespace: str) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small"},
        "spec": {"hard": {"requests.cpu": "1"}},
    }
    make_quota(requests, namespace, quota)
    answer = requests("POST", core_path(namespace, "pods"), pod("a"))
    assert answer.code == 403
    assert "failed quota: small: must specify requests.cpu for: main" in answer.message


def test_a_pod_of_no_service_account_or_priority_is_forbidden(requests: Requests, namespace: str) -> None:
    path = core_path(namespace, "pods")
    answer = requests("POST", path, pod("a", serviceAccountName="nobody"))
    assert answer.code == 403
    assert f'error looking up service account {namespace}/nobody: serviceaccount "nobody" not found' in answer.message
    answer = requests("POST", path, pod("a", priorityClassName="nothing"))
    assert answer.code == 403
    assert "no PriorityClass with name nothing was found" in answer.message


def test_a_manifest_of_another_kind_or_version_is_400(requests: Requests, namespace: str) -> None:
    assert requests("POST", jobs(namespace), job("a") | {"kind": "Pod"}).code == 400
    answer = requests("POST", jobs(namespace), job("a") | {"apiVersion": "batch/v2"})
    assert answer.code == 400
    elsewhere = job("a")
    elsewhere["metadata"]["namespace"] = "default"
    answer = requests("POST", jobs(namespace), elsewhere)
    assert answer.code == 400
    assert "does not match the namespace" in answer.message

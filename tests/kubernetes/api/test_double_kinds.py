"""Tests of what is served and by which schemas: built-in kinds and those that definitions make."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import pytest
from kubernetes import client, dynamic

from jupyter_autotrain.backends.kubernetes.access import connection
from tests.kubernetes.api.conftest import wait_until
from tests.kubernetes.api.requests import Answer, Requests, config_map, core_path, job, jobs

MERGE = "application/merge-patch+json"
SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1},
        "mode": {"type": "string", "enum": ["fast", "slow"], "default": "slow"},
        "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is fixed"}]},
        "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
STATUS = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.fixture
def things(requests: Requests, namespace: str) -> Iterator[str]:
    """Yield the path of a kind that is defined for the time of a test."""
    group = f"{uuid.uuid4().hex[:8]}.example.org"
    names = {"plural": "things", "kind": "Thing", "singular": "thing", "listKind": "ThingList"}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    answer = requests("POST", definitions, body | {"metadata": {"name": f"things.{group}"}, "spec": spec})
    assert answer.code == 201, answer.body
    path = f"/apis/{group}/v1/namespaces/{namespace}/things"
    wait_until(lambda: requests("GET", path).code == 200, "the kind is not served")
    yield path
    requests("DELETE", f"{definitions}/things.{group}")
    wait_until(lambda: requests("GET", path).code == 404, "the kind is still served")


def thing(path: str, name: str, **spec: object) -> dict:
    return {"apiVersion": path.split("/")[2] + "/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec}


def faults(answer: Answer) -> set[str]:
    """Return the wrong fields; besides them a server may say `<nil>`: that rules wait for them to be mended."""
    return set(answer.fields) - {"<nil>"}


def test_what_is_not_checked_before_other_faults_are_mended_is_told_of_no_field(
    requests: Requests, things: str, request: pytest.FixtureRequest
) -> None:
    answer = requests("POST", things, thing(things, "a", size=0))
    if "cluster" not in request.node.callspec.id:
        assert "<nil>: Invalid value: null: some validation rules were not checked" in answer.message
    told = connection.refusal_of_answer(answer.code, json.dumps(answer.body).encode())
    assert "nil" not in told.found
    assert "spec.size in body should be greater than or equal to 1" in told.found


def test_a_defined_kind_is_kept_with_its_defaults(requests: Requests, things: str) -> None:
    made = requests("POST", things, thing(things, "a", size=2, anything={"x": [1]})).body
    assert made["spec"] == {"size": 2, "mode": "slow", "anything": {"x": [1]}}
    assert made["metadata"]["generation"] == 1
    assert requests("GET", things).body["items"][0]["metadata"]["name"] == "a"


def test_values_of_a_defined_kind_are_checked_by_its_schema(requests: Requests, things: str) -> None:
    answer = requests("POST", things, thing(things, "a", size=0, mode="medium"))
    assert (answer.code, faults(answer)) == (422, {"spec.size", "spec.mode"})
    assert "spec.size in body should be greater than or equal to 1" in answer.message
    assert 'Unsupported value: "medium": supported values: "fast", "slow"' in answer.message
    answer = requests("POST", things, thing(things, "a", size="2"))
    assert answer.code == 422
    assert "spec.size in body must be of type integer" in answer.message
    answer = requests("POST", things, thing(things, "a"))
    assert (answer.code, faults(answer)) == (422, {"spec.size"})
    assert "Required value" in answer.message


def test_unknown_fields_of_a_defined_kind_are_refused_or_dropped(requests: Requests, things: str) -> None:
    body = thing(things, "a", size=2, sise=3)
    answer = requests("POST", things, body, fieldValidation="Strict")
    assert answer.code == 400
    assert 'strict decoding error: unknown field "spec.sise"' in answer.message
    assert requests("POST", things, body).body["spec"] == {"size": 2, "mode": "slow"}


def test_a_fixed_field_of_a_defined_kind_keeps_its_value(requests: Requests, things: str) -> None:
    requests("POST", things, thing(things, "a", size=2, fixed="x"))
    answer = requests("PATCH", f"{things}/a", {"spec": {"fixed": "y"}}, MERGE)
    assert (answer.code, answer.fields) == (422, ["spec.fixed"])
    assert "is fixed" in answer.message


def test_a_defined_kind_takes_no_strategic_patch(requests: Requests, things: str) -> None:
    requests("POST", things, thing(things, "a", size=2))
    answer = requests("PATCH", f"{things}/a", {"spec": {"size": 3}}, "application/strategic-merge-patch+json")
    assert (answer.code, answer.body["reason"]) == (415, "UnsupportedMediaType")


def test_the_status_of_a_defined_kind_is_a_subresource(requests: Requests, things: str) -> None:
    requests("POST", things, thing(things, "a", size=2) | {"status": {"phase": "Early"}})
    assert "status" not in requests("GET", f"{things}/a").body
    body = {"spec": {"size": 9}, "status": {"phase": "Running"}}
    changed = requests("PATCH", f"{things}/a/status", body, MERGE).body
    assert (changed["spec"]["size"], changed["status"]) == (2, {"phase": "Running"})


def test_the_schema_of_a_defined_kind_is_served(requests: Requests, things: str) -> None:
    group = things.split("/")[2]
    wait_until(lambda: f"apis/{group}/v1" in requests("GET", "/openapi/v3").body["paths"], "no schema")
    schemas = requests("GET", f"/openapi/v3/apis/{group}/v1").body["components"]["schemas"].values()
    kinds = [item for item in schemas if {"group": group, "version": "v1", "kind": "Thing"} in _kinds(item)]
    assert kinds[0]["properties"]["spec"]["properties"]["size"]["type"] == "integer"


def _kinds(schema: dict) -> list[dict]:
    return schema.get("x-kubernetes-group-version-kind", [])


def test_the_official_client_finds_kinds_by_discovery(api_client: client.ApiClient, requests: Requests) -> None:
    found = dynamic.DynamicClient(api_client).resources.get(api_version="batch/v1", kind="Job")
    assert (found.name, found.namespaced, "status" in found.subresources) == ("jobs", True, True)
    assert requests("GET", "/apis/nothing.example/v1").code == 404
    assert client.VersionApi(api_client).get_code().major == "1"


def test_a_namespace_takes_all_it_holds_along_and_nothing_new(requests: Requests, core: client.CoreV1Api) -> None:
    name = f"autotrain-{uuid.uuid4().hex[:8]}"
    core.create_namespace({"metadata": {"name": name}})
    requests("POST", jobs(name), job("a"))
    path = core_path(name, "configmaps")
    held = config_map("held") | {"metadata": {"name": "held", "finalizers": ["example.org/keep"]}}
    requests("POST", path, held)
    core.delete_namespace(name)
    assert core.read_namespace(name).status.phase == "Terminating"
    answer = requests("POST", path, config_map("new"))
    assert (answer.code, answer.body["reason"]) == (403, "Forbidden")
    assert f"unable to create new content in namespace {name} because it is being terminated" in answer.message
    wait_until(lambda: requests("GET", jobs(name, "a")).code == 404, "the Job is still there")
    requests("PATCH", f"{path}/held", {"metadata": {"finalizers": None}}, MERGE)
    wait_until(lambda: requests("GET", f"/api/v1/namespaces/{name}").code == 404, "the namespace is still there")
    answer = requests("POST", path, config_map("new"))
    assert (answer.code, answer.message) == (404, f'namespaces "{name}" not found')

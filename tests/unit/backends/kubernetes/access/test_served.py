"""Tests of what a cluster serves, as a choice of the kind of object asks for it."""

from __future__ import annotations

import pytest

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.access.served import ServedCluster, not_served, schema_of
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.errors import BackendUnavailableError

THING = ObjectType("lab.org", "v1", "things", "Thing")
ROOT = {
    "type": "object",
    "x-kubernetes-group-version-kind": [{"group": "lab.org", "version": "v1", "kind": "Thing"}],
}
DOCUMENT = "/openapi/v3/apis/lab.org/v1?hash=1"
ANSWERS = {
    "/version": {"gitVersion": "v1.36.2"},
    "/apis/lab.org/v1": {"resources": [{"name": "things", "kind": "Thing"}]},
    "/openapi/v3": {"paths": {"apis/lab.org/v1": {"serverRelativeURL": DOCUMENT}}},
    DOCUMENT: {"components": {"schemas": {"Other": {}, "Thing": ROOT}}},
}


class Api:
    """An API server with one kind, and what it is asked."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.asked: list[str] = []
        self.fault = fault

    def get(self, path: str) -> JsonObject:
        found = self._answer(path, ANSWERS.get(path, {}))
        if not found:
            raise ApiRefusedError(404, "NotFound", path)
        return found

    def list(self, object_type: ObjectType, namespace: str | None) -> list[JsonObject]:
        return [self._answer(f"{object_type.plural} {namespace}", {"kind": "Thing"})]

    def _answer(self, path: str, found: JsonObject) -> JsonObject:
        self.asked.append(path)
        if self.fault is not None:
            raise self.fault
        return found

    def served(self) -> ServedCluster:
        return ServedCluster(self.get, self.list)


def test_each_answer_is_asked_for_once_for_many_trials() -> None:
    api = Api()
    served = api.served()
    for _ in range(100):
        assert served.answers()
        assert served.has(THING)
        assert not served.has(ObjectType("lab.org", "v2", "things", "Thing"))
        assert served.schema(THING) == ROOT
        assert served.objects(THING, "team") == [{"kind": "Thing"}]
        assert served.objects(THING, "") == [{"kind": "Thing"}]
    first, kind, *schema = ANSWERS
    assert api.asked == [first, kind, "/apis/lab.org/v2", *schema, "things team", "things None"]


@pytest.mark.parametrize("code", [403, 404])
def test_what_may_not_be_listed_is_none(code: int) -> None:
    assert Api(ApiRefusedError(code, "Forbidden", "no")).served().objects(THING, "team") == ()


def test_a_cluster_that_does_not_answer_is_asked_again_the_next_time() -> None:
    api = Api(BackendUnavailableError("It does not answer."))
    served = api.served()
    assert not served.answers()
    api.fault = None
    assert served.answers()
    with pytest.raises(ApiRefusedError):
        Api(ApiRefusedError(500, "InternalError", "no")).served().objects(THING, "team")


def test_a_server_with_the_older_schemas_alone_tells_them_too() -> None:
    def get(path: str) -> JsonObject:
        if path != "/openapi/v2":
            raise ApiRefusedError(404, "NotFound", path)
        return {"definitions": {"org.lab.v1.Thing": ROOT}}

    assert schema_of(get, THING) == ROOT
    assert schema_of(get, ObjectType("lab.org", "v2", "things", "Thing")) == {}


def test_a_kind_that_is_not_served_says_what_is() -> None:
    versions = {"/apis/lab.org": {"versions": [{"groupVersion": "lab.org/v1", "version": "v1"}]}}

    def get(path: str) -> JsonObject:
        if path not in versions:
            raise ApiRefusedError(404, "NotFound", path)
        return versions[path]

    old = ObjectType("lab.org", "v1beta1", "things", "Thing")
    assert not_served(get, old) == "Thing: lab.org/v1beta1 is not served; expected lab.org/v1"
    other = ObjectType("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob")
    assert not_served(get, other) == "PyTorchJob: kubeflow.org/v1 is not served; is it installed there?"

"""What a cluster serves, as a choice of the kind of object asks for it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from jupyter_autotrain.backends.kubernetes.access.api_errors import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.access.served_cluster import ServedCluster
from jupyter_autotrain.backends.kubernetes.access.served_schemas import ServedSchemas
from jupyter_autotrain.backends.kubernetes.checks.cluster_checks import is_missing
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import BackendUnavailableError

THING = ObjectType("lab.org", "v1", "things", "Thing")
ROOT = {
    "type": "object",
    "x-kubernetes-group-version-kind": [{"group": "lab.org", "version": "v1", "kind": "Thing"}],
}
ANSWERS = {
    "/openapi/v3": {"paths": {"apis/lab.org/v1": {"serverRelativeURL": "/openapi/v3/apis/lab.org/v1?hash=1"}}},
    "/openapi/v3/apis/lab.org/v1": {"components": {"schemas": {"Thing": ROOT}}},
}


class Api:
    """An API server with one kind, and what it is asked."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.asked: list[str] = []
        self.fault = fault

    def get(self, path: str, query: Mapping[str, str]) -> JsonObject:
        return self._answer(path, ANSWERS[path])

    def list(self, object_type: ObjectType, namespace: str | None) -> list[JsonObject]:
        return [self._answer(f"{object_type.plural} {namespace}", {"kind": "Thing"})]

    def _answer(self, path: str, found: JsonObject) -> JsonObject:
        self.asked.append(path)
        if self.fault is not None:
            raise self.fault
        return found

    def served(self) -> ServedCluster:
        return ServedCluster(lambda: ServedSchemas(self.get, is_missing, ""), self.list)


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
    assert api.asked == [*ANSWERS, "things team", "things None"]


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

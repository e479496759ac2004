"""Manifests against what a cluster serves: all faults by name, before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from jupyter_autotrain.backends.kubernetes.access.served_schemas import ServedSchemas
from jupyter_autotrain.errors import BackendError

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
KIND = [{"group": "batch", "version": "v1", "kind": "Job"}]
POD = {
    "type": "object",
    "required": ["containers"],
    "properties": {
        "hostNetwork": {"type": "boolean"},
        "nodeSelector": {"type": "object", "additionalProperties": {"type": "string"}},
        "restartPolicy": {"type": "string", "enum": ["Never", "OnFailure"]},
        "containers": {"type": "array", "items": {"$ref": "@Container"}},
    },
}
CONTAINER = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "image": {"type": "string"},
        "limits": {
            "type": "object",
            "additionalProperties": {"$ref": f"@{QUANTITY}"},
        },
        "port": {"x-kubernetes-int-or-string": True},
    },
}
SPEC = {
    "type": "object",
    "properties": {
        "backoffLimit": {"type": "integer", "minimum": 0},
        "name": {"type": "string", "pattern": "^[a-z]+$"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "template": {"allOf": [{"$ref": "@PodSpec"}], "default": {}},
        "size": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
    },
}
JOB = {
    "type": "object",
    "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "spec": {"$ref": "@JobSpec"}},
    "x-kubernetes-group-version-kind": KIND,
}


def definitions(root: str) -> dict:
    """The schemas with references of that root."""

    def rooted(value: object) -> object:
        if isinstance(value, dict):
            return {key: rooted(item) for key, item in value.items()}
        if isinstance(value, list):
            return [rooted(item) for item in value]
        return value.replace("@", f"#/{root}/") if isinstance(value, str) else value

    quantity = {"type": "string"}
    found = {"Job": JOB, "JobSpec": SPEC, "PodSpec": POD, "Container": CONTAINER, "Unused": {"type": "object"}}
    return {**rooted(found), QUANTITY: quantity}  # type: ignore[dict-item]  # a mapping in, a mapping out


class MissingError(BackendError):
    """There is no such path."""


class Server:
    """Answers as an API server with one version of OpenAPI."""

    def __init__(self, version: int) -> None:
        self.asked: list[str] = []
        self.documents: dict[str, dict] = {"/openapi/v2": {"definitions": definitions("definitions")}}
        if version == 3:
            address = "/openapi/v3/apis/batch/v1"
            self.documents = {
                "/openapi/v3": {"paths": {"apis/batch/v1": {"serverRelativeURL": f"{address}?hash=A1"}, "api/v1": {}}},
                address: {"components": {"schemas": definitions("components/schemas")}},
            }
            self.documents["/openapi/v3"]["paths"]["api/v1"] = {"serverRelativeURL": "/openapi/v3/api/v1"}

    def get(self, path: str, query: Mapping[str, str]) -> dict:
        self.asked.append(path + "".join(f"?{name}={value}" for name, value in query.items()))
        if path not in self.documents:
            raise MissingError(path)
        return self.documents[path]


def schemas(server: Server, folder: Path | None = None) -> ServedSchemas:
    return ServedSchemas(server.get, lambda error: isinstance(error, MissingError), "https://cluster", folder)


def job(**spec: object) -> dict:
    return {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}


@pytest.fixture(params=[2, 3])
def server(request: pytest.FixtureRequest) -> Server:
    return Server(request.param)


def test_all_faults_are_named_with_their_path_and_the_nearest_match(server: Server) -> None:
    containers = [
        {"name": "trial", "imge": "x", "image": 3},
        {"name": "b", "limits": {"cpu": 2, "gpu": [1]}, "port": []},
    ]
    pod = {"containers": containers, "hostNetwork": "yes", "nodeSelector": {"a": True}, "restartPolicy": "never"}
    manifest = job(paralelism=2, backoffLimit=-1, name="A1", size=[], template=pod)
    assert schemas(server).faults({**manifest, "spek": {}}) == [
        "Job spec.paralelism: unknown field; expected one of backoffLimit, free, name, size, template",
        "Job spec.backoffLimit: -1; expected at least 0",
        "Job spec.name: 'A1'; expected what ^[a-z]+$ matches",
        "Job spec.size: []; expected an integer or text",
        "Job spec.template.containers[trial].imge: unknown field; did you mean 'image'?",
        "Job spec.template.containers[trial].image: 3; expected text",
        "Job spec.template.containers[b].limits.gpu: [1]; expected text or a number",
        "Job spec.template.containers[b].port: []; expected an integer or text",
        "Job spec.template.hostNetwork: 'yes'; expected true or false",
        "Job spec.template.nodeSelector.a: True; expected text",
        "Job spec.template.restartPolicy: 'never'; did you mean 'Never'?",
        "Job spek: unknown field; did you mean 'spec'?",
    ]


def test_what_fits_has_no_faults(server: Server) -> None:
    pod = {"containers": [{"name": "a", "limits": {"cpu": "2"}, "port": "http"}], "hostNetwork": None}
    assert schemas(server).faults(job(template=pod, free={"any": ["thing"]}, size="3", backoffLimit=2)) == []


def test_what_is_missing_is_named(server: Server) -> None:
    assert schemas(server).faults(job(template={})) == ["Job spec.template.containers: is missing; expected a value"]


def test_a_kind_that_is_not_served_says_what_is(server: Server) -> None:
    found = schemas(server)
    (fault,) = found.faults({"apiVersion": "batch/v1beta1", "kind": "Job"})
    assert fault == "Job: batch/v1beta1 is not served; expected batch/v1"
    (fault,) = found.faults({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"})
    assert fault == "PyTorchJob: kubeflow.org/v1 is not served; is it installed there?"


def test_a_schema_is_fetched_once_per_cluster_and_version(tmp_path: Path) -> None:
    server = Server(3)
    folder = tmp_path / "schemas"
    assert schemas(server, folder).faults(job(x=1)) == schemas(server, folder).faults(job(x=1)) != []
    assert server.asked == ["/openapi/v3", "/openapi/v3/apis/batch/v1?hash=A1", "/openapi/v3"]
    (kept,) = folder.iterdir()
    assert "Unused" not in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600
    server.documents["/openapi/v3"]["paths"]["apis/batch/v1"]["serverRelativeURL"] += "2"  # an upgrade of the cluster
    schemas(server, folder).faults(job())
    assert server.asked[-1] == "/openapi/v3/apis/batch/v1?hash=A12"


def test_a_damaged_copy_is_fetched_again(tmp_path: Path) -> None:
    server = Server(3)
    schemas(server, tmp_path / "schemas").faults(job())
    (kept,) = (tmp_path / "schemas").iterdir()
    kept.write_text("{")
    assert schemas(server, tmp_path / "schemas").faults(job(x=1)) != []

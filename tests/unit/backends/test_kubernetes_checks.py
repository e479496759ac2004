"""What a cluster is asked before it gets a trial, and the steps of `backends check`."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from jupyter_autotrain.backends.kubernetes.checks import permissions
from jupyter_autotrain.backends.kubernetes.checks.check_steps import check_objects, check_steps
from jupyter_autotrain.backends.kubernetes.checks.cluster_checks import CheckedCluster
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

JOBS = ObjectType("batch", "v1", "jobs", "Job")
JOB = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"backoffLimit": 0}}
SCHEMA = {
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "spec": {"type": "object", "properties": {"backoffLimit": {"type": "integer"}, "suspend": {"type": "boolean"}}},
    },
    "x-kubernetes-group-version-kind": [{"group": "batch", "version": "v1", "kind": "Job"}],
}
OPENAPI = "/openapi/v3/apis/batch/v1"


class AnsweredError(BackendError):
    """An answer with a code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"HTTP {code}")
        self.code = code


class Api:
    """Answers by path; a number is the code of a refusal."""

    def __init__(self) -> None:
        self.answers: dict[str, JsonObject | int | Exception] = {
            "/version": {"gitVersion": "v1.36.2"},
            "/api/v1/namespaces/team": {},
            "/openapi/v3": {"paths": {"apis/batch/v1": {"serverRelativeURL": OPENAPI}}},
            OPENAPI: {"components": {"schemas": {"Job": SCHEMA}}},
            permissions.SELF: {"status": {"userInfo": {"username": "ada"}}},
            permissions.REVIEWS: {"status": {"allowed": True}},
        }

    def request(
        self, method: str, path: str, body: JsonObject | None = None, query: Mapping[str, str] | None = None
    ) -> JsonObject:
        answer = self.answers.get(path, 404)
        if isinstance(answer, int):
            raise AnsweredError(answer)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def api() -> Api:
    return Api()


def cluster(api: Api, **options: object) -> CheckedCluster:
    return CheckedCluster(api, "https://lab", "team", options)  # type: ignore[arg-type]  # options are JSON


def steps(api: Api, **options: object) -> dict[str, str]:
    """What each step found, those that failed marked."""
    found = check_steps(lambda: cluster(api, **options), lambda: [JOB])
    return {step.name: ("" if step.is_good else "BAD ") + step.text for step in found}


def test_a_cluster_that_takes_everything_passes_every_step(api: Api) -> None:
    assert steps(api) == {
        "access": "https://lab, namespace team",
        "reach": "Kubernetes v1.36.2 answers",
        "log in": "logged in as ada",
        "kinds": "Job (batch/v1) served",
        "permissions": f"all {len(permissions.needed(JOBS))} that are needed",
        "fields": "the cluster takes all of Job",
        "storage": "none: code of up to 1 MiB goes by ConfigMaps",
        "image": "python:3.12-slim: the trial shows whether it can be pulled",
    }


@pytest.mark.parametrize(
    ("path", "answer", "name", "text"),
    [
        ("/version", BackendUnavailableError("No answer."), "reach", "No answer."),
        (permissions.SELF, 401, "log in", "HTTP 401"),
        (permissions.REVIEWS, {"status": {"allowed": False}}, "permissions", "ada may not create jobs.batch"),
        ("/openapi/v3", {"paths": {}}, "kinds", "Job: batch/v1 is not served"),
    ],
)
def test_the_first_step_that_fails_is_the_last(
    api: Api, path: str, answer: JsonObject | int, name: str, text: str
) -> None:
    api.answers[path] = answer
    found = list(steps(api).items())
    assert [key for key, text in found if text.startswith("BAD")] == [name] == [found[-1][0]]
    assert text in found[-1][1]


def test_older_clusters_that_do_not_say_who_one_is_pass_too(api: Api) -> None:
    api.answers[permissions.SELF] = 404
    assert steps(api)["log in"] == "logged in"


def test_all_unknown_fields_are_said_before_a_submit(api: Api) -> None:
    bad = {**JOB, "spec": {"backoffLimt": 1, "suspend": "yes", "a": 1, "b": 1, "c": 1}}
    with pytest.raises(BackendUnavailableError) as caught:
        check_objects(cluster(api), [bad])
    assert caught.value.found.splitlines() == [
        "Job spec.backoffLimt: unknown field; did you mean 'backoffLimit'?",
        "Job spec.suspend: 'yes'; expected true or false",
        "Job spec.a: unknown field; expected one of backoffLimit, suspend",
        "and 2 more",
    ]
    assert len(caught.value._render_traceback_()) <= 6


def test_a_cluster_that_hides_its_schemas_is_believed(api: Api) -> None:
    api.answers["/openapi/v3"] = 403
    assert check_objects(cluster(api), [JOB]) == []


@pytest.mark.parametrize(
    ("group", "plural", "namespace", "options"),
    [
        ("kueue.x-k8s.io", "localqueues", "team", {}),
        ("scheduling.volcano.sh", "queues", "", {"scheduler": "volcano"}),
    ],
)
def test_a_queue_that_is_not_there_is_said_with_the_nearest(
    api: Api, group: str, plural: str, namespace: str, options: dict[str, str]
) -> None:
    with pytest.raises(BackendUnavailableError, match=f"No queue 'gpu' among the {plural}.{group}"):
        check_objects(cluster(api, queue="gpu", **options), [JOB])  # not installed
    api.answers[f"/apis/{group}"] = {"preferredVersion": {"version": "v1"}}
    path = ObjectType(group, "v1", plural, "").path(namespace)
    api.answers[path] = {"items": [{"metadata": {"name": "gpus"}}]}
    with pytest.raises(BackendUnavailableError, match="Did you mean 'gpus'"):
        check_objects(cluster(api, queue="gpu", **options), [JOB])
    assert check_objects(cluster(api, queue="gpus", **options), [JOB]) == []
    assert steps(api, queue="gpus", **options)["queue"] == "gpus is there"
    api.answers[path] = 403
    assert check_objects(cluster(api, queue="x", **options), [JOB]) == [
        "Whether there is a queue 'x' could not be asked."
    ]


def test_the_claim_of_the_storage_and_the_pull_secrets_are_looked_for(api: Api) -> None:
    claim = "/api/v1/namespaces/team/persistentvolumeclaims/training"
    assert steps(api, storage={"pvc": "training"})["storage"].startswith("BAD There is no PersistentVolumeClaim")
    api.answers[claim] = {"status": {"phase": "Bound"}, "spec": {"accessModes": ["ReadWriteMany"]}}
    assert steps(api, storage={"pvc": "training"})["storage"] == "the PVC training is Bound (ReadWriteMany)"
    api.answers[claim] = 403
    assert steps(api, storage={"pvc": "training"})["storage"] == "the PVC training could not be asked"
    assert steps(api, storage={"nfs": {"server": "a", "path": "/b"}})["storage"].startswith("nfs: the trial shows")
    assert steps(api, image_pull_secrets=["login"])["image"].startswith("BAD There is no Secret 'login'")


def test_without_access_nothing_is_asked(api: Api) -> None:
    def connect() -> CheckedCluster:
        raise BackendError("There is no access to a cluster.", "", "Name a kubeconfig.")

    (step,) = check_steps(connect, lambda: [JOB])
    assert (step.name, step.is_good, step.action) == ("access", False, "Name a kubeconfig.")


def test_a_namespace_that_is_not_there_is_refused_before_anything_is_sent(api):
    api.answers["/api/v1/namespaces/team"] = 404
    with pytest.raises(BackendUnavailableError, match="There is no namespace 'team'"):
        check_objects(cluster(api), [JOB])
    api.answers["/api/v1/namespaces/team"] = 403
    assert check_objects(cluster(api), [JOB]) == []

"""Tests of what a cluster is asked before it gets a trial, and the steps of `backends check`."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.inventory import permissions
from jupyter_autotrain.backends.kubernetes.inventory.check_steps import check_steps, check_trial
from jupyter_autotrain.backends.kubernetes.inventory.cluster_checks import CheckedCluster
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

JOBS = ObjectType("batch", "v1", "jobs", "Job")
JOB = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"backoffLimit": 0}}
CREATE = "/apis/batch/v1/namespaces/team/jobs"
CREATE_POD = "/api/v1/namespaces/team/pods"
TEMPLATE = {"spec": {"containers": [{"name": "trial", "image": "python"}]}}


class Api:
    """Answers by path; a number is the code of a refusal."""

    def __init__(self) -> None:
        self.answers: dict[str, JsonObject | int | Exception] = {
            "/version": {"gitVersion": "v1.36.2"},
            "/api/v1/namespaces/team": {},
            "/apis/batch/v1": {"resources": [{"name": "jobs", "kind": "Job"}]},
            CREATE: {},
            CREATE_POD: {},
            permissions.SELF: {"status": {"userInfo": {"username": "ada"}}},
            permissions.REVIEWS: {"status": {"allowed": True}},
        }

    def request(
        self, method: str, path: str, body: JsonObject | None = None, query: Mapping[str, str] | None = None
    ) -> JsonObject:
        if path in (CREATE, CREATE_POD):
            assert (method, query) == ("POST", {"dryRun": "All", "fieldValidation": "Strict"})
        answer = self.answers.get(path, 404)
        if isinstance(answer, int):
            raise ApiRefusedError(answer, "", f"HTTP {answer}")
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def api() -> Api:
    return Api()


def cluster(api: Api, **options: object) -> CheckedCluster:
    return CheckedCluster(api, "https://lab", "team", options)  # type: ignore[arg-type]  # options are JSON


def steps(api: Api, **options: object) -> dict[str, str]:
    """Return what each step found, those that failed marked."""
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
        ("/apis/batch/v1", {"resources": []}, "kinds", "Job: batch/v1 is not served"),
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


def refused(code: int, message: str, **details: object) -> ApiRefusedError:
    return ApiRefusedError(code, "", message, details)  # type: ignore[arg-type]  # JSON


def told(api: Api, job: JsonObject = JOB) -> list[str]:
    """Return what a check says is wrong."""
    with pytest.raises(BackendUnavailableError) as caught:
        check_trial(cluster(api), [job])
    assert len(caught.value._render_traceback_()) <= 6
    return caught.value.found.splitlines()


def test_all_unknown_fields_are_said_before_a_submit(api: Api) -> None:
    fields = ", ".join(f'unknown field "spec.{name}"' for name in "abcde")
    words = f'Job in version "v1" cannot be handled as a Job: strict decoding error: {fields}'
    api.answers[CREATE] = refused(400, words)
    assert told(api) == [*(f'Job: unknown field "spec.{name}"' for name in "abc"), "and 2 more"]


def test_each_value_that_the_cluster_refuses_is_a_line(api: Api) -> None:
    causes = [{"field": "spec.backoffLimit", "message": "Invalid value: -1: must be greater than or equal to 0"}]
    api.answers[CREATE] = refused(422, "Job is invalid", causes=causes)
    assert told(api) == ["Job spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"]


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        (403, "no PriorityClass with name fast was found", "Pod: there is no priority class fast"),
        (403, 'serviceaccount "me" not found', "Pod: there is no service account me"),
        (403, 'violates PodSecurity "baseline:latest": host namespaces', "Pod: the namespace allows only pods of"),
        (403, "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0", "Pod: the quota q of its"),
        (400, 'strict decoding error: unknown field "spec.hostNetwrk"', 'Pod: unknown field "spec.hostNetwrk"'),
    ],
)
def test_a_pod_that_the_cluster_refuses_is_told_before_a_submit(api: Api, code: int, message: str, words: str) -> None:
    api.answers[CREATE_POD] = refused(code, f'pods "x" is forbidden: {message}')
    (line,) = told(api, {**JOB, "spec": {"template": TEMPLATE}})
    assert line.startswith(words)


NOTES = {
    'admission webhook "x" denied the request: bare pods are not for us': "The cluster may refuse its pods:",
    'admission webhook "x" does not support dry run': "The cluster may refuse its pods:",
    "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2": "Pod: the quota q of its namespace is used",
}


@pytest.mark.parametrize("message", NOTES)
def test_what_may_not_be_so_for_the_trial_itself_is_only_noted(api: Api, message: str) -> None:
    api.answers[CREATE_POD] = refused(403, message)
    (note,) = check_trial(cluster(api), [{**JOB, "spec": {"template": TEMPLATE}}])
    assert note.startswith(NOTES[message])


def test_an_object_that_is_there_already_is_taken(api: Api) -> None:
    api.answers[CREATE] = ApiRefusedError(409, "AlreadyExists", "it is there")
    assert check_trial(cluster(api), [JOB]) == []


def test_below_the_version_that_refuses_unknown_fields_a_note_says_that_the_check_is_weaker(api: Api) -> None:
    api.answers["/version"] = {"gitVersion": "v1.26.15+k3s1"}
    (note,) = check_trial(cluster(api), [JOB])
    assert note.startswith("Kubernetes v1.26.15+k3s1 drops fields that it does not know: this check is weaker")
    api.answers["/version"] = {"gitVersion": "v1.27.0"}
    assert check_trial(cluster(api), [JOB]) == []
    api.answers["/version"] = 403
    assert check_trial(cluster(api), [JOB]) == []


def test_a_user_who_may_not_create_pods_is_told_what_is_not_known(api: Api) -> None:
    allowed = api.request

    def request(method: str, path: str, body: JsonObject | None = None, query: object = None) -> JsonObject:
        asked = (body or {}).get("spec", {}).get("resourceAttributes", {})  # type: ignore[union-attr]  # a review
        if asked.get("resource") == "pods" and asked.get("verb") == "create" and "subresource" not in asked:
            return {"status": {"allowed": False}}
        return allowed(method, path, body, query)  # type: ignore[arg-type]

    api.request = request  # type: ignore[method-assign]
    (note,) = check_trial(cluster(api), [{**JOB, "spec": {"template": TEMPLATE}}])
    assert note.startswith("You may not create pods")


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
        check_trial(cluster(api, queue="gpu", **options), [JOB])  # not installed
    api.answers[f"/apis/{group}"] = {"preferredVersion": {"version": "v1"}}
    path = ObjectType(group, "v1", plural, "").path(namespace)
    api.answers[path] = {"items": [{"metadata": {"name": "gpus"}}]}
    with pytest.raises(BackendUnavailableError, match="Did you mean 'gpus'"):
        check_trial(cluster(api, queue="gpu", **options), [JOB])
    assert check_trial(cluster(api, queue="gpus", **options), [JOB]) == []
    assert steps(api, queue="gpus", **options)["queue"] == "gpus is there"
    api.answers[path] = 403
    assert check_trial(cluster(api, queue="x", **options), [JOB]) == [
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
        check_trial(cluster(api), [JOB])
    api.answers["/api/v1/namespaces/team"] = 403
    assert check_trial(cluster(api), [JOB]) == []

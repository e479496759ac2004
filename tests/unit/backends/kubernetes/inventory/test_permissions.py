"""Permissions are asked before anything is sent; what is missing is said with a Role that gives it."""

from __future__ import annotations

import json
from collections.abc import Callable

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.inventory import permissions
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.errors import BackendError

JOBS = ObjectType("batch", "v1", "jobs", "Job")


def cluster(forbidden: set[str], user: str = "ada") -> Callable[[str, JsonObject], JsonObject]:
    """Return an API server that refuses these verbs on resources."""

    def post(path: str, body: JsonObject) -> JsonObject:
        if path == permissions.SELF:
            return {"status": {"userInfo": {"username": user}}}
        asked = body["spec"]["resourceAttributes"]  # type: ignore[index,call-overload]  # as it is sent
        resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
        assert asked["namespace"] == "team"
        return {"status": {"allowed": f"{asked['verb']} {resource}" not in forbidden}}

    return post


def test_what_is_missing_is_named_by_verb_and_resource() -> None:
    wanted = permissions.needed(JOBS)
    found = permissions.missing(cluster({"create jobs", "get pods/log", "create pods/exec"}), "team", wanted)
    assert [str(one) for one in found] == ["create jobs.batch", "get pods/log", "create pods/exec"]
    assert permissions.missing(cluster(set()), "team", wanted) == ()


def test_the_message_has_a_role_and_its_binding_ready_to_apply() -> None:
    lacking = permissions.missing(cluster({"create jobs", "get pods/log"}), "team", permissions.needed(JOBS))
    error = permissions.refusal(lacking, "team", permissions.user(cluster(set())))
    assert error.found == "ada may not create jobs.batch, get pods/log in the namespace 'team'."
    role, binding = json.loads(error.action)["items"]
    assert role["rules"] == [
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
    ]
    assert binding["subjects"] == [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ada"}]
    assert len(error._render_traceback_()) <= 6


def test_a_service_account_is_bound_by_its_own_name() -> None:
    binding = permissions.role_binding("team", "system:serviceaccount:hub:jovyan")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "namespace": "hub", "name": "jovyan"}]


def test_a_cluster_that_does_not_say_what_is_allowed_has_refused_nothing() -> None:
    def post(path: str, body: JsonObject) -> JsonObject:
        raise BackendError("404")

    assert permissions.missing(post, "team", permissions.needed(JOBS)) == ()
    assert permissions.user(post) == ""


def test_only_what_a_trial_uses_is_asked_for() -> None:
    service = ObjectType("", "v1", "services", "Service")
    plain = {str(one) for one in permissions.needed(JOBS)}
    assert {str(one) for one in permissions.needed(JOBS, [service])} - plain == {"create services"}
    volume = {str(one) for one in permissions.needed(JOBS, (), {"storage": {"pvc": "training"}})}
    assert volume - plain == {"create pods", "get pods", "delete pods"}
    gang = {str(one) for one in permissions.needed(JOBS, is_gang=True)}
    assert gang - plain == {"patch jobs.batch"}
    reuse = {str(one) for one in permissions.needed(JOBS, (), {"reuse": 2})}
    assert reuse - plain == {"patch pods", "get configmaps"}
    server = {str(one) for one in permissions.needed(JOBS, (), {"storage": {"s3": {"bucket": "team"}}})}
    assert server - plain == {"get secrets"}


def test_the_role_that_is_shown_also_suffices_for_reasons_and_for_clean() -> None:
    wanted = permissions.useful(JOBS)
    told = {str(one) for one in wanted}
    assert {"list events", "delete configmaps", "list secrets", "delete services", "delete jobs.batch"} <= told
    lacking = permissions.needed(JOBS)[:1]
    error = permissions.refusal(lacking, "team", "ada", wanted)
    assert error.found == "ada may not create jobs.batch in the namespace 'team'."
    rules = json.loads(error.action)["items"][0]["rules"]
    assert {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]} in rules
    assert {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "delete"]} in rules

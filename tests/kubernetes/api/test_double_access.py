"""Who is let in, what is forbidden, and a server that fails or comes back with another certificate."""

from __future__ import annotations

import time
import urllib.error

import pytest
from kubernetes import client
from urllib3.exceptions import ProtocolError

from tests.kubernetes.api.conftest import Double, client_of
from tests.kubernetes.api.requests import Requests, config_map, core_path, job, jobs
from tests.labs.kubernetes.server.access import Rule, User

READER = User("reader", (Rule(("get", "list", "watch"), ("",), ("pods", "pods/log"), ("team",)),))


def review(requests: Requests, verb: str, resource: str, **more: str) -> bool:
    attributes = {"verb": verb, "resource": resource, "namespace": "team"} | more
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = requests("POST", path, {"spec": {"resourceAttributes": attributes}})
    assert answer.code == 201
    return answer.body["status"]["allowed"]


def test_rules_of_a_token_allow_what_they_say_and_no_more(double: Double) -> None:
    requests = Requests(double.api.kubeconfig(READER))
    assert requests("GET", core_path("team", "pods")).code == 200
    answer = requests("POST", jobs("team"), job("a"))
    assert (answer.code, answer.body["reason"]) == (403, "Forbidden")
    expected = 'User "reader" cannot create resource "jobs" in API group "batch" in the namespace "team"'
    assert answer.message == f"jobs.batch is forbidden: {expected}"
    assert requests("GET", core_path("default", "pods")).code == 403
    answer = requests("GET", "/api/v1/nodes")
    assert answer.message.endswith('cannot list resource "nodes" in API group "" at the cluster scope')


def test_a_user_is_told_its_own_name(double: Double) -> None:
    answer = Requests(double.api.kubeconfig(READER))("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert (answer.code, answer.body["status"]["userInfo"]["username"]) == (201, "reader")


def test_a_review_says_what_the_rules_say(double: Double) -> None:
    requests = Requests(double.api.kubeconfig(READER))
    assert review(requests, "get", "pods")
    assert review(requests, "get", "pods", subresource="log")
    assert not review(requests, "create", "pods", subresource="exec")
    assert not review(requests, "create", "jobs", group="batch")


def test_the_official_client_asks_what_it_may(batch: client.BatchV1Api, namespace: str) -> None:
    attributes = client.V1ResourceAttributes(verb="create", group="batch", resource="jobs", namespace=namespace)
    body = client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes))
    answer = client.AuthorizationV1Api(batch.api_client).create_self_subject_access_review(body)
    assert answer.status.allowed is True


def test_what_a_test_forbids_is_forbidden_to_everybody_until_it_is_allowed_again(double: Double) -> None:
    requests = Requests(double.api.kubeconfig())
    double.api.forbid("create", "jobs")
    assert requests("POST", jobs("default"), job("a")).code == 403
    assert not review(requests, "create", "jobs", group="batch")
    double.api.access.allow_again()
    assert requests("POST", jobs("default"), job("a")).code == 201


def test_a_token_that_is_not_valid_is_401(kubeconfig, namespace: str) -> None:
    requests = Requests(kubeconfig)
    if not requests.token:
        pytest.skip("this cluster knows its user by certificate")
    requests.token = "no-such-token"
    answer = requests("GET", core_path(namespace, "pods"))
    assert (answer.code, answer.body["reason"], answer.message) == (401, "Unauthorized", "Unauthorized")


def test_without_a_token_nothing_is_allowed(double: Double) -> None:
    requests = Requests(double.api.kubeconfig())
    requests.token = ""
    answer = requests("GET", core_path("default", "pods"))
    assert answer.code == 403
    assert 'User "system:anonymous" cannot list resource "pods"' in answer.message


def test_tokens_expire_and_new_ones_are_valid(double: Double) -> None:
    old = Requests(double.api.kubeconfig())
    double.api.expire_tokens()
    assert old("GET", core_path("default", "pods")).code == 401
    assert Requests(double.api.kubeconfig())("GET", core_path("default", "pods")).code == 200


def test_a_kubeconfig_that_asks_a_program_has_the_token_of_the_moment(double: Double) -> None:
    kubeconfig = double.api.kubeconfig(renewing=True)
    for _ in range(2):
        with client_of(kubeconfig) as api_client:
            assert client.CoreV1Api(api_client).list_namespaced_pod("default").items == []
        double.api.expire_tokens()


def test_too_many_requests_say_when_to_come_back(double: Double) -> None:
    requests = Requests(double.api.kubeconfig())
    double.api.fail_next(429, retry_after_s=2, match="create .*jobs", count=2)
    assert requests("GET", jobs("default")).code == 200
    answer = requests("POST", jobs("default"), job("a"))
    assert (answer.code, answer.body["reason"], answer.headers["Retry-After"]) == (429, "TooManyRequests", "2")
    assert answer.body["details"] == {"retryAfterSeconds": 2}
    assert requests("POST", jobs("default"), job("a")).code == 429
    assert requests("POST", jobs("default"), job("a")).code == 201


def test_a_server_that_is_back_has_its_objects_and_another_certificate(double: Double) -> None:
    before = Requests(double.api.kubeconfig())
    before("POST", core_path("default", "configmaps"), config_map("a"))
    url = double.api.url
    double.api.stop()
    with pytest.raises(urllib.error.URLError, match="refused"):
        before("GET", core_path("default", "configmaps", "a"))
    double.api.start(new_certificate=True)
    assert double.api.url == url
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        before("GET", core_path("default", "configmaps", "a"))
    assert Requests(double.api.kubeconfig())("GET", core_path("default", "configmaps", "a")).code == 200


def test_a_stop_ends_watches_and_a_restart_with_the_same_certificate_goes_on(double: Double) -> None:
    requests = Requests(double.api.kubeconfig())
    with client_of(double.api.kubeconfig()) as api_client:
        core = client.CoreV1Api(api_client)
        response = core.list_namespaced_config_map("default", watch=True, _preload_content=False)
        double.api.stop()
        with pytest.raises(ProtocolError):
            list(response.stream())
        double.api.start()
        assert requests("GET", core_path("default", "configmaps")).code == 200


def test_requests_are_counted_by_verb_and_resource(double: Double) -> None:
    requests = Requests(double.api.kubeconfig())
    requests("POST", jobs("default"), job("a"))
    requests("GET", jobs("default", "a"))
    requests("GET", jobs("default"))
    requests("DELETE", jobs("default"), labelSelector="a=b")
    counted = dict(double.api.requests)
    assert counted == {
        ("create", "jobs"): 1, ("get", "jobs"): 1, ("list", "jobs"): 1, ("deletecollection", "jobs"): 1,
    }  # fmt: skip


def test_a_server_whose_clock_is_wrong_stamps_its_time(double: Double) -> None:
    later_s = time.time() + 3600
    double.store.clock = lambda: later_s
    answer = Requests(double.api.kubeconfig())("POST", core_path("default", "configmaps"), config_map("a"))
    assert answer.body["metadata"]["creationTimestamp"] == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(later_s))


def test_keys_and_tokens_are_for_their_owner_only(double: Double) -> None:
    double.api.kubeconfig()
    modes = {path.stat().st_mode & 0o777 for path in double.containers.folder.iterdir()}
    assert modes == {0o600}

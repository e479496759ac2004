"""Pods that namespaces refuse: by their level of pod security, and by quotas that also look at init containers."""

from __future__ import annotations

from typing import Any

from tests.kubernetes.api.conftest import make_quota, wait_until
from tests.kubernetes.api.requests import Requests, core_path, pod

LIMITS = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
ALLOWED = {
    "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}  # fmt: skip


def container(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "example.org/nothing:1", **more}


def test_a_restricted_namespace_takes_only_pods_that_give_up_what_they_may(requests: Requests, namespace: str) -> None:
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    requests("PATCH", f"/api/v1/namespaces/{namespace}", label, "application/merge-patch+json")
    path = core_path(namespace, "pods")
    # A server looks at what it has heard of its namespaces, which may be older.
    wait_until(lambda: requests("POST", path, pod("a"), dryRun="All").code == 403, "the label counts")
    refused = requests("POST", path, pod("a"))
    assert refused.code == 403
    for told in ('violates PodSecurity "restricted:', "allowPrivilegeEscalation != false", "runAsNonRoot != true"):
        assert told in refused.message
    own = [container("main", securityContext=ALLOWED)]
    assert requests("POST", path, pod("b", containers=own)).code == 201
    inits = [container("first")]
    assert '"first"' in requests("POST", path, pod("c", containers=own, initContainers=inits)).message


def test_a_quota_of_cpus_needs_them_said_of_init_containers_too(requests: Requests, namespace: str) -> None:
    hard = {"metadata": {"name": "small"}, "spec": {"hard": {"limits.cpu": "4"}}}
    make_quota(requests, namespace, {"apiVersion": "v1", "kind": "ResourceQuota", **hard})
    own = [container("main", resources=LIMITS)]
    answer = requests("POST", core_path(namespace, "pods"), pod("a", containers=own, initContainers=[container("i")]))
    assert answer.code == 403
    assert "must specify limits.cpu for: i" in answer.message

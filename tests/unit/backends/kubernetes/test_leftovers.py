"""Tests of leftovers in a cluster: kinds that may not be listed are unknown, and one refusal stops no deletion."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes import leftovers
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.backends.kubernetes.session import Session
from jupyter_autotrain.errors import BackendError

FORBIDDEN = ApiRefusedError(403, "Forbidden", "ada may not")


class Cluster:
    """A Job and a Service of a lost experiment, for a user who may do some things."""

    def __init__(self, unlisted: str = "", undeletable: str = "") -> None:
        self.unlisted = unlisted
        self.undeletable = undeletable
        self.deleted: list[str] = []

    def list(self, object_type: ObjectType, _namespace: str, _selector: str) -> list[JsonObject]:
        if object_type.plural == self.unlisted or object_type.group not in {"", "batch"}:
            raise FORBIDDEN
        if object_type.kind not in {"Job", "Service"}:
            return []
        labels = {"jupyter-autotrain/experiment": "lost"}
        return [{"metadata": {"name": object_type.kind.lower(), "uid": object_type.kind, "labels": labels}}]

    def delete(self, object_type: ObjectType, _namespace: str, name: str) -> None:
        if object_type.plural == self.undeletable:
            raise FORBIDDEN
        self.deleted.append(name)


def find(cluster: Cluster) -> leftovers.Leftovers:
    session = SimpleNamespace(api=cluster, namespace="team", home="home")
    return leftovers.find(cast("Session", session), [])


def test_kinds_of_operators_that_may_not_be_listed_hold_nothing() -> None:
    assert find(Cluster()).names() == ["Job job in namespace team", "Service service in namespace team"]


def test_a_kind_that_may_not_be_listed_is_said_with_what_is_known() -> None:
    with pytest.raises(BackendError) as caught:
        find(Cluster(unlisted="secrets")).names()
    assert "may not list secrets in the namespace team" in caught.value.found
    assert "Job job in namespace team" in caught.value.found


def test_what_may_not_be_deleted_is_said_after_all_others_are_deleted() -> None:
    cluster = Cluster(undeletable="jobs")
    with pytest.raises(BackendError, match="may not delete Job job in namespace team"):
        leftovers.remove(cast("KubernetesApi", cluster), find(cluster))
    assert cluster.deleted == ["service"]

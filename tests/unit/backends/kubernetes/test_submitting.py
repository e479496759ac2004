"""The objects of a trial are all made, or none stays."""

from __future__ import annotations

from typing import cast

import pytest

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.backends.kubernetes.submitting import Submitter
from jupyter_autotrain.backends.kubernetes.trial_program import TrialProgram
from jupyter_autotrain.backends.kubernetes.workloads.plain_job import JobWorkload
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import BackendError

QUOTA = ApiRefusedError(403, "Forbidden", "exceeded quota: small, requested: count/secrets=1")


class Cluster:
    """Takes Jobs, and no Secrets."""

    def __init__(self, *, has_job: bool = False) -> None:
        self.jobs: list[JsonObject] = []
        self.has_job = has_job

    def create(self, _type: ObjectType, _namespace: str, body: JsonObject) -> JsonObject:
        self.jobs.append({**body, "metadata": {**cast("JsonObject", body["metadata"]), "uid": "u"}})
        if self.has_job:
            raise ApiRefusedError(409, "AlreadyExists", "it is there")
        return self.jobs[0]

    def get(self, _type: ObjectType, _namespace: str, _name: str) -> JsonObject:
        return self.jobs[0]

    def create_unless_there(self, _type: ObjectType, _namespace: str, _body: JsonObject) -> None:
        raise QUOTA

    def delete_collection(self, _type: ObjectType, _namespace: str, label_selector: str) -> None:
        assert "jupyter-autotrain/job in (e-1-1)" in label_selector
        self.jobs.clear()


def submit(cluster: Cluster) -> None:
    trial = TrialSpec("e", 1, 1, secrets=("API_KEY",))
    program = TrialProgram(trial, {}, JobWorkload(), "0123456789abcdef", "team", {})
    Submitter(cast("KubernetesApi", cluster), "team").submit(program, {}, {"API_KEY": "hunter2"})


def test_a_job_whose_secret_is_refused_does_not_stay_to_hold_a_node() -> None:
    cluster = Cluster()
    with pytest.raises(ApiRefusedError, match="count/secrets"):
        submit(cluster)
    assert cluster.jobs == []


def test_a_job_that_was_there_before_may_run_and_stays() -> None:
    """A quota is asked before the name is looked at: it may be full by the Secret that is there."""
    cluster = Cluster(has_job=True)
    with pytest.raises(BackendError, match="count/secrets") as refused:
        submit(cluster)
    assert not isinstance(refused.value, ApiRefusedError)  # by which the code of a trial would go that was not made
    assert len(cluster.jobs) == 1

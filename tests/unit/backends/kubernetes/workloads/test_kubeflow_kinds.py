"""Kubeflow's kinds: what is sent for a trial, and what is read of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.kubeflow_backend import of_kind
from jupyter_autotrain.backends.kubernetes.objects.workload import Workload
from jupyter_autotrain.backends.kubernetes.workloads.training_operator import (
    MPIJobWorkload,
    PyTorchJobWorkload,
    mpijob_v1,
    paddlejob,
    tfjob,
)
from jupyter_autotrain.backends.kubernetes.workloads.training_runtimes import Runtime
from jupyter_autotrain.backends.kubernetes.workloads.trainjob import TrainJobWorkload
from jupyter_autotrain.errors import BackendError
from tests.unit.backends.kubernetes.kubeflow_cases import HOME, OVERRIDES_2_1, cases, rendered

GOLDEN = Path(__file__).parents[4] / "golden" / "kubeflow.json"
ALL: tuple[Workload, ...] = (
    PyTorchJobWorkload(), MPIJobWorkload(), mpijob_v1(), tfjob(), paddlejob(), TrainJobWorkload(),
)  # fmt: skip


def kinds(workload: Workload) -> str:
    return f"{workload.object_type.kind}-{workload.object_type.version}"


def test_the_golden_manifests_are_as_they_were(request: pytest.FixtureRequest) -> None:
    text = json.dumps(cases(), indent=1) + "\n"
    if request.config.getoption("--golden-update"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("workload", ALL, ids=kinds)
def test_names_fit_with_the_longest_suffix_of_a_pod_and_differ_per_job_and_home(workload: Workload) -> None:
    job_id = f"{'0-Long_Experiment Name' * 5}-1-1"
    name = workload.object_name(job_id, HOME)
    assert name == workload.object_name(job_id, HOME)
    assert name[0].isalpha()
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    suffix = "-node-0-9999-abcde" if workload.object_type.kind == "TrainJob" else "-worker-9999"
    assert len(name + suffix) <= 63
    assert len({name, workload.object_name(job_id, "other"), workload.object_name(job_id + "2", HOME)}) == 3


@pytest.mark.parametrize("workload", ALL, ids=kinds)
def test_an_object_that_was_made_before_is_read_by_its_kind_and_version(workload: Workload) -> None:
    object_type = workload.object_type
    assert of_kind(object_type.kind, object_type.version).object_type == object_type


def test_an_unknown_kind_is_told_with_those_that_there_are() -> None:
    with pytest.raises(BackendError, match="MPIJob v2beta1"):
        of_kind("MXJob", "v1")


def conditions(*found: tuple[str, str]) -> dict[str, Any]:
    listed = [{"type": kind, "status": status, "message": f"It is {kind}."} for kind, status in found]
    return {"status": {"conditions": listed}}


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (conditions(), TrialState.PREPARING),
        (conditions(("Created", "True")), TrialState.PREPARING),
        (conditions(("Created", "True"), ("Suspended", "True")), TrialState.PREPARING),
        (conditions(("Suspended", "False"), ("Running", "True")), TrialState.RUNNING),
        (conditions(("Created", "True"), ("Restarting", "True")), TrialState.RUNNING),
        (conditions(("Running", "False"), ("Succeeded", "True")), TrialState.SUCCEEDED),
        (conditions(("Running", "False"), ("Failed", "True")), TrialState.FAILED),
    ],
)
def test_the_state_of_a_job_of_the_training_operator_is_that_of_its_conditions(
    found: dict[str, Any], state: TrialState
) -> None:
    for workload in ALL[:-1]:
        assert workload.state(found, []).state is state


def test_a_failed_job_says_what_its_pods_say_or_else_its_controller() -> None:
    found = {"kind": "PyTorchJob", **conditions(("Failed", "True"))}
    assert PyTorchJobWorkload().state(found, []).reason == "PyTorchJob says it failed: It is Failed."
    killed = {"name": "pytorch", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
    pod = {"spec": {"containers": [{"name": "pytorch"}]}, "status": {"phase": "Failed", "containerStatuses": [killed]}}
    assert "memory" in PyTorchJobWorkload().state(found, [pod]).reason


def test_a_job_that_was_ended_at_its_time_limit_says_so() -> None:
    message = "Job t has failed because it was active longer than specified deadline"
    failed = {"type": "Failed", "status": "True", "message": message}
    found = {"spec": {"runPolicy": {"activeDeadlineSeconds": 90}}, "status": {"conditions": [failed]}}
    assert "the trial ran longer than its limit of 90 s" in PyTorchJobWorkload().state(found, []).reason
    failed = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}
    found = {"spec": {"activeDeadlineSeconds": 60}, "status": {"conditions": [failed]}}
    assert "the trial ran longer than its limit of 60 s" in TrainJobWorkload().state(found, []).reason


def test_a_job_that_its_queue_has_suspended_says_which_queue_it_waits_for() -> None:
    labels = {"kueue.x-k8s.io/queue-name": "team-a"}
    for spec in ({"suspend": True}, {"runPolicy": {"suspend": True}}):
        found = {"metadata": {"labels": labels}, "spec": spec, **conditions(("Suspended", "True"))}
        for workload in ALL:
            assert "queued by Kueue in team-a" in workload.state(found, []).reason


def trainjob(**status: Any) -> TrialState:
    return TrainJobWorkload().state({"status": status}, []).state


def test_a_trainjob_runs_when_a_pod_is_ready_since_it_has_no_condition_for_that() -> None:
    node = {"name": "node", "ready": 1, "active": 1, "succeeded": 0, "failed": 0, "suspended": 0}
    assert trainjob() is TrialState.PREPARING
    assert trainjob(jobsStatus=[{**node, "ready": 0}]) is TrialState.PREPARING
    assert trainjob(jobsStatus=[node]) is TrialState.RUNNING
    complete = {"type": "Complete", "status": "True", "reason": "AllJobsCompleted"}
    assert trainjob(jobsStatus=[node], conditions=[complete]) is TrialState.SUCCEEDED
    assert trainjob(conditions=[{**complete, "type": "Failed"}]) is TrialState.FAILED
    assert trainjob(conditions=[{**complete, "type": "Suspended"}]) is TrialState.PREPARING


def test_a_container_that_its_jobset_starts_again_has_failed() -> None:
    ended = {"name": "node", "restartCount": 1, "lastState": {"terminated": {"exitCode": 3}}}
    pod = {"metadata": {"name": "t-node-0-0-abcde"}, "status": {"containerStatuses": [ended]}}
    found = TrainJobWorkload().state({"status": {}}, [pod])
    assert found.state is TrialState.FAILED
    assert "exited with code 3" in found.reason


def test_too_much_memory_is_told_of_a_container_that_was_started_again() -> None:
    killed = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    status = {"containerStatuses": [{"name": "node", "state": {"running": {}}, "lastState": killed}]}
    found = TrainJobWorkload().state({"status": {}}, [{"metadata": {"name": "t"}, "status": status}])
    assert found.state is TrialState.FAILED
    assert found.reason.startswith("Out of memory")


def test_what_a_trainjob_has_no_field_for_is_refused_by_name() -> None:
    with pytest.raises(BackendError, match="cannot say this of its pods: priorityClassName, schedulerName") as caught:
        rendered(TrainJobWorkload(), {"priority_class": "low", "scheduler": "volcano"})
    assert "PyTorchJob" in caught.value.action
    with pytest.raises(BackendError, match="securityContext"):
        rendered(TrainJobWorkload(layout=OVERRIDES_2_1), {"security_context": {"runAsUser": 1000}})


def test_the_scheduler_of_a_trainjob_is_the_one_of_its_runtime() -> None:
    found = rendered(TrainJobWorkload(Runtime(gang="volcano")), {"scheduler": "volcano"})[0]
    assert "volcano" not in json.dumps(found["spec"])


def test_no_value_of_a_secret_is_in_a_manifest() -> None:
    for found in cases().values():
        assert '"secretKeyRef": {"name": "digits-secret", "key": "TOKEN"}' in json.dumps(found)


def ranks(found: dict[str, Any], role: str) -> dict[str, Any]:
    spec = found["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
    return {one["name"]: one.get("value") for one in spec["containers"][0]["env"]}


def test_workers_of_an_mpijob_come_after_its_launcher_whether_they_are_counted_from_0_or_1() -> None:
    newest = rendered(MPIJobWorkload(), {}, launcher="mpi", nodes=3)[0]
    assert newest["spec"]["runLauncherAsWorker"] is True
    assert ranks(newest, "Launcher")["AUTOTRAIN_NODE_RANK"] == "0"
    assert ranks(newest, "Worker")["AUTOTRAIN_NODE_RANK_OFFSET"] == "0"
    for workload in (MPIJobWorkload(launcher_is_worker=False), mpijob_v1()):
        older = rendered(workload, {}, launcher="mpi", nodes=3)[0]
        assert "runLauncherAsWorker" not in older["spec"]
        assert ranks(older, "Worker")["AUTOTRAIN_NODE_RANK_OFFSET"] == "1"

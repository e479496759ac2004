"""Jobs of the double: their pods are processes, and their status is as the reference lists it."""

from __future__ import annotations

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.objects import trial_reasons
from jupyter_autotrain.backends.kubernetes.objects.workload import WorkloadState
from jupyter_autotrain.backends.kubernetes.workloads.plain_job import JobWorkload
from jupyter_autotrain.testing.bundles import wait_until
from tests.kubernetes.cluster import objects
from tests.labs.kubernetes.cluster import KubernetesLab
from tests.labs.kubernetes.controllers.times import condition_of
from tests.labs.kubernetes.objects.resources import JOBS, PODS


def test_an_indexed_job_numbers_its_pods_and_completes(cluster: KubernetesLab) -> None:
    spec = objects.pod_spec("echo $JOB_COMPLETION_INDEX $(hostname)")
    objects.make_job(cluster, "j", spec, completionMode="Indexed", completions=3, parallelism=3)
    condition = objects.wait_for_condition(cluster, "j", "Complete")
    assert condition["reason"] == "CompletionsReached"
    status = objects.job(cluster, "j")["status"]
    assert (status["succeeded"], status["completedIndexes"]) == (3, "0-2")
    assert [entry["type"] for entry in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    pods = objects.pods_of(cluster, "j")
    assert sorted(objects.log(cluster, pod) for pod in pods) == ["0 j-0\n", "1 j-1\n", "2 j-2\n"]
    labels = pods[0]["metadata"]["labels"]
    assert labels["batch.kubernetes.io/job-name"] == "j"
    assert labels["batch.kubernetes.io/job-completion-index"] == "0"


def test_a_job_fails_at_its_backoff_limit_and_makes_pods_anew_until_then(cluster: KubernetesLab) -> None:
    objects.make_job(cluster, "j", objects.pod_spec("exit 3"), backoffLimit=1)
    condition = objects.wait_for_condition(cluster, "j", "Failed")
    assert condition["reason"] == "BackoffLimitExceeded"
    pods = objects.pods_of(cluster, "j")
    codes = [pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for pod in pods]
    assert codes == [3, 3]
    assert objects.job(cluster, "j")["status"]["failed"] == 2


def test_a_policy_fails_a_job_at_once_or_ignores_a_disruption(cluster: KubernetesLab) -> None:
    codes = {"containerName": "main", "operator": "In", "values": [42]}
    rules = [
        {"action": "FailJob", "onExitCodes": codes},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
    policy = {"rules": rules}
    objects.make_job(cluster, "fails", objects.pod_spec("exit 42"), backoffLimit=5, podFailurePolicy=policy)
    condition = objects.wait_for_condition(cluster, "fails", "Failed")
    assert condition["reason"] == "PodFailurePolicy"
    assert condition["message"].endswith("failed with exit code 42 matching FailJob rule at index 0")
    assert len(objects.pods_of(cluster, "fails")) == 1

    script = "head -c 3000000 /dev/zero > /filled; exec sleep 1000"
    limits = {"limits": {"ephemeral-storage": "1Mi"}}
    spec = objects.pod_spec("", containers=[objects.container(script, resources=limits)])
    objects.make_job(cluster, "disrupted", spec, podFailurePolicy=policy)
    wait_until(lambda: len(objects.pods_of(cluster, "disrupted")) > 1, "a second pod")
    assert "failed" not in objects.job(cluster, "disrupted")["status"]


def conditions_of(job: objects.Json) -> list[tuple[str, str]]:
    return [(entry["type"], entry["status"]) for entry in job["status"].get("conditions", [])]


def test_a_suspended_job_has_no_pods_and_begins_anew_when_it_is_resumed(cluster: KubernetesLab) -> None:
    objects.make_job(cluster, "j", objects.pod_spec("exec sleep 1000", terminationGracePeriodSeconds=0))
    wait_until(lambda: objects.job(cluster, "j").get("status", {}).get("ready") == 1, "a pod")
    cluster.store.patch(JOBS, "default", "j", {"spec": {"suspend": True}})
    words = "is suspended: its `suspend` was set; it goes on when somebody sets it to false"
    assert trial_reasons.preparing([], found=objects.job(cluster, "j")).reason == words
    objects.wait_for_condition(cluster, "j", "Suspended")
    wait_until(lambda: not objects.pods_of(cluster, "j"), "no pods")
    assert "startTime" not in objects.job(cluster, "j")["status"]
    cluster.store.patch(JOBS, "default", "j", {"spec": {"suspend": False}})
    goes_on = [("Suspended", "False")]
    wait_until(lambda: conditions_of(objects.job(cluster, "j")) == goes_on, "a job that goes on")
    wait_until(lambda: objects.job(cluster, "j")["status"].get("ready") == 1, "another pod")
    assert "failed" not in objects.job(cluster, "j")["status"]
    assert conditions_of(objects.job(cluster, "j")) == goes_on


def test_a_job_ends_at_its_deadline_and_is_deleted_after_its_time(cluster: KubernetesLab) -> None:
    spec = objects.pod_spec("exec sleep 1000", terminationGracePeriodSeconds=0)
    objects.make_job(cluster, "late", spec, activeDeadlineSeconds=1)
    assert objects.wait_for_condition(cluster, "late", "Failed")["reason"] == "DeadlineExceeded"
    told = JobWorkload().state(objects.job(cluster, "late"), objects.pods_of(cluster, "late"))
    words = "Timeout: the trial ran longer than its limit of 1 s (`timeout:` in the header)."
    assert told == WorkloadState(TrialState.FAILED, words)
    objects.make_job(cluster, "short", objects.pod_spec("exit 0"), ttlSecondsAfterFinished=0)
    wait_until(lambda: objects.is_gone(lambda: objects.job(cluster, "short")), "the end of the job")
    wait_until(lambda: not objects.pods_of(cluster, "short"), "the end of its pods")


def test_indexes_fail_on_their_own(cluster: KubernetesLab) -> None:
    spec = objects.pod_spec("test $JOB_COMPLETION_INDEX != 1")
    body = {
        "completionMode": "Indexed", "completions": 3, "parallelism": 3, "backoffLimitPerIndex": 0,
        "backoffLimit": 2147483647, "template": {"spec": spec},
    }  # fmt: skip
    cluster.store.create(JOBS, "default", {"metadata": {"name": "j"}, "spec": body})
    assert objects.wait_for_condition(cluster, "j", "Failed")["reason"] == "FailedIndexes"
    status = objects.job(cluster, "j")["status"]
    assert (status["completedIndexes"], status["failedIndexes"]) == ("0,2", "1")


def test_gates_hold_a_pod(cluster: KubernetesLab) -> None:
    objects.make_pod(cluster, "p", objects.pod_spec("exit 0", schedulingGates=[{"name": "wait"}]))
    reason = "SchedulingGated"
    wait_until(lambda: (condition_of(objects.pod(cluster, "p"), "PodScheduled") or {}).get("reason") == reason, reason)
    cluster.store.patch(PODS, "default", "p", {"spec": {"schedulingGates": []}})
    objects.wait_for_phase(cluster, "p", "Succeeded")

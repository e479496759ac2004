"""Jobs of the double: their pods are processes, and their status is as the reference lists it."""

from __future__ import annotations

from jupyter_autotrain.testing.kubernetes.cluster import KubernetesLab
from tests.kubernetes import cluster_objects as objects


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

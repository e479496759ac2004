"""Tests of what is kept of the objects that a manager watches."""

import json

from jupyter_autotrain.backends.kubernetes.objects import pod_parts, trial_reasons


def pod(number: int) -> dict[str, object]:
    """One as a server tells of it: each text is an object of its own."""
    found = {
        "metadata": {
            "name": f"p{number}",
            "uid": f"u{number}",
            "managedFields": [{}],
            "ownerReferences": [{"kind": "Job", "name": "j", "uid": "u"}],
        },
        "spec": {
            "containers": [
                {"name": "sidecar", "image": "proxy:1"},
                {"name": "trial", "image": "python:3.12", "volumeMounts": [{"mountPath": "/autotrain/run"}], "env": []},
            ],
            "nodeName": "node-a",
        },
        "status": {
            "phase": "Failed",
            "podIP": "10.0.0.1",
            "conditions": [
                {"type": "Ready", "status": "True"},
                {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},
            ],
            "containerStatuses": [{"name": "trial", "imageID": "x", "state": {"running": {}}, "lastState": {}}],
        },
    }
    return json.loads(json.dumps(found))


def test_what_reasons_are_made_of_stays_and_what_nobody_reads_goes():
    slim = pod_parts.slim_pod(pod(1))
    assert trial_reasons.ended([slim]) == trial_reasons.ended([pod(1)])
    assert slim["metadata"] == {"name": "p1", "uid": "u1", "ownerReferences": [{"name": "j", "uid": "u"}]}
    assert slim["spec"]["containers"] == [{"name": "trial", "image": "python:3.12"}]
    assert [one["type"] for one in slim["status"]["conditions"]] == ["DisruptionTarget"]
    assert pod_parts.container_state(slim) == "running"
    assert "podIP" not in slim["status"]


def test_what_is_empty_is_not_kept():
    slim = pod_parts.slim_pod(pod(1))
    assert slim["status"]["containerStatuses"] == [{"name": "trial", "state": {"running": {}}}]
    assert slim["spec"].keys() == {"containers", "nodeName"}
    assert "initContainerStatuses" not in slim["status"]


def test_texts_that_many_pods_have_in_common_are_kept_once():
    first = pod_parts.slim_pod(pod(1))["status"]
    second = pod_parts.slim_pod(pod(2))["status"]
    assert first["phase"] is second["phase"]
    assert max(first) is max(second)

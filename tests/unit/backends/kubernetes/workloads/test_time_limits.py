"""A trial that the cluster ended at its time limit says the limit that its header names."""

from __future__ import annotations

import json

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.kubernetes.trial_program import TrialProgram
from jupyter_autotrain.backends.kubernetes.workloads import plain_job
from jupyter_autotrain.backends.kubernetes.workloads.plain_job import JobWorkload, PooledJobWorkload
from jupyter_autotrain.backends.kubernetes.workloads.training_operator import MPIJobWorkload, PyTorchJobWorkload
from jupyter_autotrain.backends.kubernetes.workloads.trainjob import TrainJobWorkload
from jupyter_autotrain.core.spec import TrialSpec

KINDS = (JobWorkload, TrainJobWorkload, PyTorchJobWorkload, MPIJobWorkload)


def ended(kind, timeout_s, options=None):
    """Return what is told of an object that its controller has ended at its deadline."""
    trial = TrialSpec("e", 1, 1, timeout_s=timeout_s)
    maps = {"agent.zip": "autotrain-code", "bundle.tar.gz": "autotrain-bundle"}
    found = dict(TrialProgram(trial, options or {}, kind(), "0123456789abcdef", "team", maps).manifests().objects[0])
    failed = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}
    return kind().state({**found, "status": {"conditions": [failed]}}, [])


@pytest.mark.parametrize("kind", KINDS)
def test_the_limit_of_the_header_is_told_though_the_object_lives_longer(kind):
    told = ended(kind, 90.0)
    assert told.state is TrialState.FAILED
    assert told.reason == "Timeout: the trial ran longer than its limit of 90 s (`timeout:` in the header)."


def test_a_shorter_deadline_of_a_patch_is_told_as_it_is():
    told = ended(JobWorkload, 90.0, {"patch": {"spec": {"activeDeadlineSeconds": 30}}})
    assert "its limit of 30 s" in told.reason


def test_a_deadline_without_a_limit_of_the_header_is_told_as_it_is():
    told = ended(JobWorkload, None, {"patch": {"spec": {"activeDeadlineSeconds": 45}}})
    assert "its limit of 45 s" in told.reason


@pytest.mark.parametrize("kind", [JobWorkload, PyTorchJobWorkload, MPIJobWorkload])
def test_the_time_in_a_queue_is_not_counted(kind):
    """The limit stands in the pods, whose time begins on their node; that of an object begins when it is made."""
    trial = TrialSpec("e", 1, 1, timeout_s=90.0)
    job = TrialProgram(trial, {}, kind(), "0123456789abcdef", "team", {}).manifests().objects[0]
    text = json.dumps(job)
    assert text.count("activeDeadlineSeconds") == 1
    pods = json.loads(text)["spec"].get("template") or next(iter(replicas(json.loads(text)["spec"])))["template"]
    assert pods["spec"]["activeDeadlineSeconds"] > 90


def replicas(spec):
    """Return what a spec of Kubeflow has of pods."""
    return next(value for name, value in spec.items() if name.endswith("ReplicaSpecs")).values()


def test_a_pod_that_runs_trials_one_after_another_has_the_limit_of_none():
    pools = set()
    for timeout_s in (None, 90.0, 3600.0):
        trial = TrialSpec("e", 1, 1, timeout_s=timeout_s)
        options = {"reuse": 2}
        found = TrialProgram(trial, options, PooledJobWorkload(), "0123456789abcdef", "team", {}).manifests().objects[0]
        assert "activeDeadlineSeconds" not in json.dumps(plain_job.pilot(found, "pilot", "home"))
        pools.add(plain_job.pool_of(found))
    assert len(pools) == 1

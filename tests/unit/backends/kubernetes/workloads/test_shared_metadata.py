"""The labels and annotations of a profile are on all objects and pods, as cost centers and admission rules want."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.adaptdl_backend import AdaptDLJob
from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.objects.fields import part, text
from jupyter_autotrain.backends.kubernetes.objects.workload import Workload
from jupyter_autotrain.backends.kubernetes.session import Session
from jupyter_autotrain.backends.kubernetes.storage.code_objects import CodeFile
from jupyter_autotrain.backends.kubernetes.trial_program import TrialProgram
from jupyter_autotrain.backends.kubernetes.workloads import plain_job
from jupyter_autotrain.backends.kubernetes.workloads.plain_job import JobWorkload, PooledJobWorkload
from jupyter_autotrain.backends.kubernetes.workloads.training_operator import mpijob_v1
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Resources, TrialSpec

GIVEN: JsonObject = {"labels": {"team": "vision"}, "annotations": {"sidecar.istio.io/inject": "false"}}


def program(workload: Workload, nodes: int = 1, number: int = 1, **options: object) -> TrialProgram:
    trial = TrialSpec(
        "e", number, 1, resources=Resources(nodes=nodes), secrets=() if "reuse" in options else ("TOKEN",)
    )
    given = cast("JsonObject", {**GIVEN, **options})
    return TrialProgram(trial, given, workload, "0123456789abcdef", "team", {"agent.zip": "a"})


def has_given(found: JsonObject) -> bool:
    is_labelled = text(found, "metadata", "labels", "team") == "vision"
    return is_labelled and "sidecar.istio.io/inject" in part(found, "metadata", "annotations")


@pytest.mark.parametrize("workload", [JobWorkload(), mpijob_v1(), AdaptDLJob()])
def test_all_objects_of_a_trial_have_them(workload: Workload) -> None:
    own = program(workload, 2, scheduler="volcano", checkpoint={})
    objects = [*own.manifests().objects, own.secret({"TOKEN": "x"})]
    assert len(objects) >= 3
    assert [found for found in objects if found is None or not has_given(found)] == []


def test_long_running_pods_have_them_and_pools_differ_by_them() -> None:
    first, second = (program(PooledJobWorkload(), number=number, reuse=2).manifests().objects[0] for number in (1, 2))
    made = plain_job.pilot(first, "pilot", "home")
    assert has_given(made)
    assert has_given(part(made, "spec", "template"))
    assert naming.LABEL_EXPERIMENT not in part(made, "spec", "template", "metadata", "labels")
    assert plain_job.pool_of(first) == plain_job.pool_of(second)
    other = program(PooledJobWorkload(), reuse=2, labels={"team": "speech"}).manifests().objects[0]
    assert plain_job.pool_of(first) != plain_job.pool_of(other)


def test_what_is_no_single_trials_has_them(tmp_path: Path) -> None:
    context = BackendContext(Home(tmp_path / "home"))
    session = Session({**GIVEN, "namespace": "team"}, context, lambda _: None, lambda *_: None)  # type: ignore[arg-type,return-value] # asks no cluster
    assert has_given({"metadata": session._loader_metadata()})
    file = CodeFile("bundle.tar.gz", b"code")
    assert has_given(file.manifest(session.home, "team", session._shared_metadata()))
    session.close()

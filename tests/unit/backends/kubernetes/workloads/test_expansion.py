"""Nothing that a user says is changed by a kubelet, which expands `$(NAME)` and `$$` in parts of containers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from jupyter_autotrain.backends.kubernetes.adaptdl_backend import AdaptDLJob
from jupyter_autotrain.backends.kubernetes.framework_backend import Framework
from jupyter_autotrain.backends.kubernetes.trial_program import TrialProgram
from jupyter_autotrain.backends.kubernetes.workloads.plain_job import JobWorkload
from jupyter_autotrain.backends.kubernetes.workloads.training_operator import MPIJobWorkload, PyTorchJobWorkload
from jupyter_autotrain.backends.kubernetes.workloads.trainjob import TrainJobWorkload
from jupyter_autotrain.core.spec import Resources, TrialSpec
from tests.labs.kubernetes.nodes.variables import expand

ODD = "a$(HOME)b$$(HOME)$$c$d"
VARIABLES = {"HOME": "/expanded", "ADAPTDL_REPLICA_RANK": "7", "FC_TASKROLE_NAME": "worker", "FC_TASK_INDEX": "7"}
WORKLOADS = [JobWorkload(), PyTorchJobWorkload(), MPIJobWorkload(), TrainJobWorkload(), AdaptDLJob(), Framework()]
OPTIONS = {
    "python": f"/opt/{ODD}/python", "service_account": "trainer", "image": "python:3.12",
    "storage": {"pvc": "training", "sub_path": f"team/{ODD}"}, "labels": {"team": "x"}, "annotations": {"note": ODD},
}  # fmt: skip


def containers(found: Any) -> Iterator[dict[str, Any]]:
    """All mappings of a manifest that may be containers, wherever a kind has them."""
    if isinstance(found, dict):
        yield found
        found = list(found.values())
    for inner in found if isinstance(found, list) else ():
        yield from containers(inner)


def manifests(workload: Any, nodes: int) -> list[dict[str, Any]]:
    trial = TrialSpec(
        "e", 1, 1, params={"x": ODD}, environment={"NAME": ODD}, resources=Resources(nodes=nodes), secrets=("KEY",),
        options={"note": ODD},
    )  # fmt: skip
    options = {name: value for name, value in OPTIONS.items() if name != "storage" or workload is not WORKLOADS[3]}
    program = TrialProgram(trial, options, workload, "0123456789ab", "team", {"agent.zip": "code"})
    return [dict(found) for found in program.manifests().objects]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one.object_type.kind)
@pytest.mark.parametrize("nodes", [1, 2])
def test_what_a_kubelet_expands_means_what_the_user_said(workload: Any, nodes: int) -> None:
    seen = 0
    for container in containers(manifests(workload, nodes)):
        for argument in [*(container.get("command") or []), *(container.get("args") or [])]:
            assert "/expanded" not in expand(argument, VARIABLES)
            seen += expand(argument, VARIABLES) == OPTIONS["python"]
        for variable in container.get("env") or []:
            value = variable.get("value", "")
            assert expand(value, VARIABLES) == value, variable["name"]
            if variable["name"] == "AUTOTRAIN_TRIAL":
                sent = json.loads(value)
                assert (sent["params"], sent["environment"], sent["options"]) == (
                    {"x": ODD}, {"NAME": ODD}, {"note": ODD}
                )  # fmt: skip
        if "subPathExpr" in container:
            assert expand(container["subPathExpr"], VARIABLES).startswith(f"team/{ODD}/experiments/")
            assert "7" in expand(container["subPathExpr"], VARIABLES)
    assert seen

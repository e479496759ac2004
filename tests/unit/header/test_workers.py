"""One trial on several processes and hosts: `resources.nodes`, `workers_per_node`, `launcher:`, `elastic:`."""

from __future__ import annotations

import pytest

from jupyter_autotrain import header
from jupyter_autotrain.agent.json import from_json, to_json
from jupyter_autotrain.core.spec import LAUNCHERS, Bundle, ExperimentSpec, Resources
from jupyter_autotrain.errors import HeaderError


def parse(text: str) -> header.Header:
    return header.parse_cell("", f"{text}\n---\nx = 1\n", header.HeaderContext()).header


def faults(text: str) -> list[str]:
    with pytest.raises(HeaderError) as caught:
        parse(text)
    return caught.value.faults


def test_nodes_workers_and_launcher_reach_the_spec_and_survive_the_store() -> None:
    found = parse("resources: {nodes: 2, workers_per_node: 4, gpus: 4}\nlauncher: torchrun\nelastic: true")
    spec = found.to_spec(bundle=Bundle(), name="x")
    assert spec.resources == Resources(gpus=4, nodes=2, workers_per_node=4)
    assert (spec.launcher, spec.elastic) == ("torchrun", True)
    assert from_json(ExperimentSpec, to_json(spec)) == spec


def test_without_a_word_there_is_one_worker_and_the_launcher_that_sets_variables() -> None:
    spec = parse("trials: 1").to_spec(bundle=Bundle(), name="x")
    assert (spec.resources.nodes, spec.resources.workers_per_node, spec.launcher, spec.elastic) == (1, 1, "env", False)


def test_gpus_that_cannot_be_shared_evenly_are_refused_in_their_line() -> None:
    (fault,) = faults("trials: 1\nresources:\n  workers_per_node: 4\n  gpus: 6")
    assert "line 5" in fault
    assert "6 GPUs for 4 workers on each node" in fault
    assert "expected a multiple of workers_per_node, such as 8" in fault


def test_workers_without_gpus_and_several_gpus_for_one_worker_are_right() -> None:
    assert parse("resources: {workers_per_node: 3}").resources.gpus == 0
    assert parse("resources: {workers_per_node: 2, gpus: 4}").resources.gpus == 4
    assert parse("resources: {gpus: 3}").resources.workers_per_node == 1


def test_elastic_needs_torchrun() -> None:
    (fault,) = faults("elastic: true\nlauncher: mpi")
    assert "line 2" in fault
    assert "elastic with launcher mpi" in fault
    assert "launcher: torchrun" in fault


def test_all_faults_are_told_at_once() -> None:
    text = "resources: {nodes: 0, workers_per_node: many}\nlauncher: torchru\nelastic: perhaps"
    told = "\n".join(faults(text))
    for word in ("resources.nodes: 0", "resources.workers_per_node: 'many'", "torchrun", "elastic: 'perhaps'"):
        assert word in told


def test_help_completion_and_schema_know_them() -> None:
    assert {"launcher", "elastic", "resources.nodes", "resources.workers_per_node"} <= set(header.known_keys())
    assert header.json_schema()["properties"]["launcher"]["enum"] == list(LAUNCHERS)
    assert "torchrun" in header.help_text("launcher")
    cell = "%%autotrain\nlauncher: "
    assert "torchrun" in header.completions(cell, len(cell)).matches

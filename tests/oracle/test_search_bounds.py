"""Cheap bounds never promise more than a plan delivers, so what they drop could not have won."""

from math import inf

import pytest

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.parallel.cost.memory import Schedule
from jupyter_autotrain.parallel.graph.build import gpt, llama, mlp
from jupyter_autotrain.parallel.search import Limits, Pins, Question, Space, solve
from jupyter_autotrain.parallel.search.hunt import Hunt
from jupyter_autotrain.parallel.search.whole import solve_candidate

SIZES = {"width": 512, "layers": 4, "heads": 8, "sequence": 256, "batch": 24, "vocabulary": 4096}
MODELS = {"gpt": gpt(**SIZES), "llama": llama(**SIZES), "mlp": mlp(width=1024, layers=4, batch=192)}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("cluster", "memory_mb"), [("2x3xA100", inf), ("8xA100", 500.0), ("4xH100+4xA100", inf)])
def test_no_bound_is_above_what_a_candidate_reaches_and_none_that_wins_is_dropped(name, cluster, memory_mb):
    question = Question(limits=Limits(memory_bytes=memory_mb * 1e6), space=Space(max_axes=3), baselines=False)
    hunt = Hunt.of(MODELS[name], ClusterSpec.parse(cluster), question, lambda: 0.0, 0.0)
    task, reached = hunt.search.task, []
    for candidate in hunt.found:
        outcome, bound_s, _ = solve_candidate(task, candidate)
        if outcome:
            reached.append(outcome.step_s)
            most = outcome.step_s * (1 + 1e-9)
            assert max(bound_s, task.compute_bound_s(candidate), task.mesh_bound_s(candidate)) <= most, candidate
    found = solve(MODELS[name], cluster, question)
    assert reached
    assert found.cost.step_s == pytest.approx(min(reached), rel=1e-9)


def test_what_the_last_stage_holds_beside_its_blocks_is_no_gap():
    graph = gpt(width=4096, layers=32, heads=32, sequence=2048, batch=256, vocabulary=51200)
    pins = Pins(stages=4, microbatches=64, schedule=Schedule.ONE_F_ONE_B)
    found = solve(graph, "4xA100", Question(pins=pins, baselines=False))
    assert [stage.blocks for stage in found.stages] != [8, 8, 8, 8]
    assert found.gap < 0.01

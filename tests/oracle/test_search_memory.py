"""A plan fills what a device offers to training, not what its data sheet names."""

import re

import pytest

from jupyter_autotrain.agent.sizes import parse_bytes
from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.errors import InfeasibleError
from jupyter_autotrain.parallel.graph.prepare import prepare
from jupyter_autotrain.parallel.search import SearchLimits, SearchRequest, StrategySpace, solve
from tests.example_graphs import gpt, llama
from tests.oracle.whole_space import plan

LLAMA_2_7B = {"width": 4096, "layers": 32, "heads": 32, "sequence": 2048, "vocabulary": 32000, "hidden": 11008}
BILLIONS = prepare(llama(batch=32, **LLAMA_2_7B))
FEW = StrategySpace(max_axes=1, stages=(1,))


def test_a_plan_that_memory_slows_leaves_what_is_reserved_free():
    device = ClusterSpec.parse("8xA100-40GB").device
    found = solve(BILLIONS, "8xA100-40GB", SearchRequest(space=FEW, baselines=False))
    assert 0.9 * device.usable_bytes < found.cost.peak_memory_bytes <= device.usable_bytes
    assert found.limit_bytes == device.usable_bytes


def test_memory_that_was_asked_for_is_filled():
    asked = SearchRequest(space=FEW, baselines=False, limits=SearchLimits(memory_bytes=40 * 2**30))
    found = solve(BILLIONS, "8xA100-40GB", asked)
    assert found.limit_bytes == 40 * 2**30
    assert found.cost.step_s <= solve(BILLIONS, "8xA100-40GB", SearchRequest(space=FEW, baselines=False)).cost.step_s


def test_less_reserved_is_never_slower_and_more_may_not_fit():
    steps = []
    for kept in (0, "3GB", "20GB"):
        cluster = {"cluster": "8xA100-40GB", "reserved": kept}
        steps.append(solve(BILLIONS, cluster, SearchRequest(space=FEW, baselines=False)).cost.step_s)
    assert steps == sorted(steps)
    with pytest.raises(InfeasibleError, match="No split"):
        solve(BILLIONS, {"cluster": "8xA100-40GB", "reserved": "42GB"}, SearchRequest(space=FEW, baselines=False))


def test_the_limit_shown_is_what_can_be_used():
    graph = gpt(width=256, layers=4, heads=4, sequence=128, batch=16, vocabulary=1000)
    found = plan(graph, None, "4xH100", search="recursive_programming")
    usable = found.cluster.device.usable_bytes
    assert found.solution.limit_bytes == usable
    assert [row["limit_bytes"] for row in found.view()["ranks"]] == [usable] * len(found.stages)
    assert found.view()["cluster"]["usable_bytes"] == usable
    with pytest.raises(InfeasibleError) as refused:
        plan(llama(batch=8, **(LLAMA_2_7B | {"width": 16384})), None, "2xA100-40GB", search="recursive_programming")
    said = re.search(r"fits (\S+ GiB) per device", str(refused.value))
    assert said
    assert parse_bytes(said[1]) == pytest.approx(ClusterSpec.parse("2xA100-40GB").device.usable_bytes, rel=0.01)

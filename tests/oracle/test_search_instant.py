"""The instant search beside the exact one: meshes of every kind, device counts that divide nothing, little memory."""

from dataclasses import replace

import pytest

from jupyter_autotrain.parallel import api
from jupyter_autotrain.parallel.graph.prepare import prepare
from jupyter_autotrain.parallel.search import Method, SearchLimits, SearchRequest, StrategySpace, solve
from tests.example_graphs import gpt, llama, mlp
from tests.matrices import long_besides

SIZES = {"layers": 48, "width": 1024, "heads": 16, "sequence": 512, "vocabulary": 32000}
BILLIONS = {"layers": 32, "width": 4096, "heads": 32, "sequence": 4096, "vocabulary": 128256, "hidden": 14336}


def both(graph, cluster, request):
    exact = solve(graph, cluster, request)
    instant = solve(graph, cluster, replace(request, search=Method.RECURSIVE_PROGRAMMING))
    assert instant.cost.step_s >= exact.cost.step_s * (1 - 1e-9)
    return exact, instant


@pytest.mark.parametrize("batch", long_besides([60], [60, 96]))
@pytest.mark.parametrize(
    "cluster", long_besides(["8xA100", "2x6xA100"], ["8xA100", "2x6xA100", "3x8xA100", "6x4xA100", "8x8xA100"])
)
@pytest.mark.parametrize("model", ["gpt", "llama", "mlp"])
def test_placements_are_within_five_percent_of_exact(model, cluster, batch):
    made = {"gpt": gpt, "llama": llama}.get(model)
    graph = made(batch=batch, **SIZES) if made else mlp(width=4096, layers=48, batch=64 * batch)
    exact, instant = both(prepare(graph), cluster, SearchRequest(space=StrategySpace.placements(), baselines=False))
    assert instant.cost.step_s <= 1.05 * exact.cost.step_s


@pytest.mark.parametrize("devices", long_besides([12], [8, 12, 16]))
@pytest.mark.parametrize("memory_gb", long_besides([24], [24, 40, 80]))
def test_whole_plans_are_within_five_percent_of_exact(devices, memory_gb):
    graph = prepare(llama(batch=16, **BILLIONS))
    request = SearchRequest(limits=SearchLimits(memory_bytes=memory_gb * 1e9), baselines=False)
    exact, instant = both(graph, f"{devices}xH100", request)
    assert instant.cost.step_s <= 1.05 * exact.cost.step_s
    assert instant.cost.peak_memory_bytes <= memory_gb * 1e9


@pytest.mark.parametrize(
    ("batch", "cluster", "memory_gb"),
    [
        (512, "8xA100-40GB", 40),
        pytest.param(256, "2x8xH100", 40, marks=pytest.mark.long),
        pytest.param(192, "3x8xH100", 24, marks=pytest.mark.long),
    ],
)
def test_where_memory_slows_the_first_plan_that_fits_others_are_tried(batch, cluster, memory_gb):
    """At first too few microbatches, with most layers computed twice."""
    graph = prepare(llama(batch=batch, **BILLIONS))
    limits = SearchLimits(memory_bytes=memory_gb * 1e9, proof_s=0.0)
    exact, instant = both(graph, cluster, SearchRequest(limits=limits, baselines=False))
    hasty = solve(
        graph, cluster, SearchRequest(search=Method.RECURSIVE_PROGRAMMING, limits=replace(limits, effort=0.0))
    )
    assert instant.cost.step_s <= 1.05 * exact.cost.step_s
    assert hasty.cost.step_s > instant.cost.step_s


def test_microbatches_that_do_not_divide_well_are_stepped_over():
    graph = prepare(llama(batch=96, **(BILLIONS | {"layers": 16})))
    limits = SearchLimits(memory_bytes=24e9, proof_s=0.0)
    exact, instant = both(graph, "2x8xH100", SearchRequest(limits=limits, baselines=False))
    assert instant.cost.step_s <= 1.05 * exact.cost.step_s


@pytest.mark.parametrize("search", ["recursive_programming", "dynamic_programming"])
def test_microbatches_that_pins_cannot_split_are_left_out(search):
    graph = gpt(width=256, layers=4, heads=4, sequence=64, batch=32, vocabulary=512)
    pins = {"mesh": (2, 4), "ops": {"lm_head*": ("n", "batch"), "*": (None, "batch")}}
    found = api.plan(graph, None, "2x4xA100", search=search, memory_limit="30MB", pins=pins)
    assert found.solution.decision.microbatches <= 8  # of 32 samples, over 4 ranks
    assert found.cost.peak_memory_bytes <= 30e6

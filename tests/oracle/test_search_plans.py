"""Whole plans: folding, memory, modes, pins, baselines, the instant search, bad input."""

from dataclasses import replace
from math import prod

import pytest

from jupyter_autotrain.core.cluster import ClusterSpec, MeshSpec
from jupyter_autotrain.errors import InfeasibleError, PlanError
from jupyter_autotrain.parallel.cost.memory import Schedule, ZeroLevel
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.cost.table_cache import TableCache
from jupyter_autotrain.parallel.graph.fuse import fuse
from jupyter_autotrain.parallel.graph.prepare import fold
from jupyter_autotrain.parallel.search import Method, Mode, Pins, SearchLimits, SearchRequest, StrategySpace, solve
from jupyter_autotrain.parallel.search.factors.elimination import minimise
from jupyter_autotrain.parallel.search.factors.factors import (
    NO_RECOMPUTE,
    LagrangianWeights,
    cost_breakdown_of,
    tables_of,
)
from jupyter_autotrain.parallel.search.request.request import mesh_shapes
from jupyter_autotrain.parallel.search.stage.chain import chain_of
from jupyter_autotrain.parallel.search.stage.stage_problem import StageProblem
from tests.example_graphs import gpt, llama, mlp, random_graph

INSTANT = Method.RECURSIVE_PROGRAMMING
ORACLE = Method.EXHAUSTIVE


def tiny_gpt(layers=4, batch=16, **sizes):
    given = {"width": 512, "heads": 8, "sequence": 256, "vocabulary": 4096} | sizes
    return fold(fuse(gpt(layers=layers, batch=batch, **given)))


MODELS = {
    "gpt": tiny_gpt(),
    "llama": fold(fuse(llama(width=512, layers=4, heads=8, sequence=256, batch=16, vocabulary=4096))),
    "mlp": fold(fuse(mlp(width=1024, layers=4, batch=256))),
}
PLACEMENTS = SearchRequest(space=StrategySpace.placements(2), baselines=False)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("shape", [(8,), (2, 4)])
def test_folding_changes_nothing(name, shape):
    graph = MODELS[name]
    model = CostModel(graph, ClusterSpec.parse("2x4xA100"), MeshSpec(("a", "b")[: len(shape)], shape))
    chain = chain_of(graph)
    folded = StageProblem(model, chain, chain.run.count, TableCache()).solve(LagrangianWeights())
    unfolded, _, exact = minimise(tables_of(model, range(len(graph.ops)), NO_RECOMPUTE, LagrangianWeights()))
    assert exact
    assert folded.value == pytest.approx(unfolded, rel=1e-12)
    assert folded.point.seconds == pytest.approx(unfolded, rel=1e-12)


def test_the_reported_cost_is_the_sum_over_the_chosen_strategies():
    solution = solve(MODELS["gpt"], "2x4xA100", PLACEMENTS)
    model = CostModel(MODELS["gpt"], solution.cluster, solution.decision.mesh)
    best = solution.candidates[0].outcome
    assert solution.cost.step_s == best.step_s
    load = cost_breakdown_of(model, best.stages[0].choices, range(len(MODELS["gpt"].ops)))
    assert load.seconds(1) == pytest.approx(solution.cost.step_s)
    assert load.bytes() == pytest.approx(solution.cost.peak_memory_bytes)


@pytest.mark.parametrize("method", [Method.DYNAMIC_PROGRAMMING, INSTANT])
def test_the_decision_holds_the_strategies_that_were_priced(method):
    solution = solve(MODELS["llama"], "2x4xA100", replace(PLACEMENTS, space=StrategySpace.placements(3), search=method))
    free = CostModel(MODELS["llama"], solution.cluster, solution.decision.mesh)
    best = solution.candidates[0].outcome
    chosen = {}
    for op in MODELS["llama"].ops:
        loops = [-1 if loop is None else loop for loop in solution.decision.ops[op.name].loops]
        row = free.table_rows(op.id).tolist().index(loops)
        chosen[op.id] = replace(best.stages[0].choices[op.id], strategy=row)
    assert cost_breakdown_of(free, chosen, range(len(chosen))).seconds(1) == pytest.approx(solution.cost.step_s)


@pytest.mark.parametrize("seed", range(12))
def test_the_exact_search_equals_the_oracle_on_random_models(seed):
    graph = replace(random_graph(seed, ops=4), repeated_blocks=())
    asked = replace(PLACEMENTS, space=replace(StrategySpace.placements(1), zero=(ZeroLevel.NONE, ZeroLevel.PARAMETERS)))
    exact = solve(graph, "4xCPU", asked)
    oracle = solve(graph, "4xCPU", replace(asked, search=ORACLE))
    assert exact.gap == 0.0
    assert exact.cost.step_s == pytest.approx(oracle.cost.step_s, rel=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_the_exact_search_equals_the_oracle_under_a_memory_bound(seed):
    graph = replace(random_graph(seed, ops=4), repeated_blocks=())
    asked = replace(PLACEMENTS, space=replace(StrategySpace.placements(1), zero=(ZeroLevel.NONE, ZeroLevel.PARAMETERS)))
    free = solve(graph, "4xCPU", asked).cost.peak_memory_bytes
    with pytest.raises(InfeasibleError) as refused:
        solve(graph, "4xCPU", replace(asked, limits=SearchLimits(memory_bytes=1.0)))
    least = refused.value.least_memory_bytes
    for share in (0.0, 0.4, 0.8):
        bounded = replace(asked, limits=SearchLimits(memory_bytes=least + share * (free - least)))
        exact = solve(graph, "4xCPU", bounded)
        oracle = solve(graph, "4xCPU", replace(bounded, search=ORACLE))
        assert exact.gap == 0.0
        assert exact.cost.step_s == pytest.approx(oracle.cost.step_s, rel=1e-9)


def test_meshes_are_all_ordered_factorizations():
    assert len(mesh_shapes(64, 6)) == 32
    assert (2, 3, 2) in mesh_shapes(12, 3)
    assert all(prod(shape) == 1000 for shape in mesh_shapes(1000, 3))


@pytest.mark.parametrize("devices", [1, 6, 12, 24])
def test_any_device_count_has_a_plan(devices):
    solution = solve(tiny_gpt(batch=24), f"{devices}xA100", replace(PLACEMENTS, search=INSTANT))
    assert solution.decision.mesh.devices == devices


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("cluster", ["8xA100", "2x4xH100"])
def test_the_instant_plan_is_never_better_than_exact_and_close_to_it(name, cluster):
    exact = solve(MODELS[name], cluster, PLACEMENTS)
    instant = solve(MODELS[name], cluster, replace(PLACEMENTS, search=INSTANT))
    assert exact.gap == 0.0
    assert 1 - 1e-9 <= instant.cost.step_s / exact.cost.step_s <= 1.05


@pytest.fixture(scope="module")
def roomy():
    return solve(MODELS["gpt"], "8xA100")


def test_no_baseline_that_fits_is_faster_than_the_answer(roomy):
    fitting = [b.cost.step_s for b in roomy.baselines.values() if b.fits]
    assert len(fitting) >= 2
    assert min(fitting) >= roomy.cost.step_s * (1 - 1e-9)


def test_a_step_is_its_parts_and_a_rank_its_memory(roomy):
    cost = roomy.cost
    assert cost.step_s == pytest.approx(cost.compute_s + cost.communication_s + cost.bubble_s + cost.optimizer_s)
    assert cost.peak_memory_bytes == pytest.approx(max(rank.peak_bytes for rank in cost.ranks))
    assert set(roomy.decision.ops) == {op.name for op in MODELS["gpt"].ops}


def test_less_memory_or_bandwidth_never_makes_the_plan_better(roomy):
    peak = roomy.cost.peak_memory_bytes
    last = roomy.cost.step_s
    asked = SearchRequest(space=StrategySpace(max_axes=1, stages=(1,), microbatches=(1, 2)), baselines=False)
    times = [
        solve(MODELS["gpt"], "8xA100", replace(asked, limits=SearchLimits(memory_bytes=peak * share))).cost.step_s
        for share in (1.0, 0.7, 0.5)
    ]
    assert times == sorted(times)
    slow = solve(MODELS["gpt"], ClusterSpec.parse("8xA100").scaled(bandwidth=0.25)).cost.step_s
    assert slow >= last


def test_a_tight_limit_is_kept_by_sharing_states_and_recomputing(roomy):
    limit = roomy.cost.peak_memory_bytes * 0.35
    asked = SearchRequest(space=StrategySpace(stages=(1,)), limits=SearchLimits(memory_bytes=limit, proof_s=None))
    solution = solve(MODELS["gpt"], "8xA100", asked)
    assert solution.cost.peak_memory_bytes <= limit
    assert solution.bound_s <= solution.cost.step_s
    assert solution.gap < 0.1


def test_an_infeasible_limit_names_memory_that_then_does():
    asked = SearchRequest(
        space=StrategySpace(max_axes=1, stages=(1,)), baselines=False, limits=SearchLimits(memory_bytes=1e6)
    )
    with pytest.raises(InfeasibleError, match="least memory") as caught:
        solve(MODELS["gpt"], "8xA100", asked)
    least = caught.value.least_memory_bytes
    solution = solve(MODELS["gpt"], "8xA100", replace(asked, limits=SearchLimits(memory_bytes=least)))
    assert solution.cost.peak_memory_bytes <= least


def test_pinned_stages_make_a_pipeline_over_all_blocks():
    pins = Pins(stages=4, microbatches=8, schedule=Schedule.ONE_F_ONE_B)
    solution = solve(tiny_gpt(layers=6), "8xA100", SearchRequest(mode=Mode.HYBRID_PARALLEL, pins=pins))
    assert len(solution.decision.stages) == 4
    assert sum(stage.blocks for stage in solution.decision.stages) == 6
    assert solution.cost.bubble_s > 0
    assert {op.stage for op in solution.decision.ops.values()} == {0, 1, 2, 3}
    assert solution.decision.ops.keys() == {op.name for op in tiny_gpt(layers=6).ops}


def test_an_uneven_cluster_gives_the_weaker_stage_fewer_blocks():
    pins = Pins(stages=2, microbatches=16, mesh=(4,), schedule=Schedule.ONE_F_ONE_B)
    graph = tiny_gpt(layers=12, width=2048, vocabulary=512)
    solution = solve(graph, "4xH100+4xV100-32GB", SearchRequest(mode=Mode.HYBRID_PARALLEL, pins=pins))
    first, second = solution.decision.stages
    assert first.device == "H100"
    assert first.blocks > second.blocks


def test_modes_restrict_what_is_searched():
    alone = solve(MODELS["gpt"], "8xA100", SearchRequest(mode=Mode.STAND_ALONE))
    assert alone.decision.mesh.devices == 1
    data = solve(MODELS["gpt"], "8xA100", SearchRequest(mode=Mode.DATA_PARALLEL))
    assert data.decision.mesh.axes == ("data",)
    assert {op.states.zero for op in data.decision.ops.values()} == {ZeroLevel.NONE}


def test_a_pinned_op_keeps_its_split_and_the_rest_is_searched():
    pins = Pins(mesh=(2, 4), ops={"h.*.mlp.c_fc": ("batch", "feature"), "h.2.mlp.c_proj": (None, None)})
    solution = solve(MODELS["gpt"], "8xA100", SearchRequest(mode=Mode.HYBRID_PARALLEL, pins=pins))
    ops = solution.decision.ops
    for op in solution.graph.ops:
        if op.name.endswith("mlp.c_fc"):
            assert [loop.role for loop in ops[op.name].split_loops(op)] == ["batch", "feature"]
    assert ops["h.2.mlp.c_proj"].loops == (None, None)


@pytest.mark.parametrize(
    ("pins", "word"),
    [
        (Pins(mesh=(3,)), "divide"),
        (Pins(mesh=(8,), stages=2), "16 devices"),
        (Pins(stages=5), "5 stages"),
        (Pins(microbatches=7), "7 microbatches"),
        (Pins(ops={"h.0.mlp.c_fcc": ("batch",)}), "nearest: 'h.0.mlp.c_fc'"),
        (Pins(mesh=(8,), ops={"h.0.ln_1": ("feature",)}), "has no loop 'feature' to split"),
    ],
)
def test_a_contradiction_is_named(pins, word):
    with pytest.raises(PlanError, match=word):
        solve(MODELS["gpt"], "8xA100", SearchRequest(mode=Mode.HYBRID_PARALLEL, pins=pins))


def test_a_cyclic_graph_is_refused():
    graph = MODELS["mlp"]
    first = graph.ops[0]
    last = graph.ops[-1]
    looped = replace(first, inputs=(replace(first.inputs[0], tensor=last.outputs[0].tensor), *first.inputs[1:]))
    with pytest.raises(PlanError, match="topological"):
        solve(replace(graph, ops=(looped, *graph.ops[1:])), "8xA100")


def test_a_batch_that_nothing_divides_is_split_along_something_else():
    solution = solve(tiny_gpt(batch=7), "8xA100", PLACEMENTS)
    for op in solution.graph.ops:
        if op.name.endswith("c_fc"):
            loops = solution.decision.ops[op.name].split_loops(op)
            assert all(loop is None or loop.role != "batch" for loop in loops)

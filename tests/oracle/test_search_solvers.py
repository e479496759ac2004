"""The solvers between the tables and the whole search, each against what it must equal or bound."""

from math import inf

import pytest

from jupyter_autotrain.core.cluster import ClusterSpec, MeshSpec
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.cost.table_cache import TableCache
from jupyter_autotrain.parallel.graph.prepare import prepare
from jupyter_autotrain.parallel.search import SearchLimits, SearchRequest
from jupyter_autotrain.parallel.search.factors.factors import problem_of
from jupyter_autotrain.parallel.search.factors.lagrangian_branch_and_bound import minimise_bounded
from jupyter_autotrain.parallel.search.outer.branch_and_bound import solve_candidate
from jupyter_autotrain.parallel.search.outer.node import Incumbent, root_nodes
from jupyter_autotrain.parallel.search.outer.progress import ProgressMonitor
from jupyter_autotrain.parallel.search.outer.search_run import SearchRun
from jupyter_autotrain.parallel.search.stage.chain import chain_of
from jupyter_autotrain.parallel.search.stage.stage_problem import StageProblem
from tests.example_graphs import gpt
from tests.matrices import long_besides

GRAPH = prepare(gpt(width=256, layers=4, heads=4, sequence=128, batch=8, vocabulary=2000))
MEMORY = (inf, 0.1e9, 0.05e9)
ROUNDED = 1 + 1e-9


def started(memory_bytes, cluster="4xA100"):
    limits = SearchLimits(memory_bytes=memory_bytes, proof_s=None)
    asked = SearchRequest(limits=limits, baselines=False)
    return SearchRun.of(GRAPH, ClusterSpec.parse(cluster), asked, ProgressMonitor(lambda: 0.0))


@pytest.mark.parametrize("share", long_besides([0.0, 0.5, 1.0], [0.0, 0.2, 0.5, 0.8, 1.0]))
def test_a_stage_lies_between_its_bound_and_the_optimum_of_the_unfolded_graph(share):
    graph = prepare(gpt(width=64, layers=3, heads=4, sequence=32, batch=8, vocabulary=128))
    chain = chain_of(graph)
    model = CostModel(graph, ClusterSpec.parse("4xA100"), MeshSpec(("a",), (4,)))
    stage = StageProblem(model, chain, chain.run.count, TableCache())
    light = stage.lightest().bytes
    free = stage.minimise().point.bytes
    limit = light + share * (free - light)
    exact = minimise_bounded(problem_of(model), limit * ROUNDED)
    found = stage.minimise(limit * ROUNDED)
    assert found.point.bytes <= limit * ROUNDED
    assert found.bound_s <= exact.seconds * ROUNDED
    assert exact.bound_s <= found.point.seconds * ROUNDED
    if share == 1.0:
        assert found.point.seconds == pytest.approx(exact.seconds, rel=1e-9)


@pytest.mark.parametrize("memory_bytes", MEMORY)
def test_branch_and_bound_equals_solving_every_candidate(memory_bytes):
    search_run = started(memory_bytes)
    search = search_run.search
    search.run(search_run.candidates)
    results = [solve_candidate(search.context, candidate) for candidate in search_run.candidates]
    best_s = min((result.outcome.step_s for result in results if result.outcome), default=inf)
    assert search.cutoff_s == pytest.approx(best_s, rel=1e-9)
    assert search.bound_s <= best_s * ROUNDED


@pytest.mark.parametrize("memory_bytes", MEMORY)
def test_the_bounds_of_a_node_hold_for_each_of_its_candidates(memory_bytes):
    search_run = started(memory_bytes, "2xA100")
    context = search_run.search.context
    steps_s = {}
    for candidate in search_run.candidates:
        outcome = solve_candidate(context, candidate).outcome
        steps_s[candidate] = outcome.step_s if outcome else inf
    nodes = root_nodes(context, search_run.candidates)
    looked_at = 0
    while nodes:
        node = nodes.pop()
        looked_at += 1
        assert node.bound_s <= min(steps_s[member] for member in node.members) * ROUNDED, node.members
        if not node.is_ready:
            nodes += node.children(Incumbent())
    assert looked_at > len(search_run.candidates)

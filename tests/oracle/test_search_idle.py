"""Some devices may stay idle: one more never makes the best plan slower, and the plan says which are not used."""

from dataclasses import replace
from itertools import pairwise, product

import pytest

from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.core.subset import subsets
from jupyter_autotrain.parallel.cost.compute_lower_bound import device_count_bound
from jupyter_autotrain.parallel.cost.roofline import Efficiency
from jupyter_autotrain.parallel.graph.prepare import prepare
from jupyter_autotrain.parallel.search import Method, Mode, Pins, SearchLimits, SearchRequest, StrategySpace, solve
from jupyter_autotrain.parallel.search.request.request import divisors
from tests.example_graphs import gpt, llama, mlp
from tests.matrices import long_besides
from tests.oracle.whole_space import plan

SIZES = {"width": 1024, "layers": 8, "heads": 16, "sequence": 1024, "vocabulary": 8192}
MODELS = {
    "llama": prepare(llama(batch=16, **SIZES)),
    "gpt": prepare(gpt(batch=12, **SIZES)),
    "mlp": prepare(mlp(width=2048, layers=6, batch=4096)),
}
FEW = StrategySpace(max_axes=2, microbatches=(1, 2, 4))
ASKED = SearchRequest(space=FEW, baselines=False)
BOUNDED = ("6xH100", "2x3xA100", "3xH100+2xA100-40GB")
BOUNDED_BY_DEFAULT = (("mlp", "6xH100"), ("gpt", "2x3xA100"), ("llama", "3xH100+2xA100-40GB"))


def steps(model, clusters, asked=ASKED):
    return [solve(MODELS[model], cluster, asked).cost.step_s for cluster in clusters]


def never_rises(times):
    return all(more <= less * (1 + 1e-9) for less, more in pairwise(times))


@pytest.mark.parametrize("model", long_besides(["llama"], MODELS))
def test_one_equal_device_more_never_raises_the_step_time(model):
    assert never_rises(steps(model, [f"{count}xH100" for count in range(1, 9)]))


@pytest.mark.parametrize("memory_gb", long_besides([2], [2, 4]))
def test_nor_does_it_where_memory_is_short(memory_gb):
    asked = replace(ASKED, limits=SearchLimits(memory_bytes=memory_gb * 1e9))
    assert never_rises(steps("llama", [f"{count}xA100" for count in range(2, 9)], asked))


@pytest.mark.parametrize("model", long_besides(["gpt"], ["llama", "gpt"]))
@pytest.mark.parametrize("first", long_besides([3], [2, 3, 4]))
def test_one_slower_device_more_never_raises_the_step_time(model, first):
    clusters = [f"{first}xH100", *(f"{first}xH100+{count}xA100-40GB" for count in range(1, 4))]
    assert never_rises(steps(model, clusters))


def test_one_faster_device_more_never_raises_the_step_time():
    clusters = ["2xV100-32GB", *(f"{count}xH100+2xV100-32GB" for count in range(1, 4))]
    assert never_rises(steps("llama", clusters))


@pytest.mark.parametrize("clusters", [[f"{count}x2xA100" for count in range(1, 6)], ["4xA100", "2x4xA100", "3x4xA100"]])
def test_one_node_more_never_raises_the_step_time(clusters):
    assert never_rises(steps("gpt", clusters))


def test_the_instant_search_leaves_devices_idle_too():
    asked = replace(ASKED, search=Method.RECURSIVE_PROGRAMMING)
    seven = solve(MODELS["llama"], "7xH100", asked)
    whole = solve(MODELS["llama"], "7xH100", replace(asked, space=replace(FEW, all_devices=True)))
    assert seven.cost.step_s < whole.cost.step_s
    assert seven.cluster.devices < 7


def test_the_plan_says_which_devices_are_idle_and_why():
    found = plan(MODELS["llama"], None, "8xH100+2xA100", space=FEW, simplicity=0)
    assert (str(found.cluster), str(found.full_cluster)) == ("8xH100", "8xH100+2xA100")
    [note] = [one for one in found.notes if "Left out" in one]
    assert note.startswith("Left out: 2xA100-80GB, they would gain nothing. The best plan found with")
    texts = (" ".join(repr(found).split()), found.to_html(), str(found.view()["notes"]))
    assert all(note in text for text in texts)
    assert found.solution.all_devices_s > found.cost.step_s
    assert any(other.cost.step_s == found.solution.all_devices_s for other in found.candidates)
    assert sum(rank.ranks for rank in found.cost.ranks) == 8
    again = type(found).from_json(found.to_json())
    assert (again.notes, again.full_cluster) == (found.notes, found.full_cluster)
    assert found.what_if(bandwidth=2.0).full_cluster.devices == 10


def test_a_plan_that_uses_every_device_says_nothing():
    found = plan(MODELS["gpt"], None, "4xA100", space=FEW, simplicity=0)
    assert found.full_cluster is found.cluster
    assert not any("Left out" in note for note in found.notes)


def test_no_device_stays_idle_where_that_was_asked():
    every = replace(ASKED, space=replace(FEW, all_devices=True))
    assert solve(MODELS["llama"], "7xH100", every).full_cluster is None
    pinned = SearchRequest(mode=Mode.HYBRID_PARALLEL, pins=Pins(mesh=(7,)), space=FEW, baselines=False)
    assert solve(MODELS["llama"], "7xH100", pinned).decision.mesh.shape == (7,)
    data = solve(MODELS["llama"], "8xH100", SearchRequest(mode=Mode.DATA_PARALLEL, baselines=False))
    assert data.decision.mesh.shape == (8,)


@pytest.mark.parametrize("case", long_besides(BOUNDED_BY_DEFAULT, product(MODELS, BOUNDED)), ids="-".join)
def test_no_plan_takes_less_than_what_its_devices_can_compute(case):
    model, cluster = case
    graph = MODELS[model]
    machine = ClusterSpec.parse(cluster)
    run = max(graph.repeated_blocks, key=lambda run: run.count)
    blocks = range(run.start, run.start + run.length * run.count)
    reach = device_count_bound(graph, machine, Efficiency(), blocks, run.count)
    every = replace(ASKED, space=replace(FEW, all_devices=True))
    for part in (machine, *subsets(machine)):
        stages = [p for p in divisors(part.devices) if p <= run.count]
        assert reach.least_s(part, stages, 4, 4) <= solve(graph, part, every).cost.step_s * (1 + 1e-9), str(part)


def test_the_parts_of_a_cluster_are_the_clusters_that_they_name():
    for text in ("7xH100", "2x4xA100", "9xH100", "8xH100+2xA100", "2x2xH100+3xA100-40GB"):
        found = subsets(ClusterSpec.parse(text))
        assert len({str(part) for part in found}) == len(found)
        for part in found:
            named = ClusterSpec.parse(str(part))
            assert (part.kinds, part.levels, part.groups) == (named.kinds, named.levels, named.groups)


def test_a_cluster_keeps_its_links_and_its_reserve_in_its_parts():
    cluster = replace(ClusterSpec.parse("2x4xA100").scaled(bandwidth=2.0), reserved_bytes=10)
    for part in subsets(cluster):
        assert part.reserved_bytes == 10
        assert {level.link.bytes_per_s for level in part.levels} <= {level.link.bytes_per_s for level in cluster.levels}


def test_large_clusters_have_few_parts():
    assert len(subsets(ClusterSpec.parse("128x8xA100"), batch=1536)) < 16
    assert len(subsets(ClusterSpec.parse("8192x8xA100"), batch=65536)) < 16

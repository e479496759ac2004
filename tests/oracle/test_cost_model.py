"""Physics: collectives, roofline, memory, pipelines, and published step times."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from jupyter_autotrain.core.cluster import ClusterSpec, MeshSpec
from jupyter_autotrain.core.devices import presets
from jupyter_autotrain.parallel.cost.collectives import all_reduce_s, all_to_all_s, axes_of, bandwidth, gather_s
from jupyter_autotrain.parallel.cost.layout import PARTIAL, REPLICATE, Layouts, strategies
from jupyter_autotrain.parallel.cost.memory import Optimizer, Recompute, Schedule, ZeroLevel, in_flight
from jupyter_autotrain.parallel.cost.model import CostModel
from jupyter_autotrain.parallel.cost.pipeline import pipeline_s
from jupyter_autotrain.parallel.cost.redistribution import Redistribution
from jupyter_autotrain.parallel.cost.roofline import Roofline, Work
from jupyter_autotrain.parallel.cost.states import Assumptions
from jupyter_autotrain.parallel.graph.builder import Builder
from jupyter_autotrain.parallel.graph.prepare import fold
from tests.example_graphs import gpt, linear, mlp


def level(kind, size=8, **more):
    levels = [{"name": "card", "size": size, "kind": kind, "bytes_per_s": 1e9, "latency_s": 1e-6, **more}]
    return ClusterSpec.parse({"device": "A100", "levels": levels})


def axis(cluster, shape=(8,), index=0):
    return axes_of(MeshSpec(tuple("abc"[: len(shape)]), shape), cluster)[index]


def test_a_ring_all_reduce_moves_twice_the_tensor_but_for_one_share():
    assert float(all_reduce_s(axis(level("ring")), 8e9)) == pytest.approx(2 * 7 * 1e-6 + 2 * 7 / 8 * 8)


def test_an_all_gather_is_half_an_all_reduce():
    ring = axis(level("ring"))
    assert float(gather_s(ring, 8e9)) == pytest.approx(float(all_reduce_s(ring, 8e9)) / 2)


def test_small_messages_take_the_tree_and_large_ones_the_ring():
    ring = axis(level("ring"))
    assert float(all_reduce_s(ring, 8)) == pytest.approx(2 * 3 * 1e-6, rel=1e-2)


def test_a_part_of_a_ring_has_half_its_bandwidth_and_of_a_torus_one_dimension():
    assert bandwidth(axis(level("ring"), (2, 4), 1).link_groups[0]) == pytest.approx(0.5e9)
    assert bandwidth(axis(level("torus", dims=3), (2, 4), 1).link_groups[0]) == pytest.approx(1e9 / 3)
    assert bandwidth(axis(level("full"), (2, 4), 1).link_groups[0]) == pytest.approx(3e9 / 7)
    assert bandwidth(axis(level("switch"), (2, 4), 1).link_groups[0]) == pytest.approx(1e9)


def test_a_shared_card_divides_its_bandwidth():
    assert bandwidth(axis(level("switch", shared_by=4)).link_groups[0]) == pytest.approx(0.25e9)


def test_an_all_to_all_on_a_ring_crosses_several_links():
    switch, ring = (float(all_to_all_s(axis(level(kind)), 1e9)) for kind in ("switch", "ring"))
    assert ring == pytest.approx(2 * switch, rel=1e-3)


def test_two_levels_beat_one_flat_ring_over_the_slow_one():
    whole = axis(ClusterSpec.parse("4x8xA100"), (32,))
    slowest = max(1 / bandwidth(s) for s in whole.link_groups)
    assert float(all_reduce_s(whole, 1e9)) < 0.3 * 2 * 31 / 32 * 1e9 * slowest


def test_redistribution_follows_the_words_of_dtensor():
    table = Redistribution((axis(level("ring")),), Assumptions())
    rows = np.array([[0], [1], [REPLICATE], [PARTIAL]])
    seconds = table.seconds(Layouts.of(rows), Layouts.of(rows[:3]), 8e9)
    ring = axis(level("ring"))
    assert seconds[0, 0] == seconds[2, 0] == seconds[2, 2] == 0.0
    assert seconds[0, 2] == pytest.approx(float(gather_s(ring, 8e9)))
    assert seconds[3, 2] == pytest.approx(float(all_reduce_s(ring, 8e9)))
    assert seconds[3, 0] == pytest.approx(float(gather_s(ring, 8e9)))
    assert seconds[0, 1] == pytest.approx(float(all_to_all_s(ring, 1e9)))


def test_a_gather_over_two_axes_costs_at_least_the_whole_tensor_once():
    axes = axes_of(MeshSpec(("a", "b"), (2, 4)), level("switch"))
    both = Redistribution(axes, Assumptions()).seconds(
        Layouts.of(np.array([[0, 0]])), Layouts.of(np.array([[REPLICATE, REPLICATE]])), 8e9
    )
    assert 7.0 <= float(both[0, 0]) <= 8.1


def test_strategies_split_only_what_divides():
    op = mlp(width=6, layers=1, batch=4).ops[0]
    sizes = tuple(loop.size for loop in op.loops)
    assert len(strategies(op, sizes, (4,))) < len(strategies(op, sizes, (2,)))
    assert (strategies(op, sizes, (2, 2)) >= -1).all()


def work(flops, own=0.0):
    return Work(np.array([flops]), np.array([own]), np.zeros(1))


def test_small_products_are_inefficient_and_large_ones_reach_the_stated_share():
    roofline = Roofline(presets()["A100"].device)
    share = [flops / float(roofline.seconds(work(flops), half=True)[0]) / 312e12 for flops in (1e8, 1e10, 1e13)]
    assert share == sorted(share)
    assert share[0] < 0.2
    assert share[2] == pytest.approx(roofline.efficiency.matrix, rel=0.01)


def test_the_last_wave_of_tiles_idles_more_in_small_products_up_to_a_quarter():
    idle = Roofline(presets()["A100"].device).wave_quantization_loss(
        np.array([2048 * 768, 2048 * 12288, 8192 * 25600], dtype=float)
    )
    assert idle == pytest.approx([0.25, 54 * 128 * 256 / (2048 * 12288), 54 * 128 * 256 / (8192 * 25600)])
    assert (
        Roofline(presets()["V100"].device).wave_quantization_loss(np.array([2048.0 * 12288])) < idle[1]
    )  # fewer multiprocessors


def test_a_split_makes_the_products_of_a_layer_less_efficient():
    graph = mlp(width=4096, layers=2, batch=2048)
    alone, split = (CostModel(graph, ClusterSpec.parse("64xA100"), MeshSpec(("a",), (n,))).op(0) for n in (2, 64))
    assert split.forward_s.min() * 64 > 1.1 * alone.forward_s.min() * 2


def test_the_roofline_takes_the_slower_of_compute_and_memory():
    roofline = Roofline(presets()["A100"].device)
    moved = float(roofline.seconds(work(1e6, 1e9), half=True)[0])
    assert moved == pytest.approx(1e9 / (2039e9 * roofline.efficiency.memory), rel=0.02)


def test_bubbles_follow_their_formulas():
    assert pipeline_s([1.0] * 4, 8) == pytest.approx(8 + 3.0)
    assert pipeline_s([1.0] * 4, 8, chunks=3) == pytest.approx(8 + 1.0)
    assert pipeline_s([2.0], 8) == 16.0


def test_activations_alive_follow_the_schedule():
    assert in_flight(Schedule.GPIPE, 4, 0, 16) == 16
    assert [in_flight(Schedule.ONE_F_ONE_B, 4, i, 16) for i in range(4)] == [4, 3, 2, 1]
    assert in_flight(Schedule.INTERLEAVED, 8, 0, 64, 3) == pytest.approx(8 * (1 + 7 / 24))


@pytest.mark.parametrize(("zero", "per_parameter"), [(0, 16.0), (1, 4 + 12 / 8), (2, 2 + 14 / 8), (3, 16 / 8)])
def test_states_take_sixteen_bytes_per_parameter_less_what_zero_shares_out(zero, per_parameter):
    graph = mlp(width=1024, layers=1, batch=64)
    model = CostModel(graph, ClusterSpec.parse("8xA100"), MeshSpec(("a",), (8,)))
    table = model.op(0)
    row = int(np.flatnonzero(table.table[:, 0] == 0)[0])
    held = table.states.state_bytes[ZeroLevel(zero), row]
    parameters = 4096 * 1024 + 4096
    gathered = 2 * 7 / 8 * parameters if zero == 3 else 0  # the slices of the seven others, while the layer is in use
    assert held == pytest.approx(per_parameter * parameters + gathered, rel=0.01)


def test_adam_keeps_twelve_bytes_beside_half_and_eight_beside_single_precision():
    assert Optimizer().state_bytes(2) == 12
    assert Optimizer().state_bytes(4) == 8


def test_the_gradient_of_a_data_parallel_weight_is_summed_and_hides_behind_compute():
    graph = mlp(width=4096, layers=1, batch=4096)
    cluster = ClusterSpec.parse("8xA100")
    states = CostModel(graph, cluster, MeshSpec(("a",), (8,))).op(0).states
    assert states.step_s[ZeroLevel.NONE].max() > 0
    plain = 2 * 4096 * 4 * 4096 * 2 * 7 / 8 / (300e9 * 0.7)
    assert states.step_s[ZeroLevel.NONE].max() < plain


def test_microbatches_shrink_activations_and_keep_the_states():
    graph = gpt(width=256, layers=2, heads=4, sequence=128, batch=16, vocabulary=1024)
    one, four = (CostModel(graph, ClusterSpec.parse("1xA100"), MeshSpec((), ()), m) for m in (1, 4))
    for op in graph.ops:
        assert four.op(op.id).act_bytes[0].sum() == pytest.approx(one.op(op.id).act_bytes[0].sum() / 4, abs=1)
        assert four.op(op.id).states.state_bytes.sum() == one.op(op.id).states.state_bytes.sum()


def halves():
    """Three layers down, three up; the first one up reads what is between, the others a layer down each."""
    b = Builder("halves", "float32")
    made = []
    x = b.input("x", 64, 8)
    for i in range(3):
        x = linear(b, x, 8, f"down.{i}.one")
        x = linear(b, b.apply("_softmax", [x], (64, 8), f"down.{i}.softmax", dim=-1), 8, f"down.{i}.two")
        made.append(x)
    x = b.apply("relu", [b.apply("_softmax", [x], (64, 8), "between", dim=-1)], (64, 8), "after")
    made[0] = x
    for i in range(3):
        x = b.apply("_softmax", [x], (64, 8), f"up.{i}.softmax", dim=-1)
        x = linear(b, b.apply("add", [x, made[i]], (64, 8), f"up.{i}.add"), 8, f"up.{i}.one")
    return b.graph()


def test_edges_between_two_runs_are_their_own():
    graph = halves()
    folded = fold(graph)
    assert len(folded.repeated_blocks) == 2
    mesh = MeshSpec(("a",), (2,))
    cluster = ClusterSpec.parse("2xA100")
    once = CostModel(folded, cluster, mesh)
    each = CostModel(graph, cluster, mesh)
    for op in graph.ops:
        for short, full in zip(once.edges_into(op.id), each.edges_into(op.id), strict=True):
            assert (short.source, short.target) == (full.source, full.target)
            assert np.array_equal(short.forward_s, full.forward_s)


def test_products_that_read_one_input_share_the_change_of_its_layout():
    b = Builder()
    x = b.apply("_softmax", [b.input("x", 64, 32)], (64, 32), "before", dim=-1)
    for name in ("queries", "keys", "values"):
        linear(b, x, 32, name)
    b.apply("relu", [x], (64, 32), "after")
    graph = b.graph()
    model = CostModel(graph, ClusterSpec.parse("2xA100"), MeshSpec(("a",), (2,)))
    tables = {graph.ops[reader].name: model.edges_into(reader)[0] for reader in graph.consumers[x]}
    change = model.edge_pricer.redistribution.seconds
    split, whole = (Layouts.of(np.array([[code]])) for code in (0, REPLICATE))
    once_s = float(change(split, whole, model.tensor_bytes(x))[0, 0])
    assert tables["keys"].forward_s.max() == pytest.approx(once_s / 3)
    assert tables["after"].forward_s.max() > once_s / 3


@pytest.fixture(scope="module")
def megatron():
    path = Path(__file__).parents[2] / "benchmarks" / "megatron_accuracy.py"
    spec = importlib.util.spec_from_file_location("megatron_accuracy", path)
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize("mode", [Recompute.FULL, Recompute.SELECTIVE])
def test_published_step_times_are_predicted_within_five_percent(megatron, row, mode):
    case = megatron.CASES[row]
    measured = case.full_s if mode is Recompute.FULL else case.selective_s
    assert megatron.predict(case, mode).step_s == pytest.approx(measured, rel=0.05)


@pytest.mark.parametrize("row", [0, 1])
def test_activation_memory_of_a_layer_follows_the_published_formulas(megatron, row):
    case = megatron.CASES[row]
    sbh = case.sequence * case.microbatch * case.width
    score = 5 * case.heads * case.sequence / case.width
    expected = {
        Recompute.NONE: (34 + score) / case.tensor,
        Recompute.SELECTIVE: 34 / case.tensor,
    }
    for mode, per_element in expected.items():
        assert megatron.layer_activation_bytes(case, mode) == pytest.approx(per_element * sbh, rel=0.1)

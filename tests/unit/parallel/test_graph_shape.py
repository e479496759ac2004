import itertools
import json
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain.agent.json import from_json, to_json
from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.graph.builder import Builder
from jupyter_autotrain.parallel.graph.check import check
from jupyter_autotrain.parallel.graph.fuse import fuse
from jupyter_autotrain.parallel.graph.graph import LoopRole, OpGraph, TensorKind
from jupyter_autotrain.parallel.graph.prepare import fold
from tests import example_graphs
from tests.example_graphs import linear

SMALL = {"width": 64, "heads": 8, "sequence": 16, "batch": 8, "vocabulary": 128}
COSTS = ("flops_forward", "flops_backward", "bytes_forward", "bytes_backward", "saved_extra_bytes")


def total(graph, cost):
    return sum(getattr(op, cost) for op in graph.ops)


@pytest.fixture(params=["gpt", "llama", "mlp", "random"])
def graph(request):
    return {
        "gpt": lambda: example_graphs.gpt(layers=4, **SMALL),
        "llama": lambda: example_graphs.llama(layers=4, key_value_heads=2, **SMALL),
        "mlp": lambda: example_graphs.mlp(width=32, layers=4, batch=8),
        "random": lambda: example_graphs.random_graph(7, 60),
    }[request.param]()


def test_built_graphs_are_well_formed_and_survive_json(graph):
    for made in (graph, fold(fuse(graph))):
        assert check(made) is made
        assert from_json(OpGraph, json.loads(json.dumps(to_json(made)))) == made


def test_a_gpt_needs_six_flops_per_weight_and_token_and_attention():
    graph = example_graphs.gpt(layers=4, **SMALL)
    weights = sum(t.numel for t in graph.tensors if t.kind is TensorKind.PARAMETER and len(t.shape) == 2)
    weights -= SMALL["vocabulary"] * SMALL["width"]  # the lookup table multiplies nothing
    tokens = SMALL["batch"] * SMALL["sequence"]
    attention = 4 * 4 * tokens * SMALL["sequence"] * SMALL["width"] * 3.5
    assert total(graph, "flops_forward") + total(graph, "flops_backward") == 6 * weights * tokens + attention


@pytest.mark.parametrize(("made", "ops"), [("gpt", 9), ("llama", 14)])
def test_a_block_fuses_to_a_few_ops_and_all_layers_are_one_run(made, ops):
    graph = getattr(example_graphs, made)(layers=48, **SMALL)
    (run,) = graph.repeated_blocks
    (fused,) = fold(fuse(graph)).repeated_blocks
    assert (run.count, fused.count) == (48, 48)
    assert fused.length == ops


def test_fusing_keeps_costs_tensors_and_the_way_back(graph):
    fused = fuse(graph)
    assert {cost: total(fused, cost) for cost in COSTS} == {cost: total(graph, cost) for cost in COSTS}
    assert {t for op in fused.ops for t in op.saved} == {t for op in graph.ops for t in op.saved}
    names = [member.name for op in fused.ops for member in op.members] or []
    names += [op.name for op in fused.ops if not op.members]
    assert sorted(names) == sorted(op.name for op in graph.ops)


def test_members_follow_loops_that_exist_and_fit(graph):
    originals = {op.name: op for op in graph.ops}
    for op in fuse(graph).ops:
        for member in op.members:
            own = originals[member.name].loops
            assert len(own) == len(member.loops)
            for loop, place in zip(own, member.loops, strict=True):
                assert place is None or loop.size % op.loops[place].size == 0


def test_fusing_never_takes_a_loop_that_its_leader_could_split(graph):
    originals = {op.name: op for op in graph.ops}
    for op in fuse(graph).ops:
        lead = originals[op.name]
        assert [loop.shardable for loop in op.loops] == [loop.shardable for loop in lead.loops]


def test_a_nonlinear_op_does_not_join_a_product_whose_output_may_be_partial():
    graph = fuse(example_graphs.mlp(width=32, layers=1, batch=8))
    up, down, _ = graph.ops
    assert up.members == ()
    assert [member.name for member in down.members] == ["layers.0.relu", "layers.0.down"]


def test_a_saved_tensor_inside_a_fused_op_stays_visible(graph):
    fused = fuse(graph)
    made = {operand.tensor for op in fused.ops for operand in op.outputs}
    saved = {t for op in fused.ops for t in op.saved if fused.tensors[t].kind is TensorKind.ACTIVATION}
    assert saved <= made


def test_folded_blocks_are_equal_in_form_and_cost(graph):
    for run in graph.repeated_blocks:
        for i in range(run.start, run.start + run.length):
            twins = [graph.ops[i + k * run.length] for k in range(run.count)]
            assert len({(t.kind, t.flops_forward, t.bytes_backward, len(t.inputs)) for t in twins}) == 1


def encoder_decoder(layers):
    b = Builder("encoder-decoder", "float32")
    x = b.input("x", 8, 4, 16)
    for i in range(layers):
        x = linear(b, b.apply("relu", [linear(b, x, 32, f"e{i}.a")], (8, 4, 32), f"e{i}.r"), 16, f"e{i}.b")
    memory = x
    y = b.input("y", 8, 4, 16)
    for i in range(layers):
        y = linear(b, y, 16, f"d{i}.a")
        y = b.apply("attention", [b.apply("view", [t], (8, 1, 4, 16)) for t in (y, memory, memory)], (8, 1, 4, 16))
        y = linear(b, b.apply("view", [y], (8, 4, 16)), 16, f"d{i}.b")
    b.apply("sum", [y], ())
    return fold(b.graph())


def test_an_encoder_and_a_decoder_are_two_runs():
    assert [run.count for run in encoder_decoder(6).repeated_blocks] == [6, 6]


def test_layers_that_share_weights_are_not_folded():
    b = Builder("shared", "float32")
    x = b.input("x", 8, 16)
    weight = b.parameter("w", 16, 16)
    for _ in range(8):
        x = b.apply("relu", [b.apply("linear", [x, weight], (8, 16))], (8, 16))
    assert fold(b.graph()).repeated_blocks == ()


def test_a_different_layer_in_the_middle_breaks_the_run():
    b = Builder("odd", "float32")
    x = b.input("x", 8, 16)
    for i in range(9):
        x = linear(b, x, 24 if i == 4 else 32, f"{i}.a")
        x = linear(b, b.apply("relu", [x], b.tensors[x].shape, f"{i}.r"), 16, f"{i}.b")
    assert [(run.start, run.count) for run in fold(b.graph()).repeated_blocks] == [(0, 4), (15, 4)]


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), ops=st.integers(1, 40))
def test_any_graph_fuses_to_a_well_formed_graph_of_the_same_cost(seed, ops):
    graph = example_graphs.random_graph(seed, ops)
    fused = check(fuse(graph))
    assert {cost: total(fused, cost) for cost in COSTS} == {cost: total(graph, cost) for cost in COSTS}


def test_work_grows_in_proportion_to_the_graph():
    def calls(layers):
        graph = example_graphs.gpt(layers=layers, **SMALL)
        counted = itertools.count()
        sys.setprofile(lambda *_: next(counted))
        try:
            folded = fold(fuse(graph))
        finally:
            sys.setprofile(None)
        assert folded.repeated_blocks[0].count == layers
        return next(counted)

    assert calls(80) < 5 * calls(20)  # four times the layers; a square would be sixteen


def test_roles_reach_the_heads_and_the_batch():
    graph = example_graphs.gpt(layers=1, **SMALL)
    attention = next(op for op in graph.ops if op.kind == "attention")
    assert [loop.role for loop in attention.loops[:2]] == [LoopRole.BATCH, LoopRole.HEAD]


def faulty(change):
    graph = example_graphs.mlp(width=8, layers=1, batch=4)
    first, *rest = graph.ops
    return replace(graph, repeated_blocks=(), ops=change(first, rest))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda first, rest: (replace(first, id=5), *rest), "id"),
        (lambda first, rest: (replace(rest[0], id=0), replace(first, id=1), *rest[1:]), "after it"),
        (lambda first, rest: (replace(first, inputs=rest[-1].outputs), *rest), "after it"),
        (lambda first, rest: (replace(first, saved=(99,)), *rest), "saves"),
        (lambda first, rest: (replace(first, loops=first.loops[:1]), *rest), "along loops"),
    ],
)
def test_a_malformed_or_cyclic_graph_is_refused_in_three_clauses(change, word):
    with pytest.raises(PlanError) as caught:
        check(faulty(change))
    assert word in caught.value.found
    assert caught.value.expected
    assert caught.value.action

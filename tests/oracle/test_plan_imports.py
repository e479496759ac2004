"""Plans from elsewhere: Megatron's degrees and MindSpore's splits become pins, or are told what contradicts what."""

import pytest

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.plan import Megatron, MindSpore
from tests.example_graphs import gpt, llama, mlp
from tests.oracle.whole_space import plan


def tiny_llama(batch=16):
    return llama(width=256, layers=4, heads=8, key_value_heads=4, sequence=128, batch=batch, vocabulary=1024)


def priced(graph, cluster, pins):
    return plan(graph, None, cluster, pins=pins, search="recursive_programming")


def role(found, op, axis):
    """Return what an axis splits of an op."""
    loop = found.strategies[op].split_loops(found.op(op))[axis]
    return loop.role if loop else None


def test_megatron_splits_columns_then_rows_and_nothing_between_blocks():
    graph = gpt(width=256, layers=4, heads=8, sequence=128, batch=16, vocabulary=1024)
    found = priced(graph, "2x4xA100", Megatron(tensor=4))
    ops = {name: found.strategies[f"h.1.{name}"] for name in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")}
    for name in ("attn.c_attn", "mlp.c_fc"):
        assert ops[name].split_loops(found.op(f"h.1.{name}"))[1] is not None
        assert str(ops[name].outputs[0][1]).startswith("S")
    for name in ("attn.c_proj", "mlp.c_proj"):
        assert "P" in {str(out[1]) for out in ops[name].outputs}
    assert role(found, "h.1.add", 1) is None
    assert {role(found, op.name, 0) for op in found.graph.ops if op.name.startswith("h.")} == {"batch"}


def test_sequence_parallelism_splits_the_sequence_of_norms_and_residuals():
    found = priced(tiny_llama(), "2x4xA100", Megatron(tensor=4, sequence_parallel=True, zero=1))
    norms = [op.name for op in found.graph.ops if op.family == "norm"]
    assert norms
    assert {role(found, name, 1) for name in norms} == {"sequence"}


def test_degrees_pin_stages_states_and_recompute():
    found = priced(tiny_llama(), "8xA100", Megatron(tensor=2, pipeline=2, microbatches=4, zero=1, recompute="full"))
    assert len(found.stages) == 2
    assert found.microbatches == 4
    assert found.schedule == "1f1b"
    assert found.mesh.shape == (2, 2)
    assert set(found.zero) == {1}
    assert set(found.recompute) == {"full"}


@pytest.mark.parametrize(
    ("degrees", "said"),
    [
        (Megatron(tensor=3), "devices"),
        (Megatron(tensor=2, data=2), "4 devices"),
        (Megatron(tensor=8), "which 8 devices do not divide"),
        (Megatron(data=8, microbatches=4), "batch"),
        (Megatron(pipeline=8), "8 stages"),
    ],
)
def test_degrees_that_cannot_be_are_named(degrees, said):
    with pytest.raises(PlanError) as caught:
        priced(tiny_llama(), "8xA100", degrees)
    assert said in str(caught.value)
    assert caught.value.expected
    assert caught.value.action


def test_mindspore_splits_are_kept_and_the_rest_is_searched():
    graph = mlp(width=256, layers=4, batch=32)
    wide = next(op.name for op in graph.ops if op.family == "matmul").replace("0", "*")
    found = priced(graph, "8xA100", MindSpore({wide: ((2, 1), (4, 1))}))
    assert found.mesh.shape == (2, 4)
    strategy = found.strategies[wide.replace("*", "2")]
    assert [str(p) for p in strategy.outputs[0]] == ["S(0)", "S(1)"]


@pytest.mark.parametrize(
    ("splits", "said"),
    [
        ({"layers.*.up": ((2, 1), (4, 2))}, "splits one loop in 1 and in 2"),
        ({"layers.*.up": ((3, 1), (1, 1))}, "into 3 equal parts"),
        ({"layers.*.up": ((2, 1, 1), (4, 1))}, "has an input of 2 dims"),
        ({"nothing.*": ((1, 1),)}, "no op is named 'nothing.*'"),
        ({"layers.*.up": ((16, 1), (1, 1))}, "do not fit 8 devices"),
    ],
)
def test_contradictions_of_splits_are_named_together(splits, said):
    graph = mlp(width=256, layers=4, batch=32)
    names = [op.name for op in graph.ops if op.family == "matmul"]
    inner = names[0].split(".")
    real = {key.replace("layers", inner[0]).replace("up", inner[-1]): value for key, value in splits.items()}
    with pytest.raises(PlanError) as caught:
        priced(graph, "8xA100", MindSpore(real))
    assert said in str(caught.value)
    assert caught.value.action


def test_other_people_s_plans_are_never_better_than_the_one_found():
    graph = tiny_llama()
    best = plan(graph, None, "8xA100")
    for degrees in (Megatron(tensor=4), Megatron(tensor=2, sequence_parallel=True), Megatron(zero=3)):
        assert priced(graph, "8xA100", degrees).cost.step_s >= best.cost.step_s * (1 - 1e-9)

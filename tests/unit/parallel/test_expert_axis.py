"""The expert axis: its price is that of the exchange it runs, and it is asked for by a degree."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from jupyter_autotrain.core.cluster import ClusterSpec, MeshSpec  # noqa: E402 - after the check for torch
from jupyter_autotrain.errors import PlanError  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel import api  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.cost.collectives import all_to_all_s, axes_of  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.cost.exchange import Exchange  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.cost.layout import Shard  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.cost.model import CostModel, Settings  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.plan import Megatron  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.plan.degrees import Degrees as Numbers  # noqa: E402 - after the check for torch
from tests.parallel import training  # noqa: E402 - after the check for torch

INSTANT = {"search": "recursive_programming"}
TOKENS = training.BATCH * training.LENGTH
WIDTH = 32
CHOSEN = 2


@pytest.fixture(scope="module")
def mixtral():
    found = api.plan(training.network("mixtral"), training.example("mixtral"), "1xA100", mode="stand_alone", **INSTANT)
    return found.graph


def mixture_of(graph):
    return next(op for op in graph.ops if op.name.endswith("experts.experts"))


def edge_of(model, op):
    tokens = Exchange.of(model.graph, op).tensor
    return next(edge for edge in model.edges_into(op.id) if edge.tensor == tokens)


def loop(op, name):
    return next(i for i, one in enumerate(op.loops) if one.name == name)


@pytest.mark.parametrize("imbalance", [1.0, 1.25])
def test_tokens_go_to_their_experts_and_back_in_each_pass(mixtral, imbalance):
    cluster = ClusterSpec.parse("2x2xA100")
    settings = Settings()
    settings = replace(settings, assumptions=replace(settings.assumptions, imbalance=imbalance))
    model = CostModel(mixtral, cluster, MeshSpec(("a",), (4,)), settings=settings)
    op = mixture_of(mixtral)
    edge = edge_of(model, op)
    source = mixtral.ops[edge.source]
    by_sample = model.row_of(source.id, [loop(source, "a")])
    to_experts = edge.forward_s[by_sample, model.row_of(op.id, [loop(op, "e")])]
    stay = edge.forward_s[by_sample, model.row_of(op.id, [loop(op, "a")])]
    (axis,) = axes_of(model.mesh, cluster)
    rows_bytes = imbalance * CHOSEN * TOKENS / 4 * WIDTH * 4
    assert stay == 0
    assert to_experts == pytest.approx(2 * all_to_all_s(axis, rows_bytes))
    assert edge.backward_s[by_sample, model.row_of(op.id, [loop(op, "e")])] == pytest.approx(to_experts)


def test_more_of_what_leaves_a_machine_is_paid_for_than_of_what_stays():
    """Of 8 ranks on 2 machines half of the rows go over the network, 7 of 8 over the links within one."""
    (near,) = axes_of(MeshSpec(("a",), (8,)), ClusterSpec.parse("8xA100"))
    (both,) = axes_of(MeshSpec(("a",), (8,)), ClusterSpec.parse("2x4xA100"))
    level = both.link_groups[1].link
    slower = level.bytes_per_s * level.efficiency / level.shared_by
    assert both.all_to_all[0].s_per_byte == pytest.approx(4 / 8 / slower)
    assert both.all_to_all[0].s_per_byte > near.all_to_all[0].s_per_byte


def test_the_fullest_rank_computes_more_than_the_mean(mixtral):
    model = CostModel(mixtral, ClusterSpec.parse("4xCPU"), MeshSpec(("a",), (4,)))
    table = model.op(mixture_of(mixtral).id)
    op = mixture_of(mixtral)
    by_sample, by_expert = (model.row_of(op.id, [loop(op, name)]) for name in ("a", "e"))
    assert table.act_bytes[0, by_expert] > table.act_bytes[0, by_sample]
    assert table.states.state_bytes[0, by_expert] < table.states.state_bytes[0, by_sample]


@pytest.mark.parametrize("mesh", [{"data": 2, "expert": 2}, {"dp": 2, "ep": 2}])
def test_a_degree_of_experts_is_asked_for_without_pins(mixtral, mesh):
    plan = api.plan(mixtral, None, "4xA100", mesh=mesh, **INSTANT)
    recipe = plan.recipe()
    decided = plan.strategies[mixture_of(mixtral).name]
    assert plan.mesh == MeshSpec(("data", "expert"), (2, 2))
    assert (recipe.samples, recipe.experts.ranks) == (4, 2)
    assert decided.outputs == ((Shard(0), Shard(0)),)
    assert plan.cost.sent_bytes > 0


def test_experts_lie_within_the_replicas_in_degrees_of_megatron(mixtral):
    plan = api.plan(mixtral, None, "4xA100", pins=Megatron(expert=2, zero=1), **INSTANT)
    d = Numbers.of(plan)
    flags = plan.to_code("megatron")
    assert (d.data, d.expert, d.samples, d.processes) == (4, 2, 4, 4)
    assert "--expert-model-parallel-size 2" in flags
    assert "--micro-batch-size 4" in flags
    assert "# - expert" not in plan.to_code("torchtitan")
    again = api.plan(mixtral, None, "4xA100", pins=Megatron(data=d.data, expert=d.expert, zero=int(d.zero)), **INSTANT)
    assert again.decision == plan.decision


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"mesh": {"ep": 8}}, "mixtures of 4 experts, beside 8 replicas"),
        ({"mesh": {"xp": 2}}, "Unknown axis 'xp'"),
        ({"mesh": {"ep": 0}}, "The degree of expert is 0"),
        ({"mesh": {"ep": 2}, "pins": {"zero": 3}}, "both mesh=.* and pins"),
        ({"pins": Megatron(expert=3)}, "Expert 3 for a model with mixtures of 4 experts"),
    ],
)
def test_degrees_that_do_not_fit_are_told(mixtral, words, told):
    with pytest.raises(PlanError, match=told):
        api.plan(mixtral, None, "8xA100", **words, **INSTANT)


def test_a_degree_of_experts_needs_a_mixture():
    with pytest.raises(PlanError, match="no mixture of experts"):
        api.plan(training.network("llama"), training.example("llama"), "2xA100", mesh={"ep": 2}, **INSTANT)


def test_an_axis_of_experts_is_named_for_them_however_little_is_theirs():
    config = transformers.MixtralConfig(
        **training.SIZES | {"intermediate_size": 4}, **training.WORDS, num_local_experts=2, num_key_value_heads=2
    )
    plan = api.plan(
        transformers.MixtralForCausalLM(config), training.example("mixtral"), "2xA100", mesh={"ep": 2}, **INSTANT
    )
    assert plan.mesh.axes == ("expert",)
    assert plan.beyond == ()


def test_a_mixture_that_data_parallelism_slows_gets_an_expert_axis_that_runs():
    sizes = {"hidden_size": 1024, "intermediate_size": 3584, "num_hidden_layers": 4, "num_attention_heads": 16}
    config = transformers.MixtralConfig(**sizes, vocab_size=512, num_key_value_heads=8, num_local_experts=8)
    with torch.device("meta"):
        model = transformers.MixtralForCausalLM(config).to(torch.bfloat16)
        ids = torch.zeros(64, 512, dtype=torch.long)
    plan = api.plan(model, {"input_ids": ids, "labels": ids}, "8x8xA100", **INSTANT)
    assert "expert" in plan.mesh.axes
    assert plan.beyond == ()
    assert plan.recipe().experts.ranks == 8

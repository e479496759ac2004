"""The table of choices: each kind has a row, and a plan with more than the executed rows is refused before it runs."""

from dataclasses import replace
from math import prod

import pytest

torch = pytest.importorskip("torch")

from jupyter_autotrain.core.cluster import TIMES  # noqa: E402 - after the check for torch
from jupyter_autotrain.errors import PlanError  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel import api  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.choices import CHOICES, Support, beyond, choices_in  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.cost.memory import Recompute, Schedule, ZeroLevel  # noqa: E402 - as above
from jupyter_autotrain.parallel.graph.graph import EXPERTS, LoopRole  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.plan import Megatron  # noqa: E402 - after the check for torch
from tests.example_graphs import gpt  # noqa: E402 - after the check for torch
from tests.parallel import training  # noqa: E402 - after the check for torch

GRAPH = gpt(layers=4, width=64, heads=4, sequence=32, batch=16, vocabulary=256)
INSTANT = {"search": "recursive_programming"}


def data_parallel(**pins):
    return api.plan(GRAPH, cluster="4xA100", mode="data_parallel", pins=pins, **INSTANT)


def rows(plan):
    return {choice.name for choice, _ in choices_in(plan.graph, plan.decision)}


@pytest.mark.parametrize("zero", ZeroLevel)
@pytest.mark.parametrize("recompute", Recompute)
def test_data_axes_with_any_sharding_and_recompute_are_executed(zero, recompute):
    plan = data_parallel(zero=zero, recompute=recompute, microbatches=2)
    recipe = plan.recipe()
    assert (recipe.ranks, recipe.microbatches, recipe.zero) == (4, 2, zero)
    assert {layer.zero for layer in recipe.layers} == {zero}
    assert {layer.recompute for layer in recipe.layers} == {recompute}
    assert len(recipe.layers) == 4
    assert all(choice.support is Support.EXECUTED for choice, _ in choices_in(plan.graph, plan.decision))


@pytest.mark.parametrize(
    ("pins", "found"),
    [
        ({"mesh": (4,), "ops": {"*c_attn": (None,), "*c_proj": ("k",), "*": ("batch",)}}, "split over the axis"),
        ({"mesh": (4,), "ops": {"*": (None,)}}, "the same work on all ranks of the axis replica"),
    ],
)
def test_a_plan_beyond_the_executed_rows_is_refused_with_what_would_run(pins, found):
    plan = api.plan(GRAPH, cluster="4xA100", pins=pins, **INSTANT)
    with pytest.raises(PlanError) as caught:
        plan.apply(None, None, None)
    assert found in str(caught.value)
    assert "Executed are: data axis, DDP" in str(caught.value)
    assert "execute=True" in str(caught.value)


@pytest.mark.parametrize("zero", ZeroLevel)
@pytest.mark.parametrize("sequence", [False, True])
def test_a_tensor_axis_as_megatron_has_it_is_executed_beside_a_data_axis(zero, sequence):
    pins = Megatron(tensor=2, sequence_parallel=sequence, zero=int(zero), microbatches=2)
    plan = api.plan(GRAPH, cluster="4xA100", pins=pins, **INSTANT)
    recipe = plan.recipe()
    assert (recipe.ranks, recipe.samples, recipe.tensor.ranks, recipe.zero) == (4, 2, 2, zero)
    assert "tensor axis" in rows(plan)
    assert ("tensor axis with sequence" in rows(plan)) is sequence
    assert all(choice.support is Support.EXECUTED for choice, _ in choices_in(plan.graph, plan.decision))


@pytest.mark.parametrize("devices", [4, 8])
def test_a_tensor_axis_in_stages_is_executed_with_a_data_axis_too(devices):
    pins = Megatron(tensor=2, pipeline=2, sequence_parallel=True, zero=1, microbatches=4)
    plan = api.plan(GRAPH, cluster=f"{devices}xA100", pins=pins, **INSTANT)
    recipe = plan.recipe()
    assert (recipe.ranks, recipe.samples, recipe.tensor.ranks, recipe.pipeline.stages) == (devices, devices // 4, 2, 2)
    assert {"tensor axis", "tensor axis in stages", "pipeline of equal stages", "1F1B"} <= rows(plan)
    assert all(choice.support is Support.EXECUTED for choice, _ in choices_in(plan.graph, plan.decision))


@pytest.mark.parametrize(
    ("degrees", "names", "first_of_rank_1"),
    [
        ({"pipeline": 2, "microbatches": 2}, {"1F1B", "data axis", "DDP"}, [2, 3]),
        ({"pipeline": 4, "microbatches": 4, "zero": 0}, {"1F1B"}, [1]),
        ({"pipeline": 2, "microbatches": 4, "zero": 3, "interleaved": True}, {"interleaved 1F1B", "ZeRO-3"}, [1, 3]),
    ],
)
def test_stages_of_equal_layers_are_executed_alone_and_beside_data_axes(degrees, names, first_of_rank_1):
    plan = api.plan(GRAPH, cluster="4xA100", pins=Megatron(**degrees), **INSTANT)
    assert {"pipeline of equal stages", *names} <= rows(plan)
    assert plan.beyond == ()
    recipe = plan.recipe()
    pipeline = recipe.pipeline
    assert (recipe.ranks, recipe.samples, pipeline.stages) == (4, 4 // degrees["pipeline"], degrees["pipeline"])
    assert pipeline.layers == ("h.0", "h.1", "h.2", "h.3")
    assert (pipeline.first, pipeline.last) == (("wte", "embed"), ("ln_f", "lm_head"))
    parts = range(1, pipeline.parts, pipeline.stages)
    assert [layer for part in parts for layer in pipeline.layers_of(part)] == first_of_rank_1
    assert any("plan.parallelize" in note for note in plan.notes)


@pytest.mark.parametrize(("layers", "stages", "ends"), [(6, 4, (1, 3, 5, 6)), (3, 2, (2, 3))])
def test_stages_of_unequal_numbers_of_layers_are_executed(layers, stages, ends):
    graph = gpt(layers=layers, width=64, heads=4, sequence=32, batch=16, vocabulary=256)
    plan = api.plan(graph, cluster=f"{stages}xA100", pins=Megatron(pipeline=stages, microbatches=4), **INSTANT)
    assert plan.beyond == ()
    assert "pipeline of unequal stages" in rows(plan)
    assert plan.recipe().pipeline.ends == ends
    assert not any("No plan that runs" in note for note in plan.notes)


def test_two_stacks_are_exported_only():
    pins = Megatron(pipeline=2, microbatches=2)
    plan = api.plan(training.t5(4), training.example("t5"), "2xA100", pins=pins, **INSTANT)
    assert "pipeline stages used otherwise" in rows(plan)
    with pytest.raises(PlanError, match="of the layer before it"):
        plan.recipe()


class Skipping(torch.nn.Module):
    """Layers of which each reads the first activation beside the one before it, or that are not one list."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.embedding = torch.nn.Linear(32, 32)
        self.layers = torch.nn.ModuleList(training.Block() for _ in range(4))
        self.between = torch.nn.Linear(32, 32)
        self.position = torch.nn.Parameter(torch.zeros(32))

    def forward(self, x):
        first = x = self.embedding(x) + (self.position if self.how == "own" else 0)
        for number, layer in enumerate(self.layers):
            x = layer(x) + (first if self.how == "skip" else 0)
            x = self.between(x) if self.how == "between" and number == 1 else x
        return x.sum()


class Residual(torch.nn.Module):
    """Layers whose residual is added by themselves, or by the model; the last add is fused with the head."""

    def __init__(self, *, outside):
        super().__init__()
        self.outside = outside
        self.embedding = torch.nn.Embedding(64, 32)
        self.layers = torch.nn.ModuleList(Add(outside=outside) for _ in range(4))
        self.head = torch.nn.Linear(32, 8)

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = x + layer(x) if self.outside else layer(x)
        return self.head(x).sum()


class Add(torch.nn.Module):
    def __init__(self, *, outside):
        super().__init__()
        self.outside = outside
        self.up = torch.nn.Linear(32, 64)
        self.down = torch.nn.Linear(64, 32)

    def forward(self, x):
        made = self.down(torch.relu(self.up(x)))
        return made if self.outside else x + made


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("skip", "reads what is made before the layer that comes before it"),
        ("between", "reads weights between the layers"),
        ("own", "reads a weight in the module that runs the layers"),
        ("chain", ""),
    ],
)
def test_stages_of_models_that_are_no_chain_of_layers_are_not_executed(how, reason):
    words = {"pins": Megatron(pipeline=2, microbatches=2), **INSTANT}
    plan = api.plan(Skipping(how), torch.zeros(16, 8, 32), "2xA100", **words)
    assert reason in " ".join(plan.beyond)
    assert bool(plan.beyond) is bool(reason)


@pytest.mark.parametrize(("outside", "reason"), [(True, "joins what two layers make, and is in neither"), (False, "")])
def test_stages_need_layers_that_add_their_residuals_themselves(outside, reason):
    words = {"pins": Megatron(pipeline=2, microbatches=2), **INSTANT}
    plan = api.plan(Residual(outside=outside), torch.zeros(16, 8, dtype=torch.long), "2xA100", **words)
    assert reason in " ".join(plan.beyond)
    assert bool(plan.beyond) is bool(reason)


MIXTURE = "*.experts.experts"


def mixture(mesh, experts, attention=None):
    samples = ("batch",) * len(mesh)
    ops = {MIXTURE: experts, "*.attention": attention or samples, "*": samples}
    words = {"pins": {"mesh": mesh, "ops": ops, "zero": 1}, **INSTANT}
    return api.plan(training.network("mixtral"), training.example("mixtral"), f"{prod(mesh)}xA100", **words)


@pytest.mark.parametrize(
    ("mesh", "experts", "name"),
    [((2, 2), ("batch", "e"), f"expert 2{TIMES}data 2"), ((4,), ("e",), "expert 4"), ((2,), ("e",), "expert 2")],
)
def test_an_expert_axis_is_executed_alone_and_beside_a_data_axis(mesh, experts, name):
    pytest.importorskip("transformers")
    plan = mixture(mesh, experts)
    recipe = plan.recipe()
    assert plan.beyond == ()
    assert plan.solution.name.startswith(name)
    assert "expert axis" in rows(plan)
    assert (recipe.samples, recipe.experts.ranks, recipe.zero) == (prod(mesh), mesh[-1], 1)
    assert recipe.mixtures == ("model.layers.0.mlp.experts", "model.layers.1.mlp.experts")


@pytest.mark.parametrize(
    ("mesh", "experts", "attention", "reason"),
    [
        ((2, 2), ("e", "batch"), None, "where it is not the innermost one"),
        ((2, 2), ("i", "e"), None, "where the axis tensor splits more than samples"),
        ((2,), ("e",), ("h",), "where it splits more than experts and samples"),
    ],
)
def test_an_expert_axis_beside_other_splits_is_exported_only(mesh, experts, attention, reason):
    pytest.importorskip("transformers")
    plan = mixture(mesh, experts, attention)
    assert "expert axis used otherwise" in rows(plan)
    with pytest.raises(PlanError, match=reason):
        plan.recipe()


def test_experts_that_choose_their_tokens_are_exported_only():
    """Such a module has no numbers of experts as an argument, so that no rank knows where a token is to go."""
    pytest.importorskip("transformers")
    plan = mixture((2,), ("e",))
    meta = {key: value for key, value in plan.graph.meta.items() if key != EXPERTS}
    decided = replace(plan.graph, meta=meta), plan.decision
    assert any("no module of stacked experts" in words for words in beyond(*decided))


def test_a_context_axis_is_refused_with_where_torch_runs_it():
    pins = {"mesh": (2,), "ops": {"*attn.attention": ("h",), "loss*": ("batch",), "*": ("sequence",)}}
    plan = api.plan(GRAPH, cluster="2xA100", pins=pins, **INSTANT)
    with pytest.raises(PlanError, match="which torch runs on GPUs only") as caught:
        plan.apply(None, None, None)
    assert len(str(caught.value).splitlines()) == 3


def test_optimizer_states_on_the_host_are_refused():
    words = {"mode": "data_parallel", "offload": True, "memory_limit": "2.2MB"}
    with pytest.raises(PlanError, match="in the host's memory"):
        api.plan(GRAPH, cluster="4xA100", **words, **INSTANT).recipe()


def test_every_loop_role_has_a_row_as_an_axis_and_every_schedule_one():
    names = " ".join(str(choice.found.args) for choice in CHOICES if hasattr(choice.found, "args"))
    assert all(repr(role) in names for role in LoopRole)
    assert all(repr(schedule) in names for schedule in Schedule if schedule is not Schedule.NONE)
    assert len({choice.name for choice in CHOICES}) == len(CHOICES)


@pytest.mark.parametrize(("zero", "replicas"), [(0, 2), (3, 3), (3, 4), (3, 0)])
def test_replicas_need_shards_in_groups_of_several(zero, replicas):
    with pytest.raises(PlanError, match=f"{replicas} replicas of a plan with"):
        data_parallel(zero=zero).apply(None, None, None, replicas=replicas)


def test_hybrid_sharding_on_the_inner_axis_makes_replicas_of_the_others():
    plan = data_parallel(mesh=(2, 2), zero=3)
    ops = {name: replace(op, states=replace(op.states, inner=True)) for name, op in plan.decision.ops.items()}
    solution = replace(plan.solution, decision=replace(plan.decision, ops=ops))
    assert (plan.recipe().replicas, replace(plan, solution=solution).recipe().replicas) == (1, 2)
    assert "HSDP" in rows(replace(plan, solution=solution))

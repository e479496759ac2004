"""Tests of what a decision's tensor axis takes, module by module, and which uses of it are not executed."""

import fnmatch

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch import nn

from jupyter_autotrain.parallel import api
from jupyter_autotrain.parallel.apply.recipe import Layout, WeightSplit
from jupyter_autotrain.parallel.plan import Megatron
from jupyter_autotrain.parallel.tensor_axis import tensor_recipe, why_not_executed
from tests.parallel import training

INSTANT = {"search": "recursive_programming"}
STYLES = {"colwise": WeightSplit.COLUMNS, "rowwise": WeightSplit.ROWS}


def planned(model, pins, devices=2):
    network = training.TENSOR_MODELS[model]()
    return api.plan(network, training.example(model), f"{devices}xA100", pins=pins, **INSTANT)


def recipe_of(model, **words):
    plan = planned(model, Megatron(tensor=2, **words))
    return tensor_recipe(plan.graph, plan.decision)


def test_layers_are_split_as_transformers_own_plan_of_the_model_says():
    import transformers

    own = transformers.LlamaConfig.base_model_tp_plan
    found = {module.path: module.split for module in recipe_of("llama").modules if ".layers." in module.path}
    assert len(found) == 2 * len(own)
    for path, split in found.items():
        (style,) = [style for pattern, style in own.items() if fnmatch.fnmatch(path, f"model.{pattern}")]
        assert STYLES[style] is split


@pytest.mark.parametrize("model", ["gpt2", "llama", "bert", "vit", "t5"])
def test_logits_meet_the_loss_split_by_classes(model):
    assert recipe_of(model).modules[-1].leaves is Layout.CLASSES


def test_queries_keys_and_values_in_one_weight_are_three_parts():
    parts = {module.path: module.parts for module in recipe_of("gpt2").modules}
    assert parts["transformer.h.0.attn.c_attn"] == 3
    assert parts["transformer.h.0.mlp.c_fc"] == 1


def test_queries_keys_and_values_that_each_head_has_together_are_one_part():
    import transformers

    sizes = {**training.SIZES, **training.WORDS}
    network = transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**sizes))
    plan = api.plan(network, training.example("llama"), "2xA100", pins=Megatron(tensor=2), **INSTANT)
    parts = {module.path: module.parts for module in tensor_recipe(plan.graph, plan.decision).modules}
    assert parts["gpt_neox.layers.0.attention.query_key_value"] == 1


def test_positions_are_split_between_the_ends_of_the_layers_and_gathered_where_attention_begins():
    recipe = recipe_of("llama", sequence_parallel=True)
    assert recipe.regions == (("model.layers.0", "model.layers.1"),)
    assert recipe.gathered[:2] == ("model.layers.0.self_attn", "model.layers.0.mlp")
    assert recipe.summed[:2] == ("model.layers.0.input_layernorm", "model.layers.0.post_attention_layernorm")
    leaves = {module.path: module.leaves for module in recipe.modules}
    assert leaves["model.embed_tokens"] is Layout.WHOLE
    assert leaves["model.layers.1.mlp.down_proj"] is Layout.POSITIONS


def test_what_an_encoder_leaves_is_gathered_before_a_decoder_reads_it():
    recipe = recipe_of("t5", sequence_parallel=True)
    assert recipe.regions == (("encoder.block.0", "encoder.block.1"),)
    comes = {module.path: (module.comes, module.is_gathered) for module in recipe.modules}
    assert comes["decoder.block.1.layer.1.EncDecAttention.k"] == (Layout.WHOLE, False)


def test_sizes_that_modules_write_out_of_what_is_split_are_attributes_that_a_rank_has_a_part_of():
    assert "transformer.h.0.attn.split_size" in recipe_of("gpt2").sizes
    assert recipe_of("t5").sizes == ("decoder.block.0.layer.1.EncDecAttention.n_heads",)
    assert recipe_of("llama").sizes == ()


class Written(training.Block):
    """A layer that knows its heads by a number in its code, or by an attribute."""

    def __init__(self, attribute):
        super().__init__()
        if attribute:
            self.count = 4

    def forward(self, x):
        y = self.before_attention(x)
        heads = getattr(self, "count", 4)
        q, k, v = (made(y).view(len(y), -1, heads, 8).transpose(1, 2) for made in (self.q, self.k, self.v))
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.o(attended.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("attribute", [True, False])
def test_a_number_of_heads_that_is_no_attribute_is_not_executed(attribute):
    network = training.Blocks()
    network.layers = nn.ModuleList([Written(attribute)])
    plan = api.plan(network, training.example("blocks"), "2xA100", pins=Megatron(tensor=2), **INSTANT)
    if attribute:
        assert tensor_recipe(plan.graph, plan.decision).sizes == ("layers.0.count",)
    else:
        assert "layers.0 writes out a size of what is split" in why_not_executed(plan.graph, plan.decision)


@pytest.mark.parametrize(
    ("model", "pins", "reason"),
    [
        ("blocks", Megatron(tensor=2, sequence_parallel=True), "layers.0 shapes heads by the positions of its input"),
        ("mixtral", Megatron(tensor=2), "model.layers.0.mlp.gate does more than its product"),
        (
            "llama",
            {"mesh": (2,), "ops": {"*self_attn.attention": ("h",), "*": (None,)}},
            "reads features of what comes as whole",
        ),
        ("llama", {"mesh": (2,), "ops": {"lm_head*": ("k",), "*": (None,)}}, ""),
    ],
)
def test_uses_of_the_axis_between_modules_are_not_executed(model, pins, reason):
    plan = planned(model, pins)
    assert reason in why_not_executed(plan.graph, plan.decision)
    assert bool(reason) is bool(why_not_executed(plan.graph, plan.decision))


def test_the_tensor_axis_is_the_innermost_one():
    ops = {"*lm_head*": ("n", "batch"), "*": (None, "batch")}
    plan = planned("llama", {"mesh": (2, 2), "ops": ops}, devices=4)
    assert "is not the innermost one" in why_not_executed(plan.graph, plan.decision)

"""Layers shared by ranks: unmodified models train on a tensor axis, alone and with data axes, as one process does."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from jupyter_autotrain.parallel import api  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.plan import Megatron  # noqa: E402 - after the check for torch
from tests.matrices import long_besides  # noqa: E402 - after the check for torch
from tests.parallel import planning, sharing, training  # noqa: E402 - after the check for torch
from tests.parallel.parity import GRADIENT, LOSS, apart  # noqa: E402 - after the check for torch

MODELS = [model for model in training.TENSOR_MODELS if model != "cnn"]
CASES = [(model, row, count) for model in MODELS for row in planning.TENSOR_ROWS for count in (2, 4)]
DEFAULT = [
    ("mlp", "tensor", 2),
    ("blocks", "tensor", 2),
    ("llama", "tensor, recomputed", 2),
    ("vit", "tensor, accumulated", 2),
    ("gpt2", "FSDP, tensor and sequence, recomputed, accumulated", 4),
]


def planned(model, row, count):
    if model == "mixtral" and "sequence" in row:
        pytest.skip("experts read whole sequences")
    if model == "blocks" and "sequence" in row:
        pytest.skip("layers that shape heads themselves need whole sequences")
    return planning.planned(model, row, count).to_json()


@pytest.mark.parametrize("case", long_besides(DEFAULT, CASES), ids=lambda case: "{}-{}-{}".format(*case))
def test_ranks_that_share_layers_train_as_one_process(ranks, alone, case):
    model, _, count = case
    found = ranks.run(count, training.train, model=model, plan=planned(*case))[0]
    loss, gradient = apart(found, alone(model))
    assert loss < LOSS
    assert gradient < GRADIENT


CLIPPED = [("tensor and sequence", 2), ("FSDP, tensor", 4)]


@pytest.mark.parametrize("case", long_besides(CLIPPED[1:], CLIPPED), ids=lambda case: "{}-{}".format(*case))
def test_gradients_are_clipped_by_the_norm_over_both_axes(ranks, alone, case):
    row, count = case
    found = ranks.run(count, training.train, model="gpt2", plan=planned("gpt2", row, count), max_norm=0.1)[0]
    loss, gradient = apart(found, alone("gpt2", max_norm=0.1))
    assert loss < LOSS
    assert gradient < GRADIENT


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_model_that_shares_layers_is_not_compiled(ranks, when):
    for text in ranks.run(2, sharing.compiled, when=when, plan=planned("llama", "tensor", 2)):
        assert "LlamaForCausalLM is compiled, and ranks share its layers" in text
        assert "mode='data_parallel'" in text


@pytest.mark.parametrize("row", ["tensor", "FSDP, tensor"])
@pytest.mark.long
def test_a_model_that_is_compiled_from_outside_runs_as_it_is(ranks, alone, row):
    found = ranks.run(4, sharing.compiled_from_outside, plan=planned("llama", row, 4))[0]
    assert found == pytest.approx(alone("llama").losses[0], abs=LOSS)


def test_each_rank_holds_its_part_of_the_split_weights(ranks):
    whole = ranks.run(1, sharing.held_elements, plan=planned("gpt2", "tensor", 2))[0]
    first, second = ranks.run(2, sharing.held_elements, plan=planned("gpt2", "tensor", 2))
    assert first == second
    assert first["transformer.h.0.attn.c_attn.weight"] == whole["transformer.h.0.attn.c_attn.weight"] // 2
    assert first["transformer.h.0.mlp.c_fc.bias"] == whole["transformer.h.0.mlp.c_fc.bias"] // 2
    assert sum(first.values()) < 0.55 * sum(whole.values())


def test_products_of_one_input_sum_its_gradient_once(ranks):
    layers = 2
    assert ranks.run(2, sharing.gradient_sums, plan=planned("llama", "tensor", 2))[0] == 2 * layers + 1


def test_logits_stay_split_in_training_and_are_whole_in_evaluation(ranks):
    trained, evaluated, difference = ranks.run(2, sharing.logits, plan=planned("llama", "tensor", 2))[0]
    assert trained == (2, 8, 48)
    assert evaluated == (2, 8, 96)
    assert difference < 1e-5


def test_a_model_generates_on_shared_layers_what_it_generates_alone(ranks):
    plan = planned("llama", "tensor", 2)
    assert ranks.run(2, sharing.generated, plan=plan)[0] == ranks.run(1, sharing.generated, plan=plan)[0]


@pytest.mark.parametrize("kernel", long_besides(["foreach"], ["foreach", "fused"]))
def test_an_optimizer_with_kernels_over_lists_of_weights_steps_as_one_without(ranks, kernel):
    plan = planned("gpt2", "tensor", 2)
    expected = ranks.run(2, sharing.stepped, plan=plan, kernel="")[0]
    found = ranks.run(2, sharing.stepped, plan=plan, kernel=kernel)[0]
    assert all(torch.allclose(found[name], expected[name], atol=1e-7) for name in expected)


@pytest.mark.parametrize(
    ("pins", "count"), [({"tensor": 2}, 2), pytest.param({"tensor": 2, "zero": 3}, 4, marks=pytest.mark.long)]
)
def test_16_bit_layers_have_32_bit_masters_on_all_ranks(ranks, pins, count):
    model = training.llama().to(torch.bfloat16)
    words = {"pins": Megatron(**pins), "search": "recursive_programming"}
    plan = api.plan(model, training.example("llama"), f"{count}xA100", **words).to_json()
    alone, _ = ranks.run(1, sharing.in_16_bits, plan=plan)[0]
    losses, formats = ranks.run(count, sharing.in_16_bits, plan=plan)[0]
    assert formats == {torch.float32}
    assert losses == pytest.approx(alone, abs=0.2)
    assert losses[-1] < losses[0] - 0.5


def test_ranks_that_share_layers_drop_out_alike_and_groups_of_them_otherwise(ranks):
    a, b, c, d = ranks.run(4, sharing.dropped_out)
    assert a == b
    assert c == d
    assert a != c


def test_a_product_of_rows_may_leave_its_features_split(ranks):
    assert max(ranks.run(2, sharing.rows_after_rows)) < 1e-5


@pytest.mark.parametrize(
    ("what", "found", "action"),
    [
        ("module", "splits the weights of 0, a Doubling", "make the product of an nn.Linear"),
        ("positions", "7 positions cannot be split over 2 ranks", "Pad batches to multiples of 2"),
    ],
)
def test_what_layers_do_not_fit_is_refused_on_all_ranks(ranks, what, found, action):
    plan = planned("llama", "tensor and sequence", 2)
    for text in ranks.run(2, sharing.refused, what=what, plan=plan):
        assert found in text
        assert action in text

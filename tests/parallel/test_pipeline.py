"""Stages of layers on ranks: unmodified models train by microbatches, alone and with data axes, as one process does."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.labs.rank_pool import RankFailedError  # noqa: E402 - after the check for torch
from tests.matrices import long_besides  # noqa: E402 - after the check for torch
from tests.parallel import planning, staging, training  # noqa: E402 - after the check for torch
from tests.parallel.parity import GRADIENT, LOSS, apart  # noqa: E402 - after the check for torch

CASES = [(model, row) for model in training.DEEP_MODELS for row in planning.STAGED_ROWS]
CLIPPED = ["1F1B", "1F1B, FSDP", "interleaved", *planning.SHARED_STAGES]
DEFAULT = [
    ("llama of 4 layers", "1F1B"),
    ("bloom of 4 layers", "1F1B"),
    ("llama of 5 layers", "1F1B of 4"),
    ("bert of 4 layers", "interleaved, FSDP"),
    ("gpt2 of 4 layers", "GPipe, tensor and sequence, recomputed"),
]


@pytest.mark.parametrize("case", long_besides(DEFAULT, CASES), ids=lambda case: "{}-{}".format(*case))
def test_stages_train_as_one_process(ranks, alone, case):
    model, row = case
    planning.skip_beyond(model, row)
    found = ranks.run(planning.ranks_of(row), staging.train, model=model, plan=planning.staged(*case).to_json())
    loss, gradient = apart(found[0], alone(model))
    assert loss < LOSS
    assert gradient < GRADIENT
    assert all(other.losses == found[0].losses for other in found)


@pytest.mark.parametrize("number", long_besides([1], range(1, 13)))
def test_drawn_models_train_on_drawn_rows_as_one_process(ranks, alone, number):
    model = f"random {number}"
    row = list(planning.PIPELINE_ROWS)[number % len(planning.PIPELINE_ROWS)]
    plan = planning.staged(model, row)
    assert plan.beyond == ()
    found = ranks.run(planning.ranks_of(row), staging.train, model=model, plan=plan.to_json())[0]
    loss, gradient = apart(found, alone(model))
    assert loss < LOSS
    assert gradient < GRADIENT


@pytest.mark.parametrize("row", long_besides(["1F1B, FSDP"], CLIPPED))
def test_gradients_are_clipped_by_the_norm_over_all_stages_and_tied_weights_count_once(ranks, alone, row):
    plan = planning.staged("gpt2 of 4 layers", row).to_json()
    words = {"model": "gpt2 of 4 layers", "max_norm": 0.1}
    found = ranks.run(planning.ranks_of(row), staging.train, plan=plan, **words)[0]
    loss, gradient = apart(found, alone(**words))
    assert loss < LOSS
    assert gradient < GRADIENT


@pytest.mark.parametrize("row", long_besides(["FSDP"], ["DDP", "ZeRO-1, accumulated", "FSDP", "tensor"]))
@pytest.mark.parametrize("count", [1, 2])
def test_the_same_code_runs_plans_without_stages_and_in_one_process(ranks, alone, row, count):
    plan = planning.planned("gpt2", row, 2).to_json()
    found = ranks.run(count, staging.train, model="gpt2", plan=plan)[0]
    loss, gradient = apart(found, alone("gpt2"))
    assert loss < LOSS
    assert gradient < GRADIENT


def test_one_process_runs_a_plan_with_stages(ranks, alone):
    plan = planning.staged("gpt2 of 4 layers", "1F1B").to_json()
    found = ranks.run(1, staging.train, model="gpt2 of 4 layers", plan=plan)[0]
    loss, gradient = apart(found, alone("gpt2 of 4 layers"))
    assert loss < LOSS
    assert gradient < GRADIENT


MOVES = {
    "one process": ("FSDP", 1),
    "FSDP": ("FSDP", 2),
    "tensor": ("tensor", 2),
    "1F1B": ("1F1B", 2),
    "interleaved": ("interleaved", 2),
    "1F1B, FSDP": ("1F1B, FSDP", 4),
    "1F1B, tensor": ("1F1B, tensor", 4),
}
DEFAULT_MOVES = [("1F1B, FSDP", "one process"), ("tensor", "1F1B, tensor")]


def moved(ranks, name, loop, folder):
    row, count = MOVES[name]
    model = "gpt2 of 4 layers"
    plan = planning.staged(model, row) if row in planning.STAGED_ROWS else planning.planned(model, row, max(2, count))
    return ranks.run(count, loop, model=model, plan=plan.to_json(), folder=folder)[0]


@pytest.mark.parametrize(
    "move",
    long_besides(DEFAULT_MOVES, [(one, other) for one in MOVES for other in MOVES]),
    ids=lambda move: "{} to {}".format(*move),
)
def test_what_one_plan_has_saved_goes_on_in_another(ranks, tmp_path, move):
    losses, weights = moved(ranks, move[0], staging.until_saved, tmp_path)
    later, loaded, step = moved(ranks, move[1], staging.since_saved, tmp_path)
    assert step == 3
    assert weights.keys() == loaded.keys()
    assert all(torch.equal(loaded[name], weight) for name, weight in weights.items())
    assert later == pytest.approx(losses[3:], abs=1e-6)


@pytest.mark.parametrize("row", long_besides(["1F1B, FSDP"], ["1F1B, FSDP", "1F1B, tensor"]))
def test_plain_transformers_loads_what_stages_have_saved(ranks, tmp_path, row):
    import transformers

    plan = planning.staged("gpt2 of 4 layers", row).to_json()
    words = {"model": "gpt2 of 4 layers", "plan": plan, "folder": str(tmp_path)}
    weights = ranks.run(4, staging.saved_for_transformers, **words)[0]
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert type(loaded) is transformers.GPT2LMHeadModel
    assert all(torch.equal(weight, weights[name]) for name, weight in loaded.named_parameters())


def test_a_rank_holds_its_part_of_the_weights_of_its_stage(ranks):
    words = {"model": "llama of 4 layers", "plan": planning.staged("llama of 4 layers", "1F1B, tensor").to_json()}
    whole = ranks.run(1, staging.held_elements, **words)[0]
    held = ranks.run(4, staging.held_elements, **words)
    assert held[0] == held[1]
    assert held[2] == held[3]
    assert held[0].keys() | held[2].keys() == whole.keys()
    split = {name for name, elements in (held[0] | held[2]).items() if 2 * elements == whole[name]}
    assert whole.keys() - split == {name for name in whole if "norm" in name}


def test_a_rank_holds_the_weights_of_its_stage_alone(ranks):
    words = {"model": "llama of 4 layers", "plan": planning.staged("llama of 4 layers", "1F1B").to_json()}
    whole = ranks.run(1, staging.held_elements, **words)[0]
    first, last = ranks.run(2, staging.held_elements, **words)
    assert first | last == whole
    assert not first.keys() & last.keys()
    assert sum(first.values()) == pytest.approx(sum(whole.values()) / 2, rel=0.01)


def test_both_copies_of_a_tied_weight_stay_equal(ranks):
    first, last = ranks.run(2, staging.tied, plan=planning.staged("gpt2 of 4 layers", "1F1B").to_json())
    assert torch.equal(first, last)


def test_batches_may_have_other_lengths_and_are_evaluated_without_a_step(ranks):
    words = {"model": "llama of 4 layers", "plan": planning.staged("llama of 4 layers", "1F1B").to_json()}
    alone = ranks.run(1, staging.lengths, **words)[0]
    found = ranks.run(2, staging.lengths, **words)[0]
    assert found == pytest.approx(alone, abs=LOSS)


def test_a_loss_function_gets_what_the_model_returns_and_the_target(ranks):
    from jupyter_autotrain.parallel import api

    words = {"loss_fn": lambda logits: logits.sum(), "search": "recursive_programming"}
    pins = planning.Stages(pipeline=2, microbatches=2)
    plan = api.plan(staging.Plain(), (training.example("mlp")["x"],), "2xA100", pins=pins, **words).to_json()
    exact = torch.stack(ranks.run(1, staging.of_64_bits, plan=plan)[0])
    assert exact.dtype == torch.float64
    for found in ranks.run(2, staging.of_64_bits, plan=plan):
        torch.testing.assert_close(torch.stack(found), exact, atol=1e-12, rtol=0.0)
    alone = ranks.run(1, staging.with_loss_function, plan=plan)[0]
    found = ranks.run(2, staging.with_loss_function, plan=plan)
    assert found == [pytest.approx(alone, abs=LOSS)] * 2
    assert alone[-1] < alone[0]


def test_what_the_user_draws_is_alike_on_all_ranks_and_dropout_is_not(ranks):
    plan = planning.staged("llama of 4 layers", "1F1B").to_json()
    (order, dropped), (other_order, other_dropped) = ranks.run(2, staging.shuffled_alike, plan=plan)
    assert order == other_order
    assert dropped != other_dropped


@pytest.mark.long
@pytest.mark.parametrize(("how", "text"), [("raises", "ValueError: bad layer"), ("killed", "ended with -9")])
def test_a_rank_that_fails_in_a_step_ends_the_run_and_is_named(ranks, how, text):
    plan = planning.staged("llama of 4 layers", "1F1B").to_json()
    with pytest.raises(RankFailedError) as caught:
        ranks.run(2, staging.failing, plan=plan, how=how)
    assert caught.value.rank == 1
    assert text in caught.value.text


@pytest.mark.parametrize(
    ("what", "found", "action"),
    [
        ("loop", "The plan has 2 pipeline stages", "train = plan.parallelize(model, loss_fn, optimizer=optimizer)"),
        ("model", "The model has no module", "Plan for this model"),
        ("batches", "Ranks have different batches", "Draw samples alike"),
        ("call", "this rank has some of its layers only", "save_pretrained"),
    ],
)
def test_what_does_not_fit_stages_is_refused_on_all_ranks(ranks, what, found, action):
    plan = planning.staged("llama of 4 layers", "1F1B").to_json()
    for text in ranks.run(2, staging.refused, plan=plan, what=what):
        assert found in text
        assert action in text

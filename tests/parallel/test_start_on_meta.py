"""Models on the meta device: each rank reads or draws its part of the weights, and trains as one process does."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("safetensors")

from tests.matrices import long_besides  # noqa: E402 - after the check for torch
from tests.parallel import planning, staging, starting, training  # noqa: E402 - after the check for torch
from tests.parallel.parity import GRADIENT, LOSS, apart  # noqa: E402 - after the check for torch

MODELS = ("llama", "gpt2", "bert", "mixtral")
ROWS = [("DDP", 2), ("FSDP", 2), ("FSDP", 4), ("HSDP", 4), ("ZeRO-1", 2), ("tensor", 2), ("FSDP, tensor", 4)]
CASES = [(model, row, count) for model in MODELS for row, count in ROWS]
DEFAULT = [("llama", "FSDP", 2), ("gpt2", "FSDP, tensor", 4), ("bert", "DDP", 2)]
STAGED = [
    (f"{model} of 4 layers", row)
    for model in ("llama", "gpt2", "bert")
    for row in ("1F1B", "1F1B, DDP", "1F1B, FSDP", "interleaved", "1F1B, tensor")
]
HELD = [("llama", "FSDP", 2), ("llama", "FSDP", 4), ("mixtral", "FSDP", 4)]
STAGED_DEFAULT = [("gpt2 of 4 layers", "1F1B, FSDP")]


@pytest.mark.parametrize("case", long_besides(DEFAULT, CASES), ids=lambda case: "{}-{}-{}".format(*case))
def test_ranks_that_read_their_part_of_the_weights_train_as_one_process(ranks, alone, tmp_path, case):
    model, row, count = case
    starting.save(model, tmp_path)
    words = {"plan": planning.planned(model, row, count).to_json(), "replicas": planning.replicas(row)}
    found = ranks.run(count, training.train, model=model, weights=str(tmp_path), **words)[0]
    loss, gradient = apart(found, alone(model))
    assert loss < LOSS
    assert gradient < GRADIENT


@pytest.mark.parametrize("case", long_besides(STAGED_DEFAULT, STAGED), ids=lambda case: "{}-{}".format(*case))
def test_stages_that_read_their_layers_train_as_one_process(ranks, alone, tmp_path, case):
    model, row = case
    starting.save(model, tmp_path, max_shard_size="20kB")
    plan = planning.staged(model, row).to_json()
    found = ranks.run(planning.ranks_of(row), staging.train, model=model, plan=plan, weights=str(tmp_path))[0]
    loss, gradient = apart(found, alone(model))
    assert loss < LOSS
    assert gradient < GRADIENT


@pytest.mark.parametrize("case", long_besides([("llama", "FSDP", 2)], HELD), ids=lambda case: "{}-{}-{}".format(*case))
def test_no_rank_reads_or_holds_more_than_its_part(ranks, tmp_path, case):
    model, row, count = case
    starting.save(model, tmp_path, max_shard_size="20kB")
    plan = planning.planned(model, row, count).to_json()
    every = ranks.run(count, starting.read_and_held, model=model, plan=plan, folder=str(tmp_path))
    _, _, total = every[0]
    assert sum(read for read, _, _ in every) == total
    for read, held, _ in every:
        assert read < 1.1 * total / count
        assert held < 1.5 * total / count


@pytest.mark.parametrize("model", long_besides(["gpt2"], ["gpt2", "llama", "bert", "mlp", "mixtral"]))
def test_a_random_start_is_the_same_on_every_plan_and_in_one_process(ranks, model):
    plan = planning.planned(model, "FSDP", 2).to_json()
    alone = ranks.run(1, starting.begun, model=model, plan=plan)[0]
    spread = ranks.run(2, starting.begun, model=model, plan=plan)[0]
    shared = ranks.run(2, starting.begun, model=model, plan=planning.planned(model, "tensor", 2).to_json())[1]
    for found in (spread, shared):
        assert found.keys() == alone.keys()
        assert all(torch.equal(found[name], value) for name, value in alone.items())


def test_a_random_start_has_the_scales_of_the_models_own_code(ranks):
    plan = planning.planned("gpt2", "FSDP", 2).to_json()
    found = ranks.run(2, starting.begun, model="gpt2", plan=plan)[0]
    other = ranks.run(2, starting.begun, model="gpt2", plan=plan, seed=1)[0]
    torch.manual_seed(0)
    own = {name: weight.detach() for name, weight in training.gpt2().named_parameters()}
    for name, weight in own.items():
        assert float(found[name].std()) == pytest.approx(float(weight.std()), rel=0.2, abs=1e-3)
        assert float(weight.std()) < 1e-3 or not torch.equal(found[name], other[name])
    assert not torch.equal(found["transformer.h.0.mlp.c_fc.weight"], found["transformer.h.1.mlp.c_fc.weight"])


def test_what_files_of_the_body_lack_is_drawn_and_the_rest_is_read_in_the_models_format(ranks, tmp_path):
    saved = starting.save_body(tmp_path)
    (found, told), (_, silent) = ranks.run(2, starting.begun_from_pretrained, folder=str(tmp_path))
    assert "The files have no classifier.bias, classifier.weight, which are drawn at random." in told
    assert not silent
    assert all(torch.equal(found[name], weight.to(torch.bfloat16)) for name, weight in saved.items())
    assert 0.01 < float(found["classifier.weight"].float().std()) < 0.03
    assert not found["classifier.bias"].any()


@pytest.mark.parametrize(
    ("what", "found", "action"),
    [
        ("layers", "has no model.layers.2.input_layernorm.weight, ", "Give the folder of this model's weights"),
        ("shape", "lm_head.weight is [96, 32] in", "Make the model of the configuration"),
        ("folder", "nowhere has no model.safetensors and no", "snapshot_download"),
        ("values", "LlamaForCausalLM has values already", "Make it under `with torch.device('meta'):`"),
        ("some", "is on the meta device, and lm_head.weight has values", "Make all of it under"),
        ("drawn", "Nothing draws or computes scale", "weights=folder"),
    ],
)
def test_a_start_that_cannot_be_is_refused_on_all_ranks(ranks, tmp_path, what, found, action):
    starting.save("llama", tmp_path)
    for text in ranks.run(2, starting.refused, what=what, folder=str(tmp_path)):
        assert found in text
        assert action in text

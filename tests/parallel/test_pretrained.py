"""Folders that a model on ranks is saved to for plain transformers."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from jupyter_autotrain.parallel.apply.recipe import Recipe  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.cost.memory import ZeroLevel  # noqa: E402 - after the check for torch
from tests.parallel import loops, planning, training  # noqa: E402 - after the check for torch


@pytest.mark.parametrize(
    ("model", "row", "count"),
    [("gpt2", "DDP", 2), ("gpt2", "FSDP", 2), ("llama", "FSDP", 1), ("llama", "HSDP", 4), ("gpt2", "tensor", 2)],
)
def test_plain_transformers_loads_what_ranks_have_saved(ranks, tmp_path, model, row, count):
    plan = planning.planned(model, row, max(count, 2)).to_json()
    words = {"model": model, "plan": plan, "folder": str(tmp_path), "replicas": planning.replicas(row)}
    weights = ranks.run(count, loops.saved_for_transformers, **words)[0]
    kind = type(training.MODELS[model]())
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert type(loaded) is kind
    assert loaded.config.architectures == [kind.__name__]
    found = dict(loaded.named_parameters())
    assert found.keys() == weights.keys()
    assert all(torch.equal(found[name], weight) for name, weight in weights.items())
    assert list(tmp_path.glob("*.safetensors"))


@pytest.mark.parametrize("zero", [ZeroLevel.NONE, ZeroLevel.PARAMETERS])
def test_16_bit_models_are_saved_in_16_bits(ranks, tmp_path, zero):
    ranks.run(2, loops.saved_in_16_bits, zero=zero, folder=str(tmp_path))
    assert transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype="auto").dtype == torch.bfloat16


def test_a_model_without_save_pretrained_is_refused(ranks, tmp_path):
    told = ranks.run(1, loops.saved_without_transformers, recipe=Recipe(1), folder=str(tmp_path))[0]
    assert "Mlp has no save_pretrained." in told
    assert "get_model_state_dict" in told

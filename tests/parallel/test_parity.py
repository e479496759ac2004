"""Plans that run: three steps of unmodified models on several ranks have the losses and gradients of one process."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.matrices import long_besides
from tests.parallel import planning, training
from tests.parallel.parity import GRADIENT, LOSS, apart

CASES = [(model, row, count) for model in training.MODELS for row in planning.ROWS for count in (2, 4)]
DEFAULT = [
    ("mlp", "ZeRO-1, accumulated", 2),
    ("gpt2", "DDP, recomputed", 2),
    ("llama", "ZeRO-2, accumulated", 2),
    ("bert", "FSDP, attention recomputed", 2),
    ("vit", "DDP, accumulated", 2),
    ("llama", "HSDP", 4),
]


@pytest.mark.parametrize("case", long_besides(DEFAULT, CASES), ids=lambda case: "{}-{}-{}".format(*case))
def test_ranks_train_as_one_process(ranks, alone, case):
    model, row, count = case
    if row == "HSDP" and count <= planning.HSDP_REPLICAS:
        pytest.skip("one rank per replica shards nothing")
    plan = planning.planned(model, row, count)
    norms = count if model == "cnn" else 1  # batch statistics are of each rank's own samples
    found = ranks.run(count, training.train, model=model, plan=plan.to_json(), replicas=planning.replicas(row))[0]
    loss, gradient = apart(found, alone(model, statistics_over=norms))
    assert loss < LOSS
    assert gradient < GRADIENT
    assert found.rate == alone(model, statistics_over=norms).rate


@pytest.mark.long
@pytest.mark.parametrize("row", planning.ROWS)
def test_a_compiled_model_trains_as_one_process(ranks, alone, row):
    count = 4 if row == "HSDP" else 2
    words = {"plan": planning.planned("llama", row, count).to_json(), "replicas": planning.replicas(row)}
    found = ranks.run(count, training.train, model="llama", compiled=True, **words)[0]
    loss, gradient = apart(found, alone("llama"))
    assert loss < LOSS
    assert gradient < GRADIENT


@pytest.mark.parametrize("row", ["DDP, accumulated", "FSDP, recomputed, accumulated"])
def test_gradients_are_clipped_by_the_norm_over_all_ranks(ranks, alone, row):
    plan = planning.planned("gpt2", row, 2)
    found = ranks.run(2, training.train, model="gpt2", plan=plan.to_json(), max_norm=0.1)[0]
    loss, gradient = apart(found, alone("gpt2", max_norm=0.1))
    assert loss < LOSS
    assert gradient < GRADIENT


def test_one_process_runs_the_same_code_without_a_process_group(ranks, alone):
    plan = planning.planned("gpt2", "FSDP, recomputed, accumulated", 2)
    found = ranks.run(1, training.train, model="gpt2", plan=plan.to_json())[0]
    loss, gradient = apart(found, alone("gpt2"))
    assert loss < LOSS
    assert gradient < GRADIENT

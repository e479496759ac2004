"""Fused projections: each rank of a tensor axis has its share of each of them, and trains as one process."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.matrices import long_besides  # noqa: E402 - after the check for torch
from tests.parallel import loops, planning, sharing, staging, starting, training  # noqa: E402 - after the check for torch
from tests.parallel.parity import GRADIENT, LOSS, apart  # noqa: E402 - after the check for torch

MODELS = ("phi3", "phi3 without groups", "grouped")
WHOLE = [row for row in planning.TENSOR_ROWS if "sequence" not in row]
ROWS = {model: WHOLE if model == "grouped" else planning.TENSOR_ROWS for model in MODELS}  # it shapes heads itself
CASES = [(model, row, count) for model in MODELS for row in ROWS[model] for count in (2, 4)]
DEFAULT = [("phi3", "FSDP, tensor and sequence, recomputed, accumulated", 4)]
QKV = "model.layers.0.self_attn.qkv_proj.weight"


def planned(model, row, count):
    return planning.planned(model, row, count).to_json()


@pytest.mark.parametrize("case", long_besides(DEFAULT, CASES), ids=lambda case: "{}-{}-{}".format(*case))
def test_ranks_that_share_fused_projections_train_as_one_process(ranks, alone, case):
    model, _, count = case
    found = ranks.run(count, training.train, model=model, plan=planned(*case))[0]
    loss, gradient = apart(found, alone(model))
    assert loss < LOSS
    assert gradient < GRADIENT


def test_each_rank_holds_its_share_of_each_projection(ranks):
    plan = planned("phi3", "tensor", 2)
    first, second = ranks.run(2, sharing.held_elements, plan=plan, model="phi3")
    assert first == second
    assert first[QKV] == (32 + 16 + 16) * 32 // 2
    assert first["model.layers.0.mlp.gate_up_proj.weight"] == 2 * 64 * 32 // 2


@pytest.mark.long
@pytest.mark.parametrize("row", ["1F1B, tensor", "1F1B, FSDP, tensor and sequence"])
def test_stages_that_share_fused_projections_train_as_one_process(ranks, alone, row):
    plan = planning.staged("phi3 of 4 layers", row).to_json()
    found = ranks.run(planning.ranks_of(row), staging.train, model="phi3 of 4 layers", plan=plan)[0]
    loss, gradient = apart(found, alone("phi3 of 4 layers"))
    assert loss < LOSS
    assert gradient < GRADIENT


MOVES = [(("tensor", 2), ("tensor", 1)), (("FSDP, tensor", 4), ("tensor", 2)), (("tensor", 1), ("FSDP, tensor", 4))]


@pytest.mark.long
@pytest.mark.parametrize("move", MOVES, ids=str)
def test_fused_projections_that_one_plan_has_saved_go_on_in_another(ranks, tmp_path, move):
    """With one rank the plan for two runs in one process."""
    (row, count), (later_row, later_count) = move
    words = {"model": "phi3", "folder": tmp_path}
    losses, weights = ranks.run(count, loops.until_saved, plan=planned("phi3", row, max(2, count)), **words)[0]
    later_plan = planned("phi3", later_row, max(2, later_count))
    later, loaded, step = ranks.run(later_count, loops.since_saved, plan=later_plan, **words)[0]
    assert step == 3
    assert all(torch.equal(loaded[name], weight) for name, weight in weights.items())
    assert later == pytest.approx(losses[3:], abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("case", [("tensor", 2), ("FSDP, tensor", 4)], ids=str)
def test_ranks_that_read_their_share_of_fused_projections_train_as_one_process(ranks, alone, tmp_path, case):
    row, count = case
    starting.save("phi3", tmp_path)
    words = {"model": "phi3", "plan": planned("phi3", row, count), "weights": str(tmp_path)}
    loss, gradient = apart(ranks.run(count, training.train, **words)[0], alone("phi3"))
    assert loss < LOSS
    assert gradient < GRADIENT


@pytest.mark.long
def test_fused_projections_are_saved_for_transformers_in_their_order(ranks, tmp_path):
    from transformers import Phi3ForCausalLM

    words = {"model": "phi3", "plan": planned("phi3", "FSDP, tensor", 4), "folder": tmp_path, "replicas": 1}
    expected = ranks.run(4, loops.saved_for_transformers, **words)[0]
    found = dict(Phi3ForCausalLM.from_pretrained(tmp_path).named_parameters())
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())

"""Experts shared out: unmodified mixtures train on an expert axis, alone and with a data axis, as one process does."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from jupyter_autotrain.errors import PlanError  # noqa: E402 - after the check for torch
from tests.matrices import long_besides  # noqa: E402 - after the check for torch
from tests.parallel import loops, planning, sharing, starting, training  # noqa: E402 - after the check for torch
from tests.parallel.parity import GRADIENT, LOSS, apart  # noqa: E402 - after the check for torch

CASES = [(model, row, count) for model in training.MIXTURES for row in planning.EXPERT_ROWS for count in (2, 4)]
DEFAULT = [
    ("mixtral", "expert", 2),
    ("qwen moe", "FSDP, expert, recomputed, accumulated", 4),
    ("one-sided mixtral", "ZeRO-1, expert", 2),
]


def planned(model, row, count):
    return planning.planned(model, row, count).to_json()


@pytest.mark.parametrize("case", long_besides(DEFAULT, CASES), ids=lambda case: "{}-{}-{}".format(*case))
def test_ranks_that_share_out_experts_train_as_one_process(ranks, alone, case):
    model, _, count = case
    found = ranks.run(count, training.train, model=model, plan=planned(*case))[0]
    loss, gradient = apart(found, alone(model))
    assert loss < LOSS
    assert gradient < GRADIENT


def test_a_rank_without_tokens_trains_along(alone):
    (first, *_) = alone("one-sided mixtral").gradients
    stacked = first["model.layers.0.mlp.experts.down_proj"]
    assert stacked[:2].abs().amax((1, 2)).min() > 0
    assert stacked[2:].abs().max() == 0


@pytest.mark.long
def test_gradients_are_clipped_by_the_norm_over_all_experts(ranks, alone):
    found = ranks.run(4, training.train, model="mixtral", plan=planned("mixtral", "FSDP, expert", 4), max_norm=0.1)[0]
    loss, gradient = apart(found, alone("mixtral", max_norm=0.1))
    assert loss < LOSS
    assert gradient < GRADIENT


@pytest.mark.long
def test_experts_are_spread_over_all_ranks(ranks, alone):
    plan = planning.expert_planned("mixtral", "ZeRO-1, expert", 4, ways=4)
    found = ranks.run(4, training.train, model="mixtral", plan=plan.to_json())[0]
    loss, gradient = apart(found, alone("mixtral"))
    assert loss < LOSS
    assert gradient < GRADIENT


@pytest.mark.long
def test_losses_that_keep_experts_evenly_used_are_of_each_ranks_own_tokens(ranks):
    """So they are with samples split in any other way: they are no mean over samples."""
    plain, split = (planned("mixtral", row, 2) for row in ("DDP", "expert"))
    other, found = (ranks.run(2, training.train, model="balanced mixtral", plan=plan)[0] for plan in (plain, split))
    loss, gradient = apart(found, other)
    assert loss < LOSS
    assert gradient < GRADIENT


def test_each_rank_holds_its_experts_alone(ranks):
    plan = planned("mixtral", "expert", 2)
    whole = ranks.run(1, sharing.held_elements, plan=plan, model="mixtral")[0]
    for held in ranks.run(2, sharing.held_elements, plan=plan, model="mixtral"):
        for name, count in held.items():
            assert count == whole[name] // (2 if ".experts." in name else 1)


MOVES = [
    (("FSDP, expert", 2), ("DDP", 1)),
    (("DDP", 1), ("FSDP, expert", 4)),
    (("FSDP, expert", 4), ("expert", 2)),
    (("ZeRO-1, expert", 2), ("FSDP", 4)),
]


@pytest.mark.parametrize("move", long_besides(MOVES[:1], MOVES), ids=lambda move: "{} to {}".format(*move))
def test_experts_that_one_plan_has_saved_go_on_in_another(ranks, tmp_path, move):
    (before, count), (after, later_count) = move
    words = {"model": "mixtral", "folder": tmp_path, "replicas": 1}
    plan = planned("mixtral", before, max(2, count))
    losses, weights = ranks.run(count, loops.until_saved, plan=plan, **words)[0]
    plan = planned("mixtral", after, max(2, later_count))
    later, loaded, step = ranks.run(later_count, loops.since_saved, plan=plan, **words)[0]
    assert step == 3
    assert all(torch.equal(loaded[name], weight) for name, weight in weights.items())
    assert later == pytest.approx(losses[3:], abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("case", [("FSDP, expert", 2), ("expert", 4)], ids=str)
def test_ranks_that_read_their_experts_train_as_one_process(ranks, alone, tmp_path, case):
    starting.save("mixtral", tmp_path)
    plan = planned("mixtral", *case)
    found = ranks.run(case[1], training.train, model="mixtral", weights=str(tmp_path), plan=plan)[0]
    loss, gradient = apart(found, alone("mixtral"))
    assert loss < LOSS
    assert gradient < GRADIENT


REPLICATED = [
    ("mixtral", "FSDP, expert", 4),
    ("qwen moe", "FSDP, expert, recomputed, accumulated", 4),
    ("one-sided mixtral", "ZeRO-1, expert", 4),
    ("mixtral", "FSDP, expert", 8),
]


@pytest.mark.parametrize("case", long_besides(REPLICATED[:1], REPLICATED), ids=lambda case: "{}-{}-{}".format(*case))
def test_replicas_that_each_have_all_experts_train_as_one_process(ranks, alone, case):
    """Of 4 ranks 2 replicas by 2 that share out experts; of 8 also 2 that share out what these have."""
    model, _, count = case
    plan = planned(*case)
    found = ranks.run(count, training.train, model=model, plan=plan, replicas=2)[0]
    loss, gradient = apart(found, alone(model))
    assert loss < LOSS
    assert gradient < GRADIENT


def test_a_replica_has_all_experts():
    with pytest.raises(PlanError, match="4 replicas of a plan whose experts lie on 2 of 4 ranks"):
        planning.planned("mixtral", "FSDP, expert", 4).apply(None, None, None, replicas=4)

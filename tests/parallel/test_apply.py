"""Tests of `plan.apply` beside the mathematics: samples, random numbers, formats, states, and refusals."""

import re
from itertools import chain

import pytest

torch = pytest.importorskip("torch")

from jupyter_autotrain.parallel import api  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.cost.memory import ZeroLevel  # noqa: E402 - after the check for torch
from tests.labs.rank_pool import RankFailedError  # noqa: E402 - after the check for torch
from tests.matrices import long_besides  # noqa: E402 - after the check for torch
from tests.parallel import loops, planning, training  # noqa: E402 - after the check for torch

KINDS = long_besides(["loader", "stream"], ["loader", "shuffled", "workers", "list", "stream"])


def given_by(ranks, kind, samples, microbatches=1):
    """Per rank its epochs of parts; what rank 0 is told; the length."""
    found = ranks.run(2, loops.samples_of, kind=kind, samples=samples, microbatches=microbatches)
    assert found[1][1] == []
    return [epochs for epochs, _, _ in found], found[0][1], found[0][2]


@pytest.mark.parametrize("kind", KINDS)
def test_ranks_get_equal_parts_of_each_batch_and_together_all_samples_once(ranks, kind):
    (first, second), told, length = given_by(ranks, kind, 32, microbatches=2)
    for mine, yours in zip(first, second, strict=True):
        assert [len(part) for part in (*mine, *yours)] == [2] * 16
        assert sorted(chain(*mine, *yours)) == list(range(32))
    assert told == []
    assert length in {8, None}


def test_batches_are_those_of_one_process(ranks):
    (first, second), _, _ = given_by(ranks, "loader", 16)
    assert first[0] == [[0, 1, 2, 3], [8, 9, 10, 11]]
    assert second[0] == [[4, 5, 6, 7], [12, 13, 14, 15]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_last_batch_that_cannot_be_cut_evenly_repeats_samples_and_no_rank_waits(ranks, kind):
    (first, second), told, _ = given_by(ranks, kind, 8 + 5)
    assert [len(part) for part in first[0]] == [len(part) for part in second[0]] == [4, 3]
    together = list(chain(*first[0], *second[0]))
    assert sorted(set(together)) == list(range(13))
    assert len(together) == 14
    if kind not in {"list", "stream"}:
        assert told == [
            "The last batch of an epoch has 5 samples, which 2 parts do not divide: 1 of them count twice. "
            "drop_last=True leaves it out."
        ]


def test_ranks_that_were_seeded_alike_drop_out_other_units(ranks):
    first, second = ranks.run(2, loops.dropped_out)
    assert first != second


@pytest.mark.parametrize(("zero", "count"), [(ZeroLevel.NONE, 1), (ZeroLevel.NONE, 2), (ZeroLevel.PARAMETERS, 2)])
def test_16_bit_weights_have_32_bit_masters_that_keep_small_steps(ranks, zero, count):
    value, held, made = ranks.run(count, loops.master_weights, zero=zero, ranks=2)[0]
    assert (held, made) == (torch.float32, torch.bfloat16)
    assert value == pytest.approx(1 - 5 * 1e-4, abs=1e-6)


@pytest.mark.parametrize("zeros", [(ZeroLevel.NONE, ZeroLevel.PARAMETERS), (ZeroLevel.PARAMETERS, ZeroLevel.NONE)])
def test_a_checkpoint_of_16_bit_weights_keeps_what_their_masters_have(ranks, tmp_path, zeros):
    for zero, steps in zip(zeros, (5, 10), strict=True):
        value, _, _ = ranks.run(2, loops.master_weights, zero=zero, ranks=2, folder=tmp_path)[0]
        assert value == pytest.approx(1 - steps * 1e-4, abs=1e-6)


def test_a_model_that_is_told_to_forget_keeps_what_is_accumulated(ranks):
    plan = planning.planned("mlp", "DDP, accumulated", 2).to_json()
    expected = ranks.run(1, training.train, model="mlp")[0].gradients[0]
    found = ranks.run(2, loops.forgetful, plan=plan)[0]
    assert all(torch.allclose(found[name], expected[name], atol=1e-6) for name in expected)


@pytest.mark.parametrize("zero", [0, 3])
def test_only_layers_that_recompute_run_again_in_the_backward_pass(ranks, zero):
    words = {"model": "gpt2", "count": 2}
    kept = planning.planned(**words, row="DDP")
    again = planning.planned(**words, row="FSDP, recomputed, accumulated" if zero else "DDP, recomputed")
    assert ranks.run(2, loops.forward_passes, plan=kept.to_json())[0] == 2
    assert ranks.run(2, loops.forward_passes, plan=again.to_json())[0] == 4 * again.microbatches


@pytest.mark.parametrize("zero", [ZeroLevel.NONE, ZeroLevel.OPTIMIZER, ZeroLevel.PARAMETERS])
def test_an_optimizer_with_a_past_goes_on(ranks, zero):
    assert max(ranks.run(2, loops.moved_states, zero=zero)) < 1e-6


@pytest.mark.parametrize("zero", [0, 1, 3])
def test_weights_that_get_no_gradient_stay_as_they_are(ranks, zero):
    words = {"mode": "data_parallel", "pins": {"zero": zero}, "search": "recursive_programming"}
    plan = api.plan(loops.Skipping(), training.example("mlp"), "2xA100", **words)
    assert ranks.run(2, loops.skipped, plan=plan.to_json())[0]


def test_rank_0_prints_once_what_a_step_takes_beside_what_is_predicted(ranks):
    words = {"mode": "data_parallel", "pins": {"microbatches": 2}, "search": "recursive_programming"}
    plan = api.plan(training.Mlp(), training.example("mlp"), "2xA100", **words)
    first, second = ranks.run(2, loops.printed, plan=plan.to_json())
    assert re.fullmatch(r"autotrain: a step takes [\d.]+ m?s, predicted [\d.]+ (m|µ)s on 2xA100.*\n", first)
    assert second == ""
    assert ranks.run(1, loops.printed, plan=plan.to_json()) == [""]


@pytest.mark.parametrize(
    ("what", "found", "action"),
    [
        ("batch", "A batch of 6 samples cannot be cut into 4 equal parts", "Use a batch size that 4 divides"),
        ("scheduler", "has a learning-rate scheduler, and the plan accumulates 2", "schedulers=[scheduler]"),
        ("late scheduler", "has a learning-rate scheduler, and the plan accumulates 2", "Make it before, and give it"),
        ("optimizer", "1 of the optimizer's parameters are not the model's", "make the optimizer from"),
        ("processes", "The plan is for 3 processes, and 2 run", "workers_per_node: 3"),
    ],
)
def test_what_does_not_fit_the_plan_is_refused_on_all_ranks(ranks, what, found, action):
    for text in ranks.run(2, loops.refused, what=what):
        assert found in text
        assert action in text


@pytest.mark.parametrize(
    ("how", "text"),
    [pytest.param("raises", "ValueError: bad batch", marks=pytest.mark.long), ("killed", "ended with -9")],
)
def test_a_rank_that_fails_ends_the_run_and_is_named(ranks, how, text):
    with pytest.raises(RankFailedError) as caught:
        ranks.run(2, loops.failing, rank=1, how=how)
    assert caught.value.rank == 1
    assert text in caught.value.text

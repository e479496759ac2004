"""Checkpoints of a plan, loaded on other plans and in one process: the training goes on as if it had not stopped."""

from functools import cache

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.matrices import long_besides  # noqa: E402 - after the check for torch
from tests.parallel import loops, planning  # noqa: E402 - after the check for torch

PLANS = {
    "one process": ("DDP", 1),
    "DDP": ("DDP", 2),
    "ZeRO-1, accumulated": ("ZeRO-1, accumulated", 2),
    "FSDP": ("FSDP", 4),
    "FSDP, recomputed, accumulated": ("FSDP, recomputed, accumulated", 2),
    "HSDP": ("HSDP", 4),
    "tensor": ("tensor", 2),
    "FSDP, tensor and sequence": ("FSDP, tensor and sequence, recomputed, accumulated", 4),
}
MOVES = [(one, other) for one in PLANS for other in PLANS]
DEFAULT = [
    ("DDP", "FSDP, recomputed, accumulated"),
    ("FSDP, recomputed, accumulated", "one process"),
    ("one process", "ZeRO-1, accumulated"),
    ("FSDP, tensor and sequence", "one process"),
    ("DDP", "tensor"),
]


def run(ranks, name, loop, folder):
    row, count = PLANS[name]
    plan = planning.planned("gpt2", row, max(2, count)).to_json()
    return ranks.run(count, loop, model="gpt2", plan=plan, folder=folder, replicas=planning.replicas(row))


@pytest.fixture(scope="module")
def saved(ranks, tmp_path_factory):
    """Plan → folder of a checkpoint after three steps, losses of five steps, weights as saved."""

    @cache
    def save(name):
        folder = tmp_path_factory.mktemp("checkpoints")
        return folder, *run(ranks, name, loops.until_saved, folder)[0]

    return save


@pytest.mark.parametrize("move", long_besides(DEFAULT, MOVES), ids=lambda move: "{} to {}".format(*move))
def test_what_one_plan_has_saved_goes_on_in_another(ranks, saved, move):
    folder, losses, weights = saved(move[0])
    later, loaded, step = run(ranks, move[1], loops.since_saved, folder)[0]
    assert step == 3
    assert all(torch.equal(loaded[name], weight) for name, weight in weights.items())
    assert later == pytest.approx(losses[3:], abs=1e-6)

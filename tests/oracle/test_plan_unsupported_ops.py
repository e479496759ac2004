"""A plan whose work nobody could price is not called proved, wherever it is shown."""

import json
from math import inf

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 - after the check for torch

from jupyter_autotrain.parallel import api  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.plan import Plan  # noqa: E402 - after the check for torch


class Spectral(nn.Module):
    """Eigenvalues, for which there is no rule, beside products of the given width."""

    def __init__(self, width, matrix):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.matrix = matrix

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return torch.linalg.eigvalsh(x[:, : self.matrix**2].view(-1, self.matrix, self.matrix))


def planned(width, matrix, batch=64):
    with torch.device("meta"):
        model = Spectral(width, matrix)
    return api.plan(model, torch.empty(batch, width, device="meta"), "8xA100")


@pytest.fixture(scope="module")
def guessed():
    return planned(1024, 32)


def test_a_plan_with_much_unknown_work_is_not_called_proved_and_names_the_ops(guessed):
    assert guessed.gap == inf
    assert list(guessed.unsupported_work) == ["_linalg_eigh"]
    assert 0.01 < guessed.unsupported_work["_linalg_eigh"] <= 1
    first = repr(guessed).splitlines()[1]
    assert "not proved" in first
    assert "_linalg_eigh" in first
    assert "proved best" not in repr(guessed) + guessed.to_html()
    assert "not proved" in guessed.to_html()


def test_its_view_and_its_file_say_so_too(guessed):
    view = guessed.view()
    assert view["gap"] is None
    assert view["unsupported_work"] == dict(guessed.unsupported_work)
    saved = guessed.to_json()
    assert json.loads(saved)["gap"] is None
    assert Plan.from_json(saved).gap == inf
    assert Plan.from_json(saved).unsupported_work == guessed.unsupported_work


def test_a_little_unknown_work_leaves_the_proof_standing():
    found = planned(16384, 2, batch=8192)
    assert 0 < sum(found.unsupported_work.values()) < 0.01
    assert found.gap < inf


def test_a_recurrent_model_is_priced_and_proved():
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(1000, 256)
            self.cells = nn.LSTM(256, 512, 2)
            self.head = nn.Linear(512, 1000)

        def forward(self, ids):
            return self.head(self.cells(self.embed(ids))[0])

    with torch.device("meta"):
        model = Tagger()
    found = api.plan(model, torch.empty(128, 64, dtype=torch.long, device="meta"), "8xA100")
    flops = sum(op.flops_forward for op in found.graph.ops if op.family == "recurrent")
    assert flops == 2 * 64 * 128 * 4 * 512 * (256 + 512 + 512 + 512)
    assert found.unsupported_work == {}
    assert found.gap == found.solution.gap

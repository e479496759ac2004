"""A model that keeps an input through a view of it (flattened targets of a loss) can be priced."""

import pytest


@pytest.fixture
def scorer():
    torch = pytest.importorskip("torch")

    class Scorer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(64, 32)
            self.layers = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(3))
            self.head = torch.nn.Linear(32, 64)

        def forward(self, ids, targets):
            x = self.embed(ids)
            for layer in self.layers:
                x = x + layer(x)
            return torch.nn.functional.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())

    return Scorer(), torch.zeros(16, 8, dtype=torch.long)


def test_an_input_that_is_saved_through_a_view_is_charged_to_its_first_reader(scorer):
    from jupyter_autotrain.parallel.api import plan

    model, ids = scorer
    found = plan(model, (ids, ids), "4xA100", search="recursive_programming")
    kept = sum(t.size_bytes for t in found.graph.tensors if t.kind == "input")
    assert found.cost.ranks[0].activation_bytes >= kept / 4

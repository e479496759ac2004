"""Tensors moved away from a device and back, in place."""

from __future__ import annotations

import pytest

from jupyter_autotrain.agent.session import offload

torch = pytest.importorskip("torch")


@pytest.fixture
def alive(monkeypatch):
    """Return the tensors that are found, instead of all of this process."""
    found = []
    monkeypatch.setattr(offload.gc, "get_objects", lambda: found)
    return found


def test_a_training_goes_on_as_if_nothing_had_been_moved(alive):
    def losses(*, moved):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        found = []
        for _ in range(4):
            loss = model(torch.ones(2, 3)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
            if moved:
                state = [one["momentum_buffer"] for one in optimizer.state.values()]
                alive[:] = [*model.parameters(), *state]
                moved = offload.away("cpu", "cpu")
                assert len(moved) == 2 * 3  # weights, gradients and momentum of two parameters
                offload.back(moved)
        return found

    assert losses(moved=True) == losses(moved=False)


def test_tensors_that_share_memory_share_it_again(alive):
    base = torch.arange(6.0).reshape(2, 3)
    view = base[:, 1]
    alive[:] = [base, view]
    offload.back(offload.away("cpu", "cpu"))
    base[0, 1] = 50.0
    assert view.tolist() == [50.0, 4.0]


def test_what_is_on_another_device_stays_where_it_is(alive):
    alive[:] = [torch.ones(3)]
    assert offload.away("cuda") == []

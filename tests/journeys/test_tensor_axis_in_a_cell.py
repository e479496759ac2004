"""Layers that two workers of a cell share: the loop of one process, unchanged, and its losses."""

import pytest

from tests.journeys.test_pipeline_in_a_cell import MODEL, losses, sent

pytest.importorskip("torch")
pytest.importorskip("transformers")

LOOP = """
model = network()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
batches = [{"input_ids": one, "labels": one} for one in ids]
model, optimizer, loader = plan.apply(model, optimizer, batches)
for step, part in enumerate(loader):
    optimizer.zero_grad()
    loss = model(**part).loss
    loss.backward()
    optimizer.step()
    report(step=step, all_ranks=True, loss=loss.item())
"""
HELD = """
weight = model.transformer.h[0].mlp.c_fc.weight
print("holds", weight.to_local().shape[1], "of", weight.shape[1], "columns")
"""


@pytest.mark.long
@pytest.mark.timeout(600)
def test_two_workers_that_share_layers_have_the_losses_of_one(notebook):
    notebook.run(MODEL)[0].raise_error()
    alone = losses(sent(notebook, "alone", "workers: 1", LOOP))
    shared = sent(notebook, "shared", "workers: 2, mesh: {tensor: 2}", LOOP + HELD)
    assert len(alone) == 5
    assert losses(shared) == pytest.approx(alone, abs=1e-5)
    assert all("holds 64 of 128 columns" in shared.logs(1, rank=rank) for rank in (0, 1))

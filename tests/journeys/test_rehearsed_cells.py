"""`%%autotrain --rehearse`: a cell for many workers is checked in one process before they are queued for."""

import pytest

pytest.importorskip("torch")

CELL = """
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
distributed.init_process_group("gloo")
net = DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    loss = net(torch.ones(3, 4)).sum()
    loss.backward()
    optimizer.step()
    FAULT
    report(loss=loss.item())
"""


def rehearsed(notebook, fault, workers=64):
    header = f"resources: {{workers_per_node: {workers}}}\nobjective: min loss"
    cell = CELL.replace("FAULT", fault)
    return notebook.run(f"%%autotrain work --rehearse\n{header}\n---\n{cell}")


def test_a_collective_of_rank_0_alone_is_named_before_64_workers_are_started(notebook):
    _, shown = rehearsed(notebook, "if rank == 0: distributed.barrier()")
    assert "Rehearsed ranks 0, 1, 32, 63 of 64: faults." in shown
    assert "Rank 0 does barrier" in shown
    assert notebook.value("_").state == "FAILED"
    assert notebook.value("_").record.spec.resources.ranks == 1


def test_a_cell_of_one_worker_has_nothing_to_rehearse(notebook):
    result, _ = rehearsed(notebook, "pass", workers=1)
    assert "The cell has one worker" in str(result.error_in_exec)


STAGES = """
import torch

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(16, 32)
        self.down = torch.nn.Linear(32, 16)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(64, 16)
        self.layers = torch.nn.ModuleList(Block() for _ in range(4))
        self.head = torch.nn.Linear(16, 64)

    def forward(self, ids, labels):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        return torch.nn.functional.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())

net = Net()
ids = torch.zeros(16, 8, dtype=torch.long)
batch = {"ids": ids, "labels": ids}
"""
STEPS = """
train = plan.parallelize(net, optimizer=torch.optim.AdamW(net.parameters()))
FAULT
for step in range(3):
    report(step=step, loss=train.step(batch).item())
"""


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        pytest.param("pass", "Rehearsed ranks 0, 1, 2, 3 of 4: no fault.", marks=pytest.mark.long),
        ("if rank == 3: net.layers[3].up = torch.nn.Linear(8, 32)", "Rank 3 fails at cell line"),
    ],
)
def test_pipeline_stages_of_a_cell_are_rehearsed_by_one_worker(notebook, fault, told):
    notebook.run(STAGES)[0].raise_error()
    header = "parallel: {workers: 4, mesh: {pipeline: 2, data: 2}, model: net, inputs: batch}"
    cell = STEPS.replace("FAULT", fault)
    result, shown = notebook.run(f"%%autotrain stages --rehearse\n{header}\n---\n{cell}")
    result.raise_error()
    experiment = notebook.value("_")
    assert told in shown
    assert experiment.state == ("SUCCEEDED" if fault == "pass" else "FAILED")
    assert experiment.record.spec.resources.ranks == 1

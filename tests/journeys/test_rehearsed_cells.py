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

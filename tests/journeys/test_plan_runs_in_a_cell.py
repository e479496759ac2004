"""A plan that runs in a cell: the loop of one process, unchanged, in the workers of a trial."""

import pytest

pytest.importorskip("torch")

MODEL = """
import torch
import jupyter_autotrain as at
from torch.utils.data import DataLoader, TensorDataset

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(3))
        self.head = torch.nn.Linear(64, 10)

    def forward(self, x, y):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return torch.nn.functional.cross_entropy(self.head(x), y)

made = torch.Generator().manual_seed(0)
samples = TensorDataset(torch.randn(80, 64, generator=made), torch.randint(10, (80,), generator=made))
example = (torch.zeros(16, 64), torch.zeros(16, dtype=torch.long))
"""

RESUMED = """
import os, signal
torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(samples, batch_size=16, shuffle=True, generator=torch.Generator().manual_seed(1))
model, optimizer, loader = plan.apply(model, optimizer, loader)
resumed = plan.load_checkpoint(checkpoint.path, model, optimizer, loader)
step = resumed or 0
for x, y in loader:
    optimizer.zero_grad()
    loss = model(x, y)
    if step == 3 and resumed is None and rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    loss.backward()
    optimizer.step()
    report(step=step, all_ranks=True, loss=loss.item())
    step += 1
    plan.save_checkpoint(checkpoint.path, model, optimizer, loader, step=step)
"""

LOOP = """
torch.manual_seed(0)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(samples, batch_size=16, shuffle=True, generator=torch.Generator().manual_seed(1))
model, optimizer, loader = plan.apply(model, optimizer, loader)
for step, (x, y) in enumerate(loader):
    assert len(x) == 16 // world_size
    optimizer.zero_grad()
    loss = model(x, y)
    loss.backward()
    optimizer.step()
    report(step=step, all_ranks=True, loss=loss.item())
"""


@pytest.fixture
def with_plan(notebook):
    def planned(zero):
        words = f"mode='data_parallel', pins={{'zero': {zero}}}, search='recursive_programming'"
        notebook.run(MODEL)[0].raise_error()
        notebook.run(f"plan = at.plan(Net(), example, '2xA100', {words})")[0].raise_error()
        return notebook

    return planned


def losses(notebook, name, workers, loop=LOOP, more=""):
    header = f"resources: {{workers_per_node: {workers}, cpus: 0.5}}\nobjective: min loss\n{more}"
    notebook.run(f"%%autotrain {name}\n{header}\n---\n{loop}")[0].raise_error()
    sent = notebook.value("_")
    assert sent.wait(timeout_s=200)
    assert sent.state == "SUCCEEDED", sent.why()
    return [point["value"] for point in sent.metrics(["loss"])]


@pytest.mark.long  # by default a cell of test_plan_from_a_cell.py runs, and loops of tests/parallel are compared
@pytest.mark.parametrize("zero", [0, 3], ids=["DDP", "FSDP"])
def test_two_workers_of_a_cell_have_the_losses_of_one(with_plan, zero):
    notebook = with_plan(zero)
    alone = losses(notebook, f"alone-{zero}", 1)
    together = losses(notebook, f"together-{zero}", 2)
    assert len(alone) == 5
    assert together == pytest.approx(alone, abs=1e-5)


@pytest.mark.long
def test_a_rank_that_is_killed_is_named_and_the_next_attempt_goes_on_from_the_checkpoint(with_plan):
    notebook = with_plan(3)
    alone = losses(notebook, "alone", 1)
    resumed = losses(notebook, "resumed", 2, RESUMED, "retries: 1")
    sent = notebook.value("_")
    told = [change.reason for change in sent.store.state_changes(sent.id) if change.attempt == 1]
    assert any(reason.startswith("Rank 1 failed: Killed by signal 9") for reason in told), told
    assert sent.trials[0].attempt == 2
    assert resumed == pytest.approx(alone, abs=1e-5)

"""A plan that runs in a trial: its steps are measured, and later plans say how well they were predicted."""

import pytest

from jupyter_autotrain.client import calibrating
from tests.unit.parallel.calibrate.test_fitting import calibration

pytest.importorskip("torch")

MODEL = """
import torch
import jupyter_autotrain as at

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(256, 256) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x.pow(2).mean()

example = torch.ones(64, 256)
plan = at.plan(Net(), (example,), "2xlab", mode="data_parallel", search="recursive_programming", pins={"zero": 3})
"""

LOOP = """
net = Net()
optimizer = torch.optim.AdamW(net.parameters())
net, optimizer, loader = plan.apply(net, optimizer, [example] * 22)
for x in loader:
    optimizer.zero_grad()
    net(x).backward()
    optimizer.step()
"""


def test_each_rank_is_measured_and_the_next_plan_tells_the_error(notebook):
    calibrating.keep(calibrating.default_home(), calibration())
    notebook.run(MODEL)[0].raise_error()
    notebook.run(f"%%autotrain\nresources: {{workers_per_node: 2, cpus: 1}}\n---\n{LOOP}")[0].raise_error()
    sent = notebook.value("_")
    assert sent.wait(timeout_s=200)
    assert sent.state == "SUCCEEDED", sent.why()
    assert all("unknown size" not in sent.logs(1, "stderr", rank=rank) for rank in (0, 1))
    (found,) = sent.store.measurements()
    assert found.place == "local"
    one = found.measured
    assert (one.family, one.cluster, one.devices) == ("Net", "2xlab", ("lab",))
    assert len(one.step_s) == len(one.peak_bytes) == 2
    assert one.memory_error < 0.5
    notebook.run(MODEL)[0].raise_error()
    (told,) = [note for note in notebook.value("plan").notes if "measured here" in note]
    assert told.startswith("The last plan of Net measured here was predicted within ")

"""A federated training from its cell to the curves of its clients and of the global model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from jupyter_autotrain.agent.ranks.federated import weights as weights_of
from jupyter_autotrain.client import Experiment, attach
from jupyter_autotrain.core.home import Home

from .conftest import Notebook

_DATA = """
from pathlib import Path

import numpy as np
random = np.random.default_rng(1)
inputs = random.normal(size=(64, 2))
targets = inputs @ np.array([1.0, -2.0]) + 0.5

def step(weights, x, y):
    error = x @ weights["w"] + weights["b"] - y
    weights["w"] -= 0.1 * 2 * x.T @ error / len(x)
    weights["b"] -= 0.1 * 2 * error.mean()
    return float((error ** 2).mean())
"""
_CELL = """%%autotrain {name} --wait
mode: federated
clients: [{clients}]
federated: {{rounds: 4}}
data: {{part: {{clients: {own}}}}}
---
weights = {{"w": np.zeros(2), "b": np.zeros(())}}
part = np.load(data["part"])
x, y = part["inputs"], part["targets"]
for round in trial.rounds(weights, samples=len(x)):
    report(loss=step(weights, x, y))
"""


def _run(notebook: Notebook, home: Home, name: str, folder: Path, many: int) -> Experiment:
    notebook.run(_DATA)
    own = {"local" if many == 1 else f"local-{number}": f"{folder}/{number}.npz" for number in range(1, many + 1)}
    for start, path in enumerate(own.values()):
        notebook.run(f"np.savez({path!r}, inputs=inputs[{start}::{many}], targets=targets[{start}::{many}])")
    clients = ", ".join(["local"] * many)
    result, shown = notebook.run(_CELL.format(name=name, clients=clients, own=json.dumps(own)))
    assert result.success, shown
    return attach(name, home=home)


@pytest.mark.parametrize("many", [1, 2])
def test_clients_on_full_batches_train_as_one_client_with_all_data(
    notebook: Notebook, home: Home, tmp_path: Path, many: int
) -> None:
    experiment = _run(notebook, home, f"federated{many}", tmp_path, many)

    assert [trial.state for trial in experiment.trials] == ["SUCCEEDED"] * many
    alone = notebook.shell.run_cell(
        "alone = {'w': np.zeros(2), 'b': np.zeros(())}\n[step(alone, inputs, targets) for _ in range(4)]"
    ).result
    (path,) = home.federated(experiment.id).glob("global-5.npz")
    found = weights_of.load(str(path), weights_of.digest(str(path)))
    expected = notebook.value("alone")
    assert isinstance(expected, dict)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12)
    curve = experiment.metrics_frame("global_loss")
    np.testing.assert_allclose(curve.iloc[:, 0], alone, rtol=1e-12)
    assert len(experiment.metrics_frame("loss").columns) == many


_KILLED = """%%autotrain {name} --wait
mode: federated
clients: [local, local]
federated: {{rounds: 4}}
retries: {retries}
---
import os, signal
weights = {{"w": np.zeros(2), "b": np.zeros(())}}
for round in trial.rounds(weights):
    if params.client == "local-2" and round.number == 2 and not os.path.exists(flag):
        open(flag, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    weights["w"] += 1
    report(done=round.number)
"""


def test_a_client_whose_process_is_killed_comes_back_as_its_next_attempt(
    notebook: Notebook, home: Home, tmp_path: Path
) -> None:
    notebook.run(f"{_DATA}\nflag = {str(tmp_path / 'killed')!r}")
    result, shown = notebook.run(_KILLED.format(name="comes-back", retries=1))
    assert result.success, shown
    experiment = attach("comes-back", home=home)
    assert [(trial.state, trial.attempt) for trial in experiment.trials] == [("SUCCEEDED", 1), ("SUCCEEDED", 2)]
    np.testing.assert_array_equal(experiment.global_weights()["w"], 4.0)
    assert list(experiment.metrics_frame("global_clients").iloc[:, 0]) == [2, 2, 2, 2]


def test_a_training_with_too_few_clients_left_ends_and_says_so(notebook: Notebook, home: Home, tmp_path: Path) -> None:
    notebook.run(f"{_DATA}\nflag = {str(tmp_path / 'killed')!r}")
    notebook.run(_KILLED.format(name="too-few", retries=0))
    experiment = attach("too-few", home=home)
    assert [trial.state for trial in experiment.trials] == ["FAILED", "FAILED"]
    assert experiment.trials[0].reason == "round 2 needs 2 clients; 1 client left"

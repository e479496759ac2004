"""From a real IPython shell to a script that gives the same metrics under `python -I` in an empty folder."""

# Cells are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

import atexit
import json
import subprocess
import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell

from jupyter_autotrain import capture
from jupyter_autotrain.errors import CaptureError

CELLS = [
    "from __future__ import annotations\nimport numpy as np\nfrom dataclasses import dataclass",
    "%config Application.log_level = 30\nfrom sklearn.datasets import make_classification\n"
    "from sklearn.linear_model import SGDClassifier",
    "@dataclass(frozen=True)\nclass Split:\n    X: np.ndarray\n    y: np.ndarray\n    def first(self, n): return self.X[:n], self.y[:n]",
    "X, y = make_classification(200, 8, random_state=0)\ntrain = Split(X[:150], y[:150])\nvalid = Split(X[150:], y[150:])",
    "scaler = lambda X, k=2.0: X / k\n%time total = 1",
    "def score(model, split):\n    return float(model.score(scaler(split.X), split.y))",
    "model = SGDClassifier(random_state=0)\nbest = {'model': model}",
]  # fmt: skip
TRIAL = """
alpha = 1e-4
model.set_params(alpha=alpha)
for epoch in range(4):
    best['model'].partial_fit(scaler(train.X), train.y, classes=[0, 1])
    report(step=epoch, valid=score(model, valid), train=score(model, train))
    checkpoint.save(epoch)
assert isinstance(train, Split) and train.first(3)[0].shape == (3, 8) and checkpoint.load() == 3 and not should_stop()
"""


@pytest.fixture
def shell():
    """Yield a real IPython shell, whose namespace is a `__main__` of its own."""
    main = sys.modules["__main__"]
    made = InteractiveShell()
    yield made
    made.atexit_operations()
    atexit.unregister(made.atexit_operations)
    sys.modules["__main__"] = main


def cells_of(shell):
    return [capture.Cell(number, source) for number, source in enumerate(shell.user_ns["In"]) if source]


def test_an_exported_trial_gives_the_metrics_it_gave_in_the_notebook(shell, tmp_path):
    for cell in CELLS:
        shell.run_cell(cell, store_history=True).raise_error()
    captured = capture.capture(TRIAL, shell.user_ns, cells_of(shell), cwd=tmp_path, parameters=["alpha"])
    capture.write_bundle(captured, tmp_path / "bundle")
    capture.export_script(tmp_path / "bundle", {"alpha": 0.01}, tmp_path / "trial.py")
    (tmp_path / "empty").mkdir()
    done = subprocess.run(
        [sys.executable, "-I", tmp_path / "trial.py"],
        cwd=tmp_path / "empty",
        capture_output=True,
        text=True,
        check=True,
    )
    metrics = [json.loads(line) for line in (tmp_path / "empty" / "metrics.jsonl").read_text().splitlines()]
    expected = in_the_notebook(shell, 0.01)
    assert metrics == expected
    assert done.stdout.startswith("alpha = 0.0001 in the cell; this run uses 0.01 (search)\nstep 0: valid=")
    hows = {row.name: row.how for row in captured.captured}
    assert (hows["Split"], hows["scaler"], hows["score"], hows["model"]) == ("source", "source", "source", "data")
    assert "cell [3]:1" in captured.source_map


def in_the_notebook(shell, alpha):
    """Return the same cell, run where it was written."""
    rows = []
    shell.user_ns["report"] = lambda step, **metrics: rows.append({"step": step, **metrics})
    shell.run_cell(
        TRIAL.replace("1e-4", str(alpha)).replace("checkpoint.save(epoch)", "").partition("assert")[0]
    ).raise_error()
    return rows


def test_an_async_cell_with_files_runs_alone(shell, tmp_path):
    folder = tmp_path / "notebook"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "words.txt").write_text("one two")
    (folder / "counting.py").write_text("def count(text): return len(text.split())")
    shell.run_cell("import asyncio\nasync def later(x):\n    await asyncio.sleep(0)\n    return x").raise_error()
    code = "from counting import count\nwords = open('data/words.txt').read()\nreport(words=await later(count(words)))\nprint('''done''')"
    captured = capture.capture(code, shell.user_ns, cells_of(shell), cwd=folder)
    capture.write_bundle(captured, tmp_path / "bundle")
    capture.export_script(tmp_path / "bundle", {}, tmp_path / "trial.py")
    (tmp_path / "empty").mkdir()
    done = subprocess.run(
        [sys.executable, "-I", tmp_path / "trial.py"],
        cwd=tmp_path / "empty",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "step 0: words=2\ndone\n"
    assert (tmp_path / "empty" / "data" / "words.txt").read_text() == "one two"
    assert set(captured.files) == {"counting.py", "data/words.txt"}


def test_what_only_ipython_has_is_refused_and_what_it_wraps_is_plain(shell, tmp_path):
    captured = capture.capture("print(open(__file__) and exit)", shell.user_ns, cells_of(shell), cwd=tmp_path)
    assert captured.captured == ()
    with pytest.raises(CaptureError, match="get_ipython: a part of IPython"):
        capture.capture("print(get_ipython().user_ns)", shell.user_ns, cells_of(shell), cwd=tmp_path)


@pytest.mark.long  # test_export_seeds.py exports a script with torch, and tests/capture has such objects
def test_torch_and_pandas_objects_travel_and_stay_tied(shell, tmp_path):
    for cell in [
        "import torch, pandas as pd\nfrom torch import nn\ntorch.manual_seed(0)",
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.lin = nn.Linear(2, 1)\n"
        "    def forward(self, x): return self.lin(x)",
        "net = Net()\nopt = torch.optim.SGD(net.parameters(), lr=0.01)\ndf = pd.DataFrame({'a': [1.0, 2.0], 'b': [3.0, 4.0]})",
    ]:  # fmt: skip
        shell.run_cell(cell, store_history=True).raise_error()
    code = (
        "x = torch.tensor(df.values, dtype=torch.float32)\nfor step in range(3):\n    opt.zero_grad()\n"
        "    loss = net(x).pow(2).sum()\n    loss.backward()\n    opt.step()\n    print(f'{loss.item():.5f}', isinstance(net, Net))"
    )
    captured = capture.capture(code, shell.user_ns, cells_of(shell), cwd=tmp_path)
    assert '= __autotrain_data__("values")' in captured.script
    capture.write_bundle(captured, tmp_path / "bundle")
    capture.export_script(tmp_path / "bundle", {}, tmp_path / "trial.py")
    done = subprocess.run(
        [sys.executable, "-I", tmp_path / "trial.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    losses = [float(line.split()[0]) for line in done.stdout.splitlines()]
    assert len(losses) == 3
    assert losses[2] < losses[0]
    assert "False" not in done.stdout

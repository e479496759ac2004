"""An exported trial gives the trial's metrics although it draws random numbers and walks through sets."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

SEEDED = """\
%%autotrain drawn --wait
seed: 11
search: {x: 'choice(1, 2)'}
tuner: grid
---
import random
import numpy as np
first = random.random()
import torch
order = float(list({"alpha", "beta", "gamma", "delta", "epsilon"}).index("gamma"))
report(x=x, python=first, numpy=np.random.rand(), torch=torch.rand(1), dropped=order, helper=draw(), kept=kept.rand())
report(python=random.random(), numpy=np.random.rand(), torch=torch.rand(1))"""


def run_alone(script: Path, *flags: str) -> tuple[list[dict[str, float]], str]:
    """Return the metrics that a script writes, and what it says on stderr."""
    (script.parent / "metrics.jsonl").unlink(missing_ok=True)
    ran = subprocess.run(
        [sys.executable, *flags, script.name],
        cwd=script.parent,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin", "PYTHONHASHSEED": "random"},
    )
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in (script.parent / "metrics.jsonl").read_text().splitlines()], ran.stderr


@pytest.fixture
def seeded(notebook, tmp_path):
    """Return a finished experiment of two trials, and the folder of the notebook."""
    notebook.run("import numpy as np\nkept = np.random.RandomState(3)\ndef draw():\n    return float(np.random.rand())")
    result, shown = notebook.run(SEEDED)
    assert result.success, shown
    return notebook.value("_")


def test_an_exported_trial_with_a_seed_gives_the_same_metrics_alone(seeded, notebook, tmp_path):
    by_trial = {}
    for row in seeded.metrics():
        by_trial.setdefault(row["number"], {}).setdefault(row["step"], {})[row["name"]] = row["value"]
    notebook.run("%autotrain export drawn --trial 2 -o alone.py")
    text = (tmp_path / "alone.py").read_text()
    assert "# Seed 12," in text
    assert "\nimport jupyter_autotrain" not in text
    rows, said = run_alone(tmp_path / "alone.py")
    assert said == ""
    assert {row.pop("step"): row for row in rows} == by_trial[2]
    assert by_trial[1][0]["torch"] != by_trial[2][0]["torch"]


def test_a_script_that_cannot_fix_the_order_of_sets_says_so(notebook, tmp_path):
    notebook.run("%%autotrain fixed --wait\nseed: 11\n---\nreport(value=1)")
    notebook.run("%autotrain export fixed -o alone.py")
    _, said = run_alone(tmp_path / "alone.py", "-I")
    assert said == "The order of sets may differ from the trial's: it ran with PYTHONHASHSEED=11.\n"


def test_without_a_seed_the_order_of_sets_is_the_trials_too(notebook, tmp_path):
    code = "report(place=list({'alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta'}).index('gamma'))"
    _, shown = notebook.run(f"%%autotrain ordered --wait\n---\n{code}")
    [value] = [row["value"] for row in notebook.value("_").metrics()]
    notebook.run("%autotrain export ordered -o alone.py")
    assert [run_alone(tmp_path / "alone.py")[0][0]["place"] for _ in range(3)] == [value] * 3, shown


TORCH = ("random, numpy, torch", "import torch", ", torch=torch.rand(1).item()", ", partial(torch.manual_seed)")


@pytest.mark.parametrize(
    ("told", "imports", "draws", "seeds"),
    [
        pytest.param("random, numpy", "", "", "", id="numpy"),
        pytest.param(*TORCH, id="torch", marks=pytest.mark.long),  # each of six processes imports it
    ],
)
def test_without_a_seed_trials_attempts_and_exports_draw_the_numbers_that_the_notebook_would(
    notebook, tmp_path, told, imports, draws, seeds
):
    notebook.run(f"import os, random, numpy as np\nfrom functools import partial\n{imports}")
    notebook.run(f"for seed in (random.seed, partial(np.random.seed){seeds}):\n    seed(8)\nnp.random.randn()")
    drawn = f"dict(python=random.random(), numpy=np.random.rand(){draws})"
    code = f"report(**{drawn})\n"
    code += "if not checkpoint.load():\n    checkpoint.save(1)\n    raise RuntimeError('only the first attempt fails')"
    _, shown = notebook.run(f"%%autotrain continued --wait\ntrials: 2\nretries: 1\n---\n{code}")
    assert f"All 2 trials start from the present state of the random generators ({told}" in shown
    rows = notebook.value("_").metrics()
    notebook.run("%autotrain export continued -o alone.py")
    notebook.run(f"here = {drawn}")
    here = notebook.value("here")
    found = {}
    for row in rows:
        found.setdefault((row["number"], row["attempt"]), {})[row["name"]] = row["value"]
    assert found == {(number, attempt): here for number in (1, 2) for attempt in (1, 2)}
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "step-000000000000.pkl").write_bytes(pickle.dumps(1))
    alone, _ = run_alone(tmp_path / "alone.py")
    assert {name: value for name, value in alone[0].items() if name != "step"} == here

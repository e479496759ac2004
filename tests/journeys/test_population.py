"""A population that is trained by a cell, over a killed manager: generations go on from checkpoints of the best."""

from __future__ import annotations

import psutil

from jupyter_autotrain import manager
from jupyter_autotrain.testing import wait_until

CELL = """
state = checkpoint.load({"step": 0, "height": 0.0})
for _ in range(2):
    state = {"step": state["step"] + 1, "height": state["height"] + rate}
    report(step=state["step"], height=state["height"])
checkpoint.save(state, step=state["step"])
"""
HEADER = """
search: {rate: 'uniform(0.1, 1.0)'}
objective: maximize height
tuner: {name: pbt, population_size: 3, quantile_fraction: 0.34}
trials: 9
seed: 2
"""


def run(notebook, name, more=""):
    notebook.run(f"%%autotrain {name}\n{HEADER}{more}---\n{CELL}")
    return notebook.value("_")


def played(experiment):
    assert experiment.wait(240)
    assert experiment.state == "SUCCEEDED"
    return [(trial.params, trial.value, trial.started_from) for trial in experiment.trials]


def test_a_population_is_the_same_at_any_concurrency_and_over_a_killed_manager(notebook, home):
    whole = played(run(notebook, "population"))
    killed = run(notebook, "killed", "concurrency: 3\n")
    wait_until(lambda: len(killed.trials) > 3, "its second generation")
    process = psutil.Process(manager.status(home).pid)
    process.kill()
    process.wait(240)
    assert played(killed) == whole
    sources = [source for _, _, source in whole]
    first = sorted(whole[:3], key=lambda trial: trial[1])
    worst, best = (whole.index(trial) for trial in (first[0], first[-1]))
    assert sources[:3] == [""] * 3
    assert sources[3 + worst] == f"trial {best + 1}"
    assert sources[3 + best] == f"trial {best + 1}"
    curve = killed.series("height")[4 + best]
    assert [*curve[0]] == [1, 2, 3, 4]
    assert curve[1][3] == whole[3 + best][1]

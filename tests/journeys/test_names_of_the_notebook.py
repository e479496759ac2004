"""A notebook that calls its own things `params` and `rank` trains with them; the trial's are `trial.params`, ..."""

from __future__ import annotations

CELL = """\
%%autotrain own -j 2 --wait
objective: maximize score
search:
  lr: choice(1, 2)
tuner: grid
returns: [params, φ_state]
---
import multiprocessing
with multiprocessing.get_context("spawn").Pool(1) as pool:
    deep = pool.apply(depth)
φ_state = {"lr": trial.params.lr, "rank": (rank, trial.rank)}
params["lr"] = lr
trial.report(score=params["max_depth"] * lr + deep)
"""


def test_a_notebooks_params_reach_the_trial_and_the_trials_are_reached_through_trial(notebook):
    notebook.run("params = {'max_depth': 10}\nrank = 'first'\ndef depth():\n    return params['max_depth']")
    result, shown = notebook.run(CELL)
    assert result.success, shown
    assert "params is the notebook's (a dict from cell [2]); the trial's is trial.params" in shown
    experiment = notebook.value("_")
    assert experiment.state == "SUCCEEDED", experiment.why()
    assert sorted(trial.value for trial in experiment.trials) == [20, 30]
    assert experiment.load("params") == {"max_depth": 10, "lr": 2}
    notebook.run("%autotrain load own φ_state")
    assert notebook.value("φ_state") == {"lr": 2, "rank": ("first", 0)}


def test_where_trial_is_the_notebooks_the_package_reaches_the_trial(notebook):
    notebook.run("trial, params = 3, {'depth': 1}")
    cell = "%%autotrain both --wait\nsearch:\n  lr: choice(4)\n---\nimport jupyter_autotrain as at\n"
    save = "at.checkpoint.save({'kept': 7})\nkept = at.checkpoint.load()['kept']\n"
    body = "at.report(score=trial * at.params.lr + at.rank + at.world_size + kept, depth=params['depth'])"
    result, shown = notebook.run(cell + save + body)
    assert result.success, shown
    assert {row["name"]: row["value"] for row in notebook.value("_").metrics()} == {"score": 20, "depth": 1}


def test_a_report_of_the_notebook_is_refused_before_hours_are_spent(notebook):
    notebook.run("report = 'the quarter'")
    text = "\n".join(notebook.fails("%%autotrain\nobjective: minimize loss\n---\nreport(loss=1.0)"))
    assert "line 4 calls report(...), but report is the notebook's" in text
    assert "trial.report" in text


def test_a_searched_name_of_the_trial_is_an_error_of_the_header(notebook):
    text = "\n".join(
        notebook.fails("%%autotrain\nsearch:\n  trial: choice(1)\n  __autotrain_x: choice(1)\n---\nprint(1)")
    )
    assert "line 3" in text
    assert "trial_value" in text
    assert "line 4" in text

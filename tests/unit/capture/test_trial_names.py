"""A name that the notebook binds stays the notebook's, whatever the trial has under it; the trial's is `trial.NAME`."""

# Cells are written on one line each, however long, so that the cases read as a list.
# ruff: noqa: E501

import sys
import types

import pytest

from jupyter_autotrain import capture
from jupyter_autotrain.capture.standalone import start
from jupyter_autotrain.core.spec import TRIAL_NAMES
from jupyter_autotrain.errors import CaptureError


def told(notebook, cell, *cells, **options):
    return [one.text for one in notebook(*cells).capture(cell, **options).differences]


def refusal(notebook, cell, *cells, objective="", **options):
    with pytest.raises(CaptureError) as caught:
        capture.check_reports(notebook(*cells).capture(cell, **options).reports, objective)
    text = str(caught.value)
    assert len(text.splitlines()) <= 6, text
    assert caught.value.found
    assert caught.value.expected
    assert caught.value.action
    return text


def test_every_taken_name_is_told_in_one_line_with_the_other_way(notebook):
    assert told(notebook, "print(params, rank)", "params = {'a': 1}", "rank = 3") == [
        "params is the notebook's (a dict from cell [1]); the trial's is trial.params",
        "rank is the notebook's (an int from cell [2]); the trial's is trial.rank",
    ]
    assert told(notebook, "print(trial, report)", "trial = 3", "def report(): pass") == [
        "report is the notebook's (a function from cell [2]); the trial's is at.report (import jupyter_autotrain as at)",
        "trial is the notebook's (an int from cell [1]); the trial's names are at.report, at.params, ... (import jupyter_autotrain as at)",
    ]
    assert "at.params" in told(notebook, "for trial in range(2):\n    print(params)", "params = {'a': 1}")[0]


def test_a_name_that_the_cell_does_not_read_or_that_is_ours_is_not_told(notebook):
    assert told(notebook, "report(loss=1)", "params = {'a': 1}") == []
    assert told(notebook, "params = 3\nprint(params)", "params = {'a': 1}") == []
    assert told(notebook, "report(loss=1)", "from jupyter_autotrain import report, should_stop") == []
    assert told(notebook, "display(1)", "from IPython.display import display") == []


@pytest.mark.parametrize(
    ("cells", "cell", "found"),
    [
        (["report = 'classification'"], "x = 1\nreport(loss=1.0)", "This cell, line 2 calls report(...), but report is the notebook's (a str from cell [1])"),
        (["report = 'text'", "def fit():\n    report(loss=1)"], "fit()", "Cell [2], line 2 calls report(...)"),
        (["def report(frame): return 1"], "report(step=1, loss=2)", "calls report(...), but report is the notebook's (a function from cell [1])"),
        (["should_stop = False"], "for i in range(3):\n    if should_stop(): break", "This cell, line 2 calls should_stop(...)"),
        (["checkpoint = 'm.pt'"], "checkpoint.save({'epoch': 1})", "uses checkpoint.save"),
        (["params = {'depth': 3}"], "print(params.lr)", "uses params.lr"),
        (["trial = 3"], "trial.report(loss=1)", "uses trial.report"),
    ],
)  # fmt: skip
def test_code_that_plainly_means_the_trials_name_is_refused_at_submit(notebook, cells, cell, found):
    text = refusal(notebook, cell, *cells, parameters=["lr"])
    assert found in text
    assert "stays the notebook's" in text
    assert "Write trial." in text or "import jupyter_autotrain as at" in text


@pytest.mark.parametrize(
    ("cells", "cell"),
    [
        (["def report(**metrics): pass"], "report(loss=1)"),
        (["report = 'text'"], "print(report)\ndef fit(report):\n    report(loss=1)"),
        (["report = 'text'"], "print(report)\nreport = print\nreport(1)"),
        (["class checkpoint:\n    save = print"], "checkpoint.save(1)"),
        (["params = {'depth': 3}"], "print(params.items())"),
        (["import functools\nshould_stop = functools.partial(bool, 0)"], "should_stop()"),
    ],
)
def test_what_the_notebooks_value_can_do_is_not_refused(notebook, cells, cell):
    notebook(*cells).capture(cell, parameters=["lr"])


@pytest.mark.parametrize(
    "source",
    [
        "def report(**metrics): kept.update(metrics)\nkept = {}",
        "kept = []\ndef make():\n    def inner(**metrics): kept.append(metrics)\n    return inner\nreport = make()",
        "from string import capwords as report",
        "class report:\n    def __init__(self, **metrics): pass",
        "report = lambda **metrics: None",
    ],
)
def test_a_report_of_the_notebook_reports_no_objective(notebook, source):
    cell = "print(report)\nreport(acc=1)" if "capwords" not in source else "report('a')"
    text = refusal(notebook, cell, source, objective="acc")
    assert "The objective is 'acc', but report is the notebook's" in text
    assert "trial.report(acc=...)" in text


@pytest.mark.parametrize(
    ("source", "cell"),
    [
        ("def report(**metrics): pass", "report(loss=1)\ntrial.report(acc=1)"),
        ("import jupyter_autotrain as at\ndef report(value): at.report(acc=value)", "report(1)"),
        ("def report(value): trial.report(acc=value)", "report(1)"),
        ("params = {'a': 1}", "print(params)\nreport(acc=1)"),
    ],
)
def test_an_objective_that_is_reported_on_another_way_is_found(notebook, source, cell):
    capture.check_reports(notebook(source).capture(cell).reports, "acc")


def test_a_searched_name_that_the_notebook_uses_for_something_else_is_an_error_that_says_which(notebook):
    text = refusal(
        notebook,
        "print(math, lr, net)",
        "import math",
        "def lr(): return 1",
        "class net: pass",
        parameters=["math", "lr", "net"],
    )
    assert "3 names of the search space are used for something else" in text
    assert "lr: a function in the notebook (cell [2])" in text
    assert "lr: a function" in refusal(
        notebook, "fit()", "def lr(): return 1", "def fit(): return lr()", parameters=["lr"]
    )
    assert "X: a ndarray in the notebook" in refusal(
        notebook, "print(X)", "import numpy as np\nX = np.zeros(3)", parameters=["X"]
    )
    assert "max: a function of Python that this code calls" in refusal(notebook, "print(max(1, 2))", parameters=["max"])


def test_a_searched_name_that_the_cell_binds_itself_is_told(notebook):
    text = "lr is bound by the cell itself, to no literal: the searched value is params.lr"
    assert told(notebook, "lr = 10 ** -3\nprint(lr)", parameters=["lr"]) == [text]
    for cell in ("lr = 1e-3\nprint(lr)", "lr = params['lr'] / 2", "lr = lr * 2", "lr = trial.params.lr", "print(lr)"):
        assert told(notebook, cell, parameters=["lr"]) == []


def test_an_exported_script_has_the_same_names_as_a_trial(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "jupyter_autotrain", types.ModuleType("here"))
    names = {name for name in start({}, {}, {}) if not name.startswith("__")}
    assert names == TRIAL_NAMES

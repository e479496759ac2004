"""A name that the notebook binds stays the notebook's, whatever the trial has under it; the trial's is `trial.NAME`."""

# Cells are written on one line each, however long, so that the cases read as a list.
# ruff: noqa: E501

import pytest

from jupyter_autotrain import capture


@pytest.mark.parametrize(
    ("cells", "cell", "printed"),
    [
        (["params = {'max_depth': 3}"], "print(params)", "{'max_depth': 3}\n"),
        (["params = {'max_depth': 3}", "def train():\n    return params"], "print(train())", "{'max_depth': 3}\n"),
        (["rank = 7\nworld_size = 9"], "print(rank, world_size)", "7 9\n"),
        (["def report(x): return f'mine {x}'"], "print(report(3))", "mine 3\n"),
        (["from math import floor as report"], "print(report(3.5))", "3\n"),
        (["checkpoint = 'model.pt'"], "print(checkpoint.upper())", "MODEL.PT\n"),
        (["should_stop = [False]"], "print(should_stop[0])", "False\n"),
        (["def display(*rows): print('mine', *rows)"], "display(1)", "mine 1\n"),
        (["trial = 3"], "print(trial + 1)", "4\n"),
        (["class trial:\n    report = 'kept'"], "print(trial.report)", "kept\n"),
        (["import string as checkpoint"], "print(checkpoint.digits)", "0123456789\n"),
        (["params = [1]\nalso = params"], "also.append(2); print(params)", "[1, 2]\n"),
        (["params = {'a': 1}"], "params = {**params, 'b': 2}\nprint(params)", "{'a': 1, 'b': 2}\n"),
        (["params = {'a': 1}"], "params['b'] = 2\nprint(params)", "{'a': 1, 'b': 2}\n"),
        (["rank = 5"], "print([rank for rank in range(2)], rank)", "[0, 1] 5\n"),
        ([], "trial = 5\nprint(trial)", "5\n"),
    ],
)
def test_what_the_notebook_binds_and_the_cell_reads_is_the_notebooks(notebook, cells, cell, printed):
    assert notebook(*cells).both(cell) == printed


def test_the_trials_own_are_reached_through_trial(notebook):
    cell = "print(params, trial.params['lr'], trial.params.lr, trial.rank, trial.world_size, trial.should_stop())\ntrial.report(loss=1)\nprint(trial.checkpoint.load(default='none'))"
    book = notebook("params = {'depth': 3}\nrank = 8\nreport = 'text'")
    printed = book.elsewhere(cell, {"lr": 0.5})
    assert printed == "{'depth': 3} 0.5 0.5 0 1 False\nstep 0: loss=1\nnone\n"


def test_where_the_notebook_binds_trial_too_the_package_has_them(notebook):
    cell = "import jupyter_autotrain as at\nat.report(loss=1)\nprint(trial, params, at.params.lr, at.rank, at.should_stop(), at.checkpoint.load(default=0))"
    printed = notebook("params = 'mine'\ntrial = 4").elsewhere(cell, {"lr": 0.5})
    assert printed == "step 0: loss=1\n4 mine 0.5 0 False 0\n"


def test_our_own_report_imported_above_is_the_trials(notebook):
    book = notebook("from jupyter_autotrain import report")
    assert book.row("report(loss=1)", "report").how == "builtin"
    assert book.elsewhere("report(loss=1)") == "step 0: loss=1\n"


def test_a_plain_value_of_a_searched_name_is_a_default_that_the_search_overrides(notebook):
    book = notebook(
        "import numpy as np\nlr = 1e-3\nname = 'adam'\nwidths = [1, 2]\nnumber = np.float64(2)\nmath = 3\ndef used(): return lr"
    )
    params = {"lr": 0.5, "name": "sgd", "widths": [3], "number": 1.5}
    assert book.elsewhere("print(used(), lr, name, widths, number)", params) == "0.5 0.5 sgd [3] 1.5\n"
    notebook("def lr(): pass").capture("lr = 1e-3\nprint(lr)", parameters=["lr"])


def test_a_submitted_function_gets_its_parameters_although_its_file_binds_params(notebook, tmp_path):
    space = {"__name__": "__main__", "params": {"mine": 1}}
    source = "def fit(lr, rest):\n    print(lr, rest, params)\n"
    (tmp_path / "fit.py").write_text(source)
    exec(compile(source, tmp_path / "fit.py", "exec"), space)
    captured = capture.from_function(space["fit"], cwd=tmp_path, parameters=("lr",))
    capture.write_bundle(captured, tmp_path / "bundle")
    script = capture.export_script(tmp_path / "bundle", {"lr": 0.5})
    assert notebook.alone(script) == "0.5 {'lr': 0.5} {'mine': 1}\n"

"""An objective that nothing reports is told before sending; where the text cannot tell, nothing is said."""

import sys
import types

import pytest

import jupyter_autotrain
from jupyter_autotrain import capture
from jupyter_autotrain.errors import CaptureError


def told(notebook, cell, objective="val_acc", *cells, **options):
    """Return what is said of an objective before the cell is sent; "" when nothing."""
    captured = notebook(*cells, cwd=options.pop("cwd", ".")).capture(cell, **options)
    try:
        capture.check_reports(captured.reports, objective)
    except CaptureError as error:
        return str(error)
    return ""


def test_an_objective_that_no_report_names_is_told_with_the_nearest_name_and_the_line(notebook):
    text = told(notebook, "x = 1\nreport(step=1, val_accuracy=0.5, loss=1.0)", first_line=5)
    assert text.splitlines() == [
        "No report(...) names the objective 'val_acc'; this cell, line 6 reports 'val_accuracy'.",
        "Reported is: loss, val_accuracy. Did you mean 'val_accuracy'?",
        "Write 'val_accuracy' in `objective:`, or report(val_acc=...) where its value is known.",
    ]


def test_a_cell_that_reports_nothing_is_told_so(notebook):
    text = told(notebook, "print('training')")
    assert "calls report(...) nowhere" in text
    assert "Write report(val_acc=...)" in text


def test_without_an_objective_nothing_is_asked(notebook):
    assert told(notebook, "print('training')", "") == ""


@pytest.mark.parametrize(
    "cell",
    [
        "report(val_acc=1)",
        "report(3, loss=2, val_acc=1)",
        "for i in range(3):\n    if i:\n        report(i, **{'val_acc': i})",
        "report(**dict(val_acc=1, loss=2))",
        "import jupyter_autotrain as at\nat.report(val_acc=1)",
        "from jupyter_autotrain import report\nreport(val_acc=1)",
    ],
)
def test_the_objective_is_found_in_every_plain_way_to_report_it(notebook, cell):
    assert told(notebook, cell) == ""
    assert told(notebook, cell, "f1") != ""


def test_reports_of_captured_helpers_count_and_are_told_with_their_cell(notebook):
    helper = "def log(value):\n    report(val_acc=value)"
    assert told(notebook, "log(1)", "val_acc", helper) == ""
    assert "cell [1], line 2 reports 'val_acc'" in told(notebook, "log(1)", "accuracy", helper)


def test_reports_of_modules_beside_the_notebook_count(notebook, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "looptrainer.py").write_text("import jupyter_autotrain as at\ndef fit():\n    at.report(val_acc=1)\n")
    cell = "import looptrainer\nlooptrainer.fit()"
    assert told(notebook, cell, cwd=tmp_path) == ""
    assert "looptrainer.py, line 3 reports 'val_acc'" in told(notebook, cell, "f1", cwd=tmp_path)


def test_code_that_travels_by_value_may_report(notebook):
    cells = (
        "import types",
        "def make():\n    def log(value):\n        report(val_acc=value)\n    return log",
        "log = make()",
    )
    assert told(notebook, "log(1)", "val_acc", *cells) == ""


def test_an_installed_package_that_uses_this_one_may_report(notebook, monkeypatch):
    package = types.ModuleType("trainerlib")
    cell = "import trainerlib\ntrainerlib.fit()"
    monkeypatch.setitem(sys.modules, "trainerlib", package)
    assert told(notebook, cell) != ""
    package.at = jupyter_autotrain
    assert told(notebook, cell) == ""


def test_a_report_in_a_function_is_seen_too(tmp_path):
    def fit(lr):
        report(loss=lr)  # noqa: F821 - there in a trial

    captured = capture.from_function(fit, cwd=tmp_path, parameters=("lr",))
    assert set(captured.reports.names) == {"loss"}
    assert captured.reports.complete

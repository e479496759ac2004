"""An objective that nothing reports is told before sending; where the text cannot tell, nothing is said."""

import pytest

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


@pytest.mark.parametrize(
    "cell",
    [
        "name = 'val_' + 'acc'\nreport(**{name: 1})",
        "metrics = {'val_acc': 1}\nreport(**metrics)",
        "report(**{**{}, 'loss': 1})",
        "report(**dict([('val_acc', 1)]))",
        "def fit(log):\n    log(val_acc=1)\nfit(report)",
        "log = report\nlog(val_acc=1)",
        "import jupyter_autotrain as at\nlog = at.report\nlog(val_acc=1)",
        "from jupyter_autotrain import report as log\nlog(val_acc=1)",
        "def report(**metrics): pass\nreport(loss=1)",
        "import subprocess\nsubprocess.run(['python', 'train.py'])",
        "exec('report(val_acc=1)')",
        "import jupyter_autotrain as at\ngetattr(at, 'report')(val_acc=1)",
    ],
)
def test_where_the_text_cannot_tell_nothing_is_said(notebook, cell):
    assert told(notebook, cell) == ""

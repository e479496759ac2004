"""A kernel whose front end draws no widgets and answers no comm, as VS Code's and Colab's may: what its pages get."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journeys.kernel import DEADLINE_S, Kernel

MARIMO = """\
import marimo
app = marimo.App()

@app.cell
def _():
    import jupyter_autotrain as at
    scale = 3
    return at, scale

@app.cell
def _(at, scale):
    @at.trial(name="in-marimo", objective="maximize score")
    def trained():
        report(step=0, score=scale)
    experiment = trained.submit()
    experiment.wait()
    experiment
    return (experiment,)
"""

TRAINING = "%%autotrain plain\nobjective: maximize acc\n---\nfor step in range(3):\n    report(step=step, acc=step / 4)"


def pages(message):
    """Return the forms of an output that are a run card: text and HTML."""
    data = message["content"].get("data", {})
    return [data["text/plain"], data["text/html"]] if "autotrain-card" in data.get("text/html", "") else []


def updates(message, handle):
    """Return whether a message is a newer form of this run card."""
    is_page = message["msg_type"] == "update_display_data" and bool(pages(message))
    return is_page and message["content"]["transient"]["display_id"] == handle


def test_a_front_end_without_widgets_gets_the_run_card_and_its_end(home, tmp_path):
    kernel = Kernel(home, tmp_path / "unused.ipynb")
    notebook = tmp_path / "of vs code.ipynb"
    shown = []
    try:
        kernel.run(f"del __import__('os').environ['JPY_SESSION_NAME']; __vsc_ipynb_file__ = {str(notebook)!r}")
        kernel.client.execute_interactive(TRAINING, output_hook=shown.append, timeout=DEADLINE_S)
        assert not [message for message in shown if message["msg_type"] == "error"]
        cards = [message for message in shown if message["msg_type"] == "display_data" and pages(message)]
        assert len(cards) == 1
        handle = cards[0]["content"]["transient"]["display_id"]
        assert "plain" in pages(cards[0])[0]
        last = [cards[0], *filter(lambda message: updates(message, handle), shown)][-1]
        while "SUCCEEDED" not in pages(last)[0]:  # the kernel is idle meanwhile
            message = kernel.client.get_iopub_msg(timeout=DEADLINE_S)
            last = message if updates(message, handle) else last
        assert "0.5" in pages(last)[0]
        assert notebook.name in kernel.run("print(__import__('jupyter_autotrain').attach('_').record.spec.origin)")
    finally:
        kernel.close()


@pytest.mark.long
def test_in_marimo_a_decorated_function_is_submitted_and_the_experiment_is_shown_as_the_run_card(home, tmp_path):
    python = Path(sys.prefix, "marimo", "bin", "python")
    if not python.exists():
        pytest.skip(f"there is no {python}: sh .ci/frameworks makes it")
    notebook = tmp_path / "notebook.py"
    notebook.write_text(MARIMO)
    ours = os.pathsep.join(filter(None, sys.path))
    environ = {**os.environ, "JUPYTER_AUTOTRAIN_HOME": str(home.root), "PYTHONPATH": ours}
    command = [python, "-m", "marimo", "export", "ipynb", notebook, "-o", "shown.ipynb", "--include-outputs"]
    subprocess.run(command, cwd=tmp_path, env=environ, check=True, capture_output=True, timeout=DEADLINE_S)
    cells = json.loads((tmp_path / "shown.ipynb").read_text())["cells"]
    shown = [output["data"] for cell in cells for output in cell["outputs"] if "data" in output]
    (page,) = [data["text/html"] for data in shown if "text/html" in data]
    assert "in-marimo" in "".join(page)
    assert "SUCCEEDED" in "".join(page)

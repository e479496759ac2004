"""A kernel whose front end draws no widgets and answers no comm, as VS Code's and Colab's may: what its pages get."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_autotrain import attach
from jupyter_autotrain.testing import wait_until
from tests.browser.jupyter_lab import FLAGS, chromium
from tests.journeys.kernel import DEADLINE_S, Kernel
from tests.server.jupyter import free_port

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


@pytest.fixture
def marimo(home, tmp_path):
    """Return what starts marimo with arguments, in a folder that has the notebook."""
    python = Path(sys.prefix, "marimo", "bin", "python")
    if not python.exists():
        pytest.skip(f"there is no {python}: sh .ci/frameworks makes it")
    ours = os.pathsep.join(filter(None, sys.path))
    environ = {**os.environ, "JUPYTER_AUTOTRAIN_HOME": str(home.root), "PYTHONPATH": ours}

    def start(notebook, *arguments):
        (tmp_path / "notebook.py").write_text(notebook)
        command = [python, "-m", "marimo", *arguments]
        return subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=subprocess.DEVNULL)

    return start


@pytest.mark.long
def test_what_marimo_exports_has_the_run_card(marimo, tmp_path):
    with marimo(MARIMO, "export", "ipynb", "notebook.py", "-o", "shown.ipynb", "--include-outputs") as export:
        assert export.wait(DEADLINE_S) == 0
    cells = json.loads((tmp_path / "shown.ipynb").read_text())["cells"]
    shown = [output["data"] for cell in cells for output in cell["outputs"] if "data" in output]
    (page,) = [data["text/html"] for data in shown if "text/html" in data]
    assert "in-marimo" in "".join(page)
    assert "SUCCEEDED" in "".join(page)


@pytest.mark.long
def test_in_marimo_the_live_view_follows_an_experiment_and_stops_it(marimo, home):
    browser = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    path = chromium()
    if path is None:
        pytest.skip("no Chromium here: set CHROMIUM to its path, or install the package chromium")
    notebook = MARIMO.replace("in-marimo", "live-in-marimo").replace("    experiment.wait()\n", "")
    notebook = notebook.replace(
        "score=scale)", "score=scale)\n        while not should_stop(): __import__('time').sleep(0.05)"
    )
    port = free_port()
    server = marimo(notebook, "run", "notebook.py", "--headless", "--port", str(port))
    try:
        wait_until(lambda: is_open(port), "marimo", within_s=DEADLINE_S)
        with browser.sync_playwright() as playwright:
            page = playwright.chromium.launch(executable_path=path, args=FLAGS).new_page()
            page.set_default_timeout(1000 * DEADLINE_S)
            page.goto(f"http://127.0.0.1:{port}")
            view = page.locator(".autotrain")
            view.get_by_text("Best score (last) 3").wait_for()
            assert not page.locator(".autotrain-card").is_visible()
            view.get_by_role("button", name="Stop", exact=True).first.click()
            view.get_by_text("nothing is left").wait_for()
    finally:
        server.terminate()
        server.wait(DEADLINE_S)
    assert attach("live-in-marimo", home=home).state == "CANCELLED"


def is_open(port):
    """Return whether somebody listens at a port."""
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0

"""A large submission in a real kernel: its progress is shown while it lasts, and nothing of it is kept."""

from __future__ import annotations

import os

import nbformat
import pytest
from nbclient import NotebookClient

AT_ONCE = (
    "%load_ext jupyter_autotrain\n"
    "import random\n"
    "from jupyter_autotrain.client import waiting as progress\n"
    "progress._SHOW_AFTER_S = progress._UPDATE_EVERY_S = 0.0  # whatever the machine\n"
    "small, rows = 3, [random.randbytes(4_000_000) for _ in range(8)]"
)
INTERRUPTS = (
    "import os, signal\n"
    "written = progress.Progress.written\n"
    "def interrupted(self, done, total):\n"
    "    written(self, done, total)\n"
    "    if done > total / 2:\n"
    "        os.kill(os.getpid(), signal.SIGINT)\n"
    "progress.Progress.written = interrupted"
)
TRAIN = "%%autotrain large --wait\n---\nrows.append(small)\nprint(len(rows))"
LEFT = "import jupyter_autotrain as at, pathlib\nprint(len(at.experiments()), [*pathlib.Path({drafts!r}).glob('*')])"


class Watched(NotebookClient):
    """Keeps what was displayed and replaced, beside the outputs of the notebook."""

    def process_message(self, message, cell, cell_index):
        if message["msg_type"] in {"display_data", "update_display_data"}:
            self.shown.append(message["content"]["data"].get("text/plain", ""))
        return super().process_message(message, cell, cell_index)


@pytest.fixture
def executed(home, tmp_path, monkeypatch):
    """Execute cells in a new kernel; return the notebook, what was shown meanwhile, and the error."""
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_HOME", str(home.root))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))

    def execute(*sources):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
        client = Watched(notebook, kernel_name="python3", timeout=240, resources={"metadata": {"path": str(tmp_path)}})
        client.shown = []
        client.allow_errors = True
        client.execute(env={**os.environ})
        return notebook.cells, client.shown

    return execute


def html_of(cell):
    """Return the HTML of a cell's outputs but the card of an experiment, which has its own."""
    found = [str(output.get("data", {}).get("text/html", "")) for output in cell.outputs]
    return [html for html in found if html and "autotrain-card" not in html]


def text_of(cell):
    return "".join(
        output.get("text") or "\n".join(output.get("traceback", ())) or str(output.get("data", {}).get("text/plain"))
        for output in cell.outputs
    )


def test_progress_is_shown_and_leaves_nothing_in_the_notebook(executed):
    cells, shown = executed(AT_ONCE, TRAIN)
    progress = [text for text in shown if text.startswith(("Capturing", "Writing"))]
    assert len(progress) > 5
    assert any("of 32 MB" in text for text in progress)
    kept = text_of(cells[1])
    assert "Writing" not in kept
    assert "Capturing" not in kept
    assert kept.count("copied: rows:") == 1
    assert kept.count("Travels: 2 names, 32 MB; 1 difference") == 1


def test_an_interrupt_while_it_is_written_leaves_nothing(executed, home):
    drafts = str(home.drafts)
    cells, _ = executed(AT_ONCE, LEFT.format(drafts=drafts), INTERRUPTS, TRAIN, LEFT.format(drafts=drafts))
    assert text_of(cells[3]).endswith("Nothing was sent.")
    assert text_of(cells[4]) == text_of(cells[1])
    assert text_of(cells[4]).endswith(" []\n")


def test_a_notebook_shows_tables_as_html_and_what_travels_in_one_line_that_opens(executed):
    cells, _ = executed(
        "%load_ext jupyter_autotrain\ndef helper(x):\n    return x + 1",
        "%%autotrain tables --wait\nobjective: maximize acc\n---\nreport(acc=helper(1))",
        "%autotrain ls",
        "%autotrain why",
        "%autotrain wait",
    )
    travels, trials = html_of(cells[1])
    assert travels.startswith("<details><summary>Travels: 1 name</summary><table>")
    assert "<td>helper</td><td>source</td>" in travels
    assert '<th scope="col">trial</th>' in trials
    [listed] = html_of(cells[2])
    assert "<td>tables</td><td>SUCCEEDED</td>" in listed
    [why] = html_of(cells[3])
    assert "tables is SUCCEEDED" in why
    assert html_of(cells[4]) == [trials]

"""A large submission in a real kernel: its progress is shown while it lasts, and nothing of it is kept."""

from __future__ import annotations

import os
from collections import defaultdict

import nbformat
import pytest
from nbclient import NotebookClient

AT_ONCE = (
    "%load_ext jupyter_autotrain\n"
    "import random\n"
    "from jupyter_autotrain.client import waiting as progress\n"
    "progress._SHOW_AFTER_S = progress._UPDATE_EVERY_S = 0.0  # whatever the machine\n"
    "small, rows = 3, [random.randbytes(2_000_000) for _ in range(8)]"
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
CELLS = {
    "at once": AT_ONCE,
    "before": LEFT,
    "interrupts": INTERRUPTS,
    "interrupted": TRAIN,
    "after": LEFT,
    "goes on": "progress.Progress.written = written",
    "sent": TRAIN,
    "helper": "def helper(x):\n    return x + 1",
    "tables": "%%autotrain tables --wait\nobjective: maximize acc\n---\nreport(acc=helper(1))",
    "ls": "%autotrain ls",
    "why": "%autotrain why",
    "wait": "%autotrain wait",
}


class Watched(NotebookClient):
    """Keeps what was displayed and replaced, beside the outputs of the notebook."""

    def process_message(self, message, cell, cell_index):
        if message["msg_type"] in {"display_data", "update_display_data"}:
            self.shown[cell_index].append(message["content"]["data"].get("text/plain", ""))
        return super().process_message(message, cell, cell_index)


@pytest.fixture(scope="module")
def executed(home, tmp_path_factory):
    """Return the cells, executed in one kernel, and what each has shown meanwhile."""
    folder = tmp_path_factory.mktemp("executed")
    sources = [source.replace("{drafts!r}", repr(str(home.drafts))) for source in CELLS.values()]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    client = Watched(notebook, kernel_name="python3", timeout=240, resources={"metadata": {"path": str(folder)}})
    client.shown = defaultdict(list)
    client.allow_errors = True
    own = {"JUPYTER_AUTOTRAIN_HOME": str(home.root), "IPYTHONDIR": str(folder / "ipython")}
    client.execute(env={**os.environ, **own})
    shown = {name: client.shown[index] for index, name in enumerate(CELLS)}
    return dict(zip(CELLS, notebook.cells, strict=True)), shown


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
    cells, shown = executed
    progress = [text for text in shown["sent"] if text.startswith(("Capturing", "Writing"))]
    assert len(progress) > 5
    assert any("of 16 MB" in text for text in progress)
    kept = text_of(cells["sent"])
    assert "Writing" not in kept
    assert "Capturing" not in kept
    assert kept.count("copied: rows:") == 1
    assert kept.count("Travels: 2 names, 16 MB; 1 difference") == 1


def test_an_interrupt_while_it_is_written_leaves_nothing(executed):
    cells, _ = executed
    assert text_of(cells["interrupted"]).endswith("Nothing was sent.")
    assert text_of(cells["after"]) == text_of(cells["before"])
    assert text_of(cells["after"]).endswith(" []\n")


def test_a_notebook_shows_tables_as_html_and_what_travels_in_one_line_that_opens(executed):
    cells, _ = executed
    travels, trials = html_of(cells["tables"])
    assert travels.startswith("<details><summary>Travels: 1 name</summary><table>")
    assert "<td>helper</td><td>source</td>" in travels
    assert '<th scope="col">trial</th>' in trials
    [listed] = html_of(cells["ls"])
    assert "<td>tables</td><td>SUCCEEDED</td>" in listed
    [why] = html_of(cells["why"])
    assert "tables is SUCCEEDED" in why
    assert html_of(cells["wait"]) == [trials]

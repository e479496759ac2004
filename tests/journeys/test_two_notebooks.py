"""Two notebooks of one home at the same time: each acts on its own experiments, and re-running a cell is told."""

from __future__ import annotations

import pytest

from jupyter_autotrain.client import lookup
from jupyter_autotrain.testing import wait_until

WAITS = "import time\nwhile not should_stop():\n    time.sleep(0.05)"


@pytest.fixture
def at_notebook(notebook, tmp_path):
    """Make the shell a new kernel of a notebook file."""

    def at_notebook(name):
        lookup._session.cache_clear()
        notebook.shell.user_ns["__session__"] = str(tmp_path / name)
        return notebook

    return at_notebook


def test_two_notebooks_never_act_on_each_others_newest_experiment(at_notebook):
    one = at_notebook("one.ipynb")
    one.run("%%autotrain shared\nobjective: maximize acc\n---\nreport(acc=0.25)\n" + WAITS)
    first = one.value("_")
    wait_until(first.metrics, "its report")
    other = at_notebook("other.ipynb")
    text = "\n".join(other.fails("%autotrain stop"))
    assert "This notebook has submitted no experiment yet." in text
    assert f"{first.name}, from one.ipynb" in text
    other.run("%%autotrain shared --wait\nobjective: maximize acc\n---\nreport(acc=0.75)")
    assert "acc (last) = 0.75" in other.run("%autotrain best")[1]
    assert "ended before" in other.run("%autotrain stop")[1]
    assert "ended before" in other.run("%autotrain stop shared")[1]
    assert not first.state.is_final
    one = at_notebook("one.ipynb")
    assert f"{first.name}: stopped in" in one.run("%autotrain stop")[1]
    assert first.state == "CANCELLED"
    assert "trial 1 (CANCELLED), acc (last) = 0.25" in one.run("%autotrain best -1")[1]
    assert "acc (last) = 0.75" in one.run(f"%autotrain best shared@{first.record.version + 1}")[1]


def test_a_cell_that_is_run_again_tells_of_its_earlier_run_or_stops_it_first(at_notebook):
    notebook = at_notebook("again.ipynb")
    notebook.run("%%autotrain again\n" + WAITS)
    first = notebook.value("_")
    _, shown = notebook.run("%%autotrain again\n" + WAITS)
    assert "again@1 (0 of 1 trial ended) still runs beside this new run." in shown
    assert "%autotrain show again@1" in shown
    second = notebook.value("_")
    assert not first.state.is_final
    _, shown = notebook.run("%%autotrain again --wait\non_rerun: stop\n---\nreport(acc=1)")
    assert shown.count("The earlier run is stopped first.") == 2
    assert (first.state, second.state) == ("CANCELLED", "CANCELLED")
    assert notebook.value("_").state == "SUCCEEDED"


def test_a_cell_that_may_not_ask_keeps_its_earlier_run_and_says_how_to_end_it(at_notebook):
    notebook = at_notebook("asks.ipynb")
    notebook.run("%%autotrain asks\n" + WAITS)
    first = notebook.value("_")
    _, shown = notebook.run("%%autotrain asks --wait\non_rerun: ask\n---\nreport(acc=1)")
    assert "no question can be asked here" in shown
    assert not first.state.is_final
    assert "stopped in" in notebook.run("%autotrain stop asks@1")[1]

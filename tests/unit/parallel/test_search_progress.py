"""Tests of what is told of a search while it runs."""

import io
from itertools import pairwise

import pytest

import jupyter_autotrain as at
from jupyter_autotrain.parallel.graph.prepare import prepare
from jupyter_autotrain.parallel.search import SearchRequest, StrategySpace, solve
from jupyter_autotrain.parallel.search.outer import progress as progress_module
from jupyter_autotrain.parallel.search.outer.progress import Progress, ProgressLine
from tests.example_graphs import gpt

SMALL = gpt(layers=2, batch=8, width=128, heads=4, sequence=64, vocabulary=512)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(scope="module", params=[True, False], ids=["what runs", "the whole space"])
def told(request):
    told = []
    space = StrategySpace(max_axes=2, microbatches=(1, 2))
    solution = solve(prepare(SMALL), "4xA100", SearchRequest(space=space, execute=request.param), tell=told.append)
    return told, solution


def test_the_phases_of_a_search_are_told_in_their_order(told):
    phases = list(dict.fromkeys(progress.phase for progress in told[0]))
    assert phases[:2] == ["first plans", "meshes of few axes"]


def test_the_best_plan_never_gets_slower_and_the_last_that_is_told_is_at_most_the_answers_best(told):
    steps_s = [progress.best_s for progress in told[0]]
    assert all(later <= earlier for earlier, later in pairwise(steps_s))
    best = told[1].best or told[1].cost
    assert steps_s[-1] >= best.step_s * (1 - 1e-9)


def test_a_line_says_phase_time_best_and_gap():
    assert str(Progress("meshes of few axes", 8.2, 0.412, 0.4)) == (
        "Searching meshes of few axes, 8 s: best 412.0 ms, gap 2.9%; an interrupt takes it."
    )
    assert str(Progress("first plans", 3.0, float("inf"), 0.0)) == "Searching first plans, 3 s: no plan yet."


def test_a_short_search_shows_nothing_and_a_long_one_a_line_that_is_taken_away_at_its_end():
    stream = Terminal()
    line = ProgressLine(stream)
    line.tell(Progress("first plans", 1.9, 0.4, 0.0))
    line.clear()
    assert not stream.getvalue()
    line.tell(Progress("first plans", 2.1, 0.4, 0.0))
    line.tell(Progress("first plans", 2.2, 0.4, 0.0))
    shown = stream.getvalue()
    assert shown == "\rSearching first plans, 2 s: best 400.0 ms."
    line.clear()
    assert stream.getvalue() == f"{shown}\r{' ' * (len(shown) - 1)}\r"


def test_a_plan_of_a_notebook_shows_how_far_its_search_is_and_leaves_no_line(monkeypatch):
    monkeypatch.setattr(progress_module, "SHOWN_AFTER_S", 0.0)
    monkeypatch.setattr(progress_module, "SHOWN_EVERY_S", 0.0)
    stream = Terminal()
    monkeypatch.setattr("sys.stdout", stream)
    at.plan(SMALL, None, "4xA100")
    lines = stream.getvalue().split("\r")
    assert any("best" in line and "gap" in line for line in lines)
    assert not lines[-1]
    assert not lines[-2].strip()


def test_nothing_is_shown_where_the_line_cannot_be_written_over(monkeypatch):
    monkeypatch.setattr(progress_module, "SHOWN_AFTER_S", 0.0)
    monkeypatch.setattr(progress_module, "SHOWN_EVERY_S", 0.0)
    stream = io.StringIO()
    monkeypatch.setattr("sys.stdout", stream)
    at.plan(SMALL, None, "4xA100")
    assert not stream.getvalue()

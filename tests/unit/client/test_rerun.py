"""Submitting again what still runs says so, and does what `on_rerun:` says."""

import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import Experiment, StopReceipt
from jupyter_autotrain.client.rerun import Dialogue, before_rerun
from jupyter_autotrain.client.waiting import Patience
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, Origin
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Store

HERE = Origin("/home/ada/train.ipynb", "s1")


class Cell:
    def __init__(self, home):
        self.home = home
        self.said = []
        self.asked = []
        self.answer = "n"
        self.spec = ExperimentSpec("digits", Bundle(), trials=3, origin=HERE)

    def rerun(self, choice, **changes):
        spec = ExperimentSpec("digits", Bundle(), **{"origin": HERE, **changes})
        earlier = before_rerun(self.home, spec, {}, choice, Dialogue(self.said.append, self.ask), Patience())
        self.goes_on = earlier and earlier.id
        return "".join(self.said)

    def ask(self, question):
        self.asked.append(question)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def stopped(monkeypatch):
    names = []
    stop = lambda self, timeout_s: names.append(self.id) or StopReceipt(name=self.name)  # noqa: E731
    monkeypatch.setattr(Experiment, "stop", stop)
    return names


@pytest.fixture
def cell(tmp_path, monkeypatch, stopped):
    monkeypatch.setattr(manager, "ensure", lambda home: None)
    monkeypatch.setattr(manager, "notify", lambda home, message=None: True)
    cell = Cell(Home(tmp_path / "home"))
    with Store.open(cell.home) as store:
        store.add_experiment("a1", cell.spec, 1.0)
        for number, states in enumerate((("PREPARING", "RUNNING", "SUCCEEDED"), ("PREPARING", "RUNNING")), 1):
            store.add_trial("a1", number, {}, 1.0)
            for state in states:
                store.change_state("a1", number, TrialState(state), 2.0)
    return cell


def test_what_still_runs_is_told_in_one_line_with_the_way_to_its_view(cell, stopped):
    said = cell.rerun("keep")
    assert said.startswith("digits@1 (1 of 3 trials ended) still runs beside this new run.")
    assert "%autotrain show digits@1" in said
    assert "%autotrain stop digits@1" in said
    assert cell.goes_on == "a1"
    assert said.count("\n") == 1
    assert stopped == []


def test_many_earlier_runs_are_told_in_one_line_and_all_are_stopped(cell, stopped):
    with Store.open(cell.home) as store:
        for number in range(2, 30):
            store.add_experiment(f"a{number}", cell.spec, 1.0)
    said = cell.rerun("keep")
    assert said.startswith("digits@29 (0 of 3 trials ended) and 28 other runs still run beside this new run.")
    assert said.count("\n") == 1
    cell.answer = "y"
    cell.rerun("ask")
    assert len(cell.asked) == 1
    assert len(stopped) == 29


def test_the_earlier_run_is_stopped_first_and_its_receipt_is_shown(cell, stopped):
    assert cell.rerun("stop").startswith("The earlier run is stopped first. digits: stopped")
    assert stopped == ["a1"]
    assert cell.goes_on is None


@pytest.mark.parametrize(("answer", "ended"), [("y", ["a1"]), (" Yes", ["a1"]), ("n", []), ("", [])])
def test_the_user_may_be_asked(cell, stopped, answer, ended):
    cell.answer = answer
    said = cell.rerun("ask")
    assert cell.asked == [
        "digits@1 (1 of 3 trials ended) still runs. Stop it before this new run begins? [y/N] ",
    ]
    assert stopped == ended
    assert ("continues" in said) == (not ended)


@pytest.mark.parametrize("fault", [EOFError(), NotImplementedError(), OSError()])
def test_where_no_question_can_be_asked_the_earlier_run_goes_on_and_is_named(cell, stopped, fault):
    cell.answer = fault
    said = cell.rerun("ask")
    assert "no question can be asked here" in said
    assert "%autotrain stop digits@1" in said
    assert stopped == []


def test_a_run_that_cannot_be_sent_stops_nothing(cell, stopped):
    with pytest.raises(AutotrainError, match="TOKEN"):
        cell.rerun("stop", secrets=("TOKEN",))
    assert stopped == []


def test_another_notebook_another_name_and_what_has_ended_are_left_alone(cell, stopped):
    assert cell.rerun("stop", origin=Origin("/home/ada/other.ipynb", "s2")) == ""
    assert cell.rerun("stop", origin=Origin()) == ""
    with Store.open(cell.home) as store:
        store.change_state("a1", 2, TrialState.SUCCEEDED, 3.0)
        store.close_experiment("a1", 3.0)
    assert cell.rerun("stop") == ""
    assert stopped == []

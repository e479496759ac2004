"""One best trial in every verb: any that has a value, its state beside it, and never "not reported" when it was."""

import pytest

from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Ingest, Store

DONE = ("PREPARING", "RUNNING", "SUCCEEDED")
STOPPED = ("PREPARING", "RUNNING", "CANCELLED")
LOST = ("PREPARING", "RUNNING", "LOST")


@pytest.mark.parametrize(("states", "state"), [(STOPPED, "CANCELLED"), (LOST, "LOST")])
def test_a_stopped_or_lost_trial_is_best_in_every_verb_and_its_state_is_told(terminal, add, states, state):
    add("digits", (DONE, 0.5), (states, 0.9))
    assert terminal.run("best") == f"digits: trial 2 ({state}), acc (last) = 0.9 with lr=0.2\n"
    assert {"0.9", f"({state})"} <= set(terminal.run("ls").split())
    assert f"0.9 ({state})" in terminal.run("compare", "digits")
    assert terminal.json("best")["number"] == terminal.json("ls")[0]["best"]["number"] == 2
    assert "trial 2" in terminal.run("wait", "digits")


def test_a_trial_that_succeeded_needs_no_word(terminal, add):
    add("digits", (DONE, 0.5))
    assert "acc (last) 0.5  " in terminal.run("ls")
    assert "trial 1: SUCCEEDED  acc (last) 0.5\n" in terminal.run("wait")


def test_what_was_reported_but_is_no_number_is_not_called_unreported(terminal, add):
    experiment_id = add("digits", (DONE, None))
    assert "no trial has reported acc yet" in terminal.run("best")
    with Store.open(terminal.home) as store:
        points = [("acc", 0, 1.0, None)]
        store.ingest([Ingest(experiment_id, 1, 1, "metrics", 5, points, objective=Objective("acc"))])
    assert "acc was reported, but no trial has a finite value of it" in terminal.run("best")


def test_without_an_objective_no_trial_is_best_and_it_is_said_how_to_have_one(terminal, add):
    add("plain", (DONE, None), objective=None)
    with pytest.raises(AutotrainError, match="no objective"):
        terminal.run("best")

"""One best trial in every verb: any that has a value, its state beside it, and never "not reported" when it was."""

import pytest

from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Ingest, Store
from jupyter_autotrain.verbs import control

DONE = ("PREPARING", "RUNNING", "SUCCEEDED")
STOPPED = ("PREPARING", "RUNNING", "CANCELLED")
FAILED = ("PREPARING", "RUNNING", "FAILED")
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


def test_a_wait_says_what_has_become_of_each_trial_once(terminal, add):
    add("a", (DONE, 0.75), (LOST, 0.5), (FAILED, 0.25))
    told = terminal.run("wait", "a")
    assert told.splitlines()[0] == "a: SUCCEEDED, 1 trial lost; best acc (last) 0.75 in trial 1 (SUCCEEDED)"
    assert [told.count(word) for word in ("LOST", "FAILED", "0.5", "0.25")] == [1, 1, 1, 1]
    assert [word in terminal.run("ls") for word in ("3/3", "1 failed", "1 lost")] == [True] * 3
    assert terminal.json("ls")[0]["reason"] == "1 trial lost"


def test_a_long_wait_says_now_and_then_how_many_trials_have_ended(terminal, add, monkeypatch):
    monkeypatch.setattr(control, "_PROGRESS_S", 0.0)
    add("digits", (DONE, 0.5), (FAILED, 0.1), (("PREPARING", "RUNNING"), None), closed=False)
    lines = terminal.run("wait", "digits", "--timeout", "2").splitlines()
    assert lines[0] == "2 of 3 trials ended, 1 failed"
    assert lines[1:] == ["digits is still RUNNING after 2.0 s."]


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

"""`ls`, `show` and `best`: what is listed, left out and said, the same as JSON, and one best trial in every verb."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_autotrain import cli
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Ingest, Store
from jupyter_autotrain.verbs import control
from jupyter_autotrain.views.summary import summary

DONE = ("PREPARING", "RUNNING", "SUCCEEDED")
BAD = ("PREPARING", "RUNNING", "FAILED")


def listed(text):
    """Return the names; a long cell of a row goes on below, where the column of names is empty."""
    return [line.split()[0] for line in text.splitlines()[1:] if not line.startswith(("...", " "))]


def test_the_newest_come_first_and_the_rest_is_counted(terminal, add):
    for name in ("one", "two", "three"):
        add(name, (DONE, 0.5))
    text = terminal.run("ls", "-n", "2")
    assert listed(text) == ["three", "two"]
    assert text.endswith("... and 1 more (all of them: %autotrain ls -n 3)\n")
    assert "more" not in terminal.run("ls")


def test_the_time_it_took_is_that_of_the_last_retry(terminal, add):
    experiment_id = add("digits", (DONE, 0.5))
    with Store.open(terminal.home) as store:
        store.begin_retry(experiment_id, 43.0)
    assert "  7.0 s  " in terminal.run("ls")
    assert terminal.json("ls")[0]["begun_s"] == 43.0


def test_experiments_are_chosen_by_name_state_and_backend(terminal, add):
    add("resnet-a", (DONE, 0.5))
    add("resnet-b", (BAD, None))
    add("bert", (DONE, 0.5), backend="debug")
    assert listed(terminal.run("ls", "resnet*")) == ["resnet-b", "resnet-a"]
    assert listed(terminal.run("ls", "bert", "resnet-a")) == ["bert", "resnet-a"]
    assert listed(terminal.run("ls", "--state", "failed")) == ["resnet-b"]
    assert listed(terminal.run("ls", "--backend", "debug")) == ["bert"]
    assert terminal.run("ls", "vit*") == "No experiment matches. All of them: %autotrain ls\n"
    with pytest.raises(AutotrainError, match="choose from"):
        terminal.run("ls", "--state", "broken")


def test_an_empty_home_says_how_to_begin(terminal):
    assert "Put %%autotrain on the first line" in terminal.run("ls")
    assert terminal.json("ls") == []


def test_a_listing_as_json_holds_counts_and_the_best_trial(terminal, add):
    add("digits", (DONE, 0.5), (DONE, 0.75), (BAD, None))
    (one,) = terminal.json("ls")
    assert (one["name"], one["state"], one["trials"]) == ("digits", "SUCCEEDED", 3)
    assert one["counts"] == {"SUCCEEDED": 2, "FAILED": 1}
    assert (one["best"]["number"], one["best"]["value"], one["best"]["params"]) == (2, 0.75, {"lr": 0.2})


def test_one_experiment_as_json_has_all_its_trials(terminal, add):
    add("digits", (DONE, float("inf")), (BAD, None))
    shown = terminal.json("show", "digits")
    assert [(trial["number"], trial["state"], trial["value"]) for trial in shown["trials"]] == [
        (1, "SUCCEEDED", None),  # only finite values count
        (2, "FAILED", None),
    ]
    assert terminal.shown == []


@pytest.mark.parametrize("words", [("backends",), ("check",), ("config",), ("doctor",)])
def test_what_is_listed_of_this_installation_is_json_too(terminal, words):
    assert terminal.json(*words)


def test_results_and_reasons_are_json_too(terminal, add):
    add("digits", (DONE, 0.5), (BAD, None))
    add("plain", (DONE, None), objective=None)
    assert terminal.json("best", "digits")["number"] == 1
    assert [one["name"] for one in terminal.json("compare", "digits", "plain")] == ["digits", "plain"]
    assert terminal.json("why", "digits") == ["Trial 2 failed: for no known reason."]
    assert terminal.json("pull", "digits") == {"trial": 1, "folder": "digits-trial-1", "files": []}


def test_of_many_trials_the_first_and_the_best_are_shown_and_the_rest_is_counted(terminal, add):
    add("wide", *[(DONE, float(number == 24)) for number in range(1, 31)])
    text = summary(terminal.find("wide"))
    numbers = [line.split()[0] for line in text.splitlines()[2:-1]]
    assert numbers == [*map(str, range(1, 20)), "24"]
    assert text.endswith("... and 10 more trials (all of them: %autotrain show wide --json)")


def test_a_later_attempt_is_marked_and_says_how_the_one_before_ended(terminal, add):
    add("digits", (DONE, 0.5))
    with Store.open(terminal.home) as store:
        store.add_experiment("again", replace(terminal.find("digits").record.spec, name="again"), 10.0)
        store.add_trial("again", 1, {}, 10.0)
        for state in ("PREPARING", "LOST", "WAITING", "PREPARING"):
            store.change_state("again", 1, TrialState(state), 11.0, reason="attempt 1 was lost: no power")
    row = summary(terminal.find("again")).splitlines()[2]
    assert "PREPARING (attempt 2)" in row
    assert row.endswith("attempt 1 was lost: no power")


def test_one_trial_is_stopped_by_its_number(terminal, add):
    add("digits", (DONE, 0.5), (("PREPARING", "RUNNING"), 0.4), closed=False)
    told = terminal.run("stop", "digits", "--trial", "1")
    assert told == "digits, trial 1: it had ended before; no process was running.\n"


def test_in_a_shell_the_first_line_of_a_cell_is_named_as_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_HOME", str(tmp_path / "home"))
    assert cli.main(["ls"]) == 0
    assert "Put %%autotrain on the first line" in capsys.readouterr().out


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

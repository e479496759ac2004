"""Trials that go on from others: more trials, a resumed experiment, clones with changes, and a start from a trial."""

from __future__ import annotations

import pytest

from jupyter_autotrain.testing import wait_until

TRAINS = """
state = checkpoint.load({"step": 0, "best": 0.0})
for step in range(state["step"] + 1, epochs + 1):
    state = {"step": step, "best": state["best"] + rate}
    checkpoint.save(state, step=step)
    report(step=step, acc=state["best"])
"""
SEARCH = "search: {rate: 'uniform(0.1, 0.9)', epochs: 'choice(2)'}\nobjective: maximize acc\nseed: 3"


def run(notebook, name, header, code=TRAINS):
    notebook.run(f"%%autotrain {name} --wait\n{header}\n---\n{code}")
    return notebook.value("_")


def parameters(experiment):
    return [trial.params for trial in experiment.trials]


def test_two_trials_and_three_more_are_the_five_that_it_would_have_had_at_once(notebook):
    whole = run(notebook, "whole", f"{SEARCH}\ntrials: 5")
    begun = run(notebook, "begun", f"{SEARCH}\ntrials: 2")
    _, shown = notebook.run("%autotrain update begun --trials 5 --concurrency 1")
    assert "begun: 5 trials, 1 at the same time." in shown
    assert begun.wait(240)
    assert begun.state == "SUCCEEDED"
    assert parameters(begun) == parameters(whole)
    assert begun.series("acc") == whole.series("acc")


def test_clones_of_the_best_trials_go_on_from_their_checkpoints_and_continue_their_curves(notebook):
    experiment = run(notebook, "cloned", f"{SEARCH}\ntrials: 3")
    best = experiment.best_trials(2)
    _, shown = notebook.run("%autotrain continue cloned --best 2 epochs=4")
    assert f"trial 4 goes on from trial {best[0]}, trial 5 goes on from trial {best[1]}" in shown
    assert experiment.wait(240)
    curves = experiment.series("acc")
    for clone, source in zip((4, 5), best, strict=True):
        rate = experiment.trials[source - 1].params["rate"]
        assert [*curves[clone][0]] == [1, 2, 3, 4]
        assert [*curves[clone][1]] == pytest.approx([rate * step for step in (1, 2, 3, 4)])
    assert f"goes on from trial {best[0]}" in notebook.run("%autotrain show cloned")[1]
    assert experiment.record.spec.trials == 5
    message = "\n".join(notebook.fails("%autotrain continue cloned width=4"))
    assert "width is not a parameter of cloned" in message
    assert "start_from: cloned#" in message


def test_an_experiment_starts_from_a_trial_of_another_one(notebook):
    first = run(notebook, "first", f"{SEARCH}\ntrials: 2")
    second = run(notebook, "second", "start_from: first#2\nobjective: maximize acc", f"epochs, rate = 3, 1.0\n{TRAINS}")
    (trial,) = second.trials
    assert (trial.started_from, trial.state) == ("first#2", "SUCCEEDED")
    assert [*second.series("acc")[1][0]] == [1, 2, 3]
    assert trial.value == pytest.approx(first.trials[1].value + 1)
    run(notebook, "empty", "objective: maximize acc", "report(acc=1)")
    lines = notebook.fails("%%autotrain third\nstart_from: empty\nobjective: maximize acc\n---\nreport(acc=1)")
    message = "\n".join(lines)
    assert "start_from: empty#1 has saved no checkpoint" in message


def test_a_stopped_experiment_is_resumed_where_it_was(notebook, tmp_path):
    flag = f"import os, time\nflag = {str(tmp_path / 'go')!r}"
    waits = f"{flag}\n{TRAINS}\nwhile not os.path.exists(flag):\n    time.sleep(0.05)"
    notebook.run(f"%%autotrain stopped\n{SEARCH}\ntrials: 2\n---\n{waits}")
    experiment = notebook.value("_")
    wait_until(lambda: len(experiment.metrics()) == 2, "both reports")
    notebook.run("%autotrain stop stopped")
    assert [str(trial.state) for trial in experiment.trials] == ["CANCELLED"]
    (tmp_path / "go").touch()
    _, shown = notebook.run("%autotrain resume stopped")
    assert "stopped runs trial 1 again and 1 more trial." in shown
    assert experiment.wait(240)
    assert [(trial.attempt, str(trial.state)) for trial in experiment.trials] == [(2, "SUCCEEDED"), (1, "SUCCEEDED")]
    assert "no stopped trial" in notebook.run("%autotrain resume stopped")[1]

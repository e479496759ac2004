"""Warnings as sentences: whose they are, and how often."""

from jupyter_autotrain.core.notes import WHOLE_EXPERIMENT, summarize_warnings
from jupyter_autotrain.core.records import Note


def note(number, text, times=1):
    return Note(1, number, 1, 0.0, "warning", text, times)


def test_a_warning_of_the_experiment_as_a_whole_names_no_trial():
    assert summarize_warnings([note(WHOLE_EXPERIMENT, "The hook x was not told.")], 5) == ["The hook x was not told."]
    twice = [note(WHOLE_EXPERIMENT, "the disk is slow"), note(WHOLE_EXPERIMENT, "the disk is slow")]
    assert summarize_warnings(twice, 5) == ["the disk is slow (2 times)."]


def test_a_warning_of_trials_names_the_first_and_counts_the_others():
    assert summarize_warnings([note(3, "a"), note(2, "a", 4)], 5) == ["5 warnings in trial 2 and 1 other; first: a."]
    assert summarize_warnings([note(WHOLE_EXPERIMENT, "a"), note(2, "a")], 5) == ["2 warnings in trial 2; first: a."]


def test_more_than_the_most_are_counted():
    assert summarize_warnings([note(1, "a"), note(1, "b")], 1)[1] == "1 more warning: see the logs (--stderr)."

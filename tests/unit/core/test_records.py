"""Trials as values of a cell are short tables."""

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.records import TrialRecord, Trials


def trial(number, **fields):
    return TrialRecord("e1", number, TrialState.SUCCEEDED, {"lr": 0.1}, value=0.5, **fields)


def test_a_list_of_trials_is_a_short_table_in_text_and_in_html():
    trials = Trials(trial(number) for number in range(1, 24))
    lines = repr(trials).splitlines()
    assert lines[0].split() == ["trial", "state", "value", "parameters"]
    assert lines[1].split() == ["1", "SUCCEEDED", "0.5", "lr=0.1"]
    assert lines[-1] == "and 3 more"
    assert trials._repr_html_().count("<tr>") == 21
    assert repr(Trials()) == "no trial yet"
    assert [one.number for one in trials[:2]] == [1, 2]


def test_one_trial_is_a_table_of_one_row_and_what_users_wrote_is_no_markup():
    html = trial(1, reason="<b>no</b>", started_s=1.0, ended_s=3.0)._repr_html_()
    assert "<td>2.0 s</td>" in html
    assert "&lt;b&gt;no&lt;/b&gt;" in html


def test_a_reason_cannot_steer_a_terminal():
    assert "\x1b" not in repr(Trials([trial(1, reason="\x1b[2Jgone")]))

"""Tests of what a program may submit, and the files of its request."""

from __future__ import annotations

import pytest

from jupyter_autotrain import backends, header
from jupyter_autotrain.client.agent_request import CellRequest, Grant, read_answer, write_answer
from jupyter_autotrain.errors import AutotrainError

GRANT = Grant(10, 600.0, ("local",))


def read(text, folder):
    return header.parse_cell("", f"{text}\n---\nreport(a=1)", backends.header_context(folder, {})).header


@pytest.mark.parametrize(
    ("text", "time_s"), [("trials: 3", 600), ("budget: {time: 60}", 60), ("budget: {time: 2h}", 600)]
)
def test_an_experiment_ends_within_the_time_of_the_grant(tmp_path, text, time_s):
    assert GRANT.limited(read(text, tmp_path)).budget.time == time_s


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("trials: 11", "asks for 11 trials"),
        ("backend: debug", "may run at debug"),
        ("backend: [local, debug]", "debug"),
    ],
)
def test_what_goes_beyond_the_grant_is_refused(tmp_path, text, found):
    with pytest.raises(AutotrainError, match=found):
        GRANT.limited(read(text, tmp_path))


def test_an_earlier_run_is_stopped_only_where_stopping_is_allowed(tmp_path):
    asked = read("on_rerun: stop", tmp_path)
    for may_stop, kept in ((False, "keep"), (True, "stop")):
        request = CellRequest("submit", "n.ipynb", "python3", (), "", "", 2, "mine", "me", GRANT, may_stop)
        limited = request.limited(asked)
        assert (limited.on_rerun, limited.trial_count, limited.name) == (kept, 2, "mine")


def test_a_request_and_its_first_answer_are_read_as_they_were_written(tmp_path):
    request = CellRequest("plan", "n.ipynb", "python3", ("a = 1",), "x", "y", None, "", "me", GRANT, may_stop=False)
    request.write(tmp_path)
    assert CellRequest.read(tmp_path) == request
    assert read_answer(tmp_path) is None
    write_answer(tmp_path, {"error": "first"})
    write_answer(tmp_path, {"error": "second"})
    assert read_answer(tmp_path) == {"error": "first"}

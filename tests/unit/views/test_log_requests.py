"""Tests of what views ask about logs: any attempt, what is too long for a message, and nothing outside of the trial."""

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Store
from jupyter_autotrain.views import log_requests
from jupyter_autotrain.views.log_requests import LogRequest


@pytest.fixture
def experiment(tmp_path):
    """One trial in its second attempt; each attempt has printed its number."""
    home = Home(tmp_path / "home")
    with Store.open(home) as store:
        store.add_experiment("e1", ExperimentSpec("digits", Bundle()), 1.0)
        store.add_trial("e1", 1, {}, 1.0)
        for state in ("PREPARING", "RUNNING", "FAILED", "WAITING"):
            store.change_state("e1", 1, TrialState(state), 2.0)
        for attempt in (1, 2):
            home.trial("e1", 1, attempt).mkdir(parents=True)
            (home.trial("e1", 1, attempt) / "stdout").write_text(f"attempt {attempt}\n")
        yield Experiment(home, store, "e1", {})


def asked(experiment, **content):
    return LogRequest.of(experiment, {"trial": 1, "stream": "stdout", **content})


def test_the_present_attempt_or_the_one_that_is_asked_for_is_read(experiment):
    assert asked(experiment).as_file()[1] == b"attempt 2\n"
    told, data = asked(experiment, attempt=1).as_file()
    assert (told["attempt"], told["name"], data) == (1, "digits-trial-1-stdout.txt", b"attempt 1\n")
    assert asked(experiment).as_file()[0]["name"] == "digits-trial-1-attempt-2-stdout.txt"
    found = asked(experiment, attempt=1).found({"query": "ATTEMPT", "match": 1})
    assert (found["kind"], found["attempt"], found["total"], found["text"]) == ("found", 1, 1, "attempt 1")


def test_of_a_log_that_is_too_long_for_a_message_its_place_is_told(experiment, monkeypatch):
    monkeypatch.setattr(log_requests, "_MOST_FILE_BYTES", 3)
    told, data = asked(experiment).as_file()
    assert data == b""
    assert str(experiment.directory(1) / "stdout") in told["text"]


@pytest.mark.parametrize(
    "content", [{"stream": "../../x"}, {"trial": "1"}, {"rank": "0"}, {"attempt": None}, {"stream": None}]
)
def test_what_names_no_log_is_not_answered(experiment, content):
    assert asked(experiment, **content) is None


def test_a_rank_and_a_trial_that_are_not_there_are_refused(experiment):
    for content in ({"rank": 7}, {"rank": -1}, {"trial": 9}):
        with pytest.raises(AutotrainError):
            asked(experiment, **content)


@pytest.mark.parametrize("query", ["", "x" * 1_000, None, 7])
def test_what_is_no_text_to_look_for_is_not_answered(experiment, query):
    assert asked(experiment).found({"query": query, "match": 1}) is None

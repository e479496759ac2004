"""Tests that an unreadable row is a store error that names it; references of any form find or do not find."""

import json
import sqlite3

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import StoreError, UnknownExperimentError
from jupyter_autotrain.store import Ingest, Store, repair


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


@pytest.fixture
def store(home):
    with Store.open(home) as opened:
        opened.add_experiment("e1", ExperimentSpec("digits", Bundle()), 1.0)
        opened.add_trial("e1", 1, {"lr": 0.1}, 1.0)
        opened.change_state("e1", 1, TrialState.PREPARING, 2.0)
        yield opened


def damage(home, statement):
    other = sqlite3.connect(home.store)
    with other:
        other.execute(statement)
    other.close()


@pytest.mark.parametrize(
    ("statement", "row"),
    [
        ("UPDATE trials SET state = 'RUNNINF'", "trial 1 of experiment e1"),
        ("UPDATE trials SET params = '{'", "trial 1 of experiment e1"),
        ("UPDATE trials SET placement = '7'", "trial 1 of experiment e1"),
        ("UPDATE trials SET reason = X''", "trial 1 of experiment e1"),
        ("UPDATE trials SET created_s = 'soon'", "trial 1 of experiment e1"),
        ("UPDATE moves SET reason = X''", "of trial 1 of experiment e1"),
        ("UPDATE moves SET state = X'ff'", "of trial 1 of experiment e1"),
        ("UPDATE experiments SET spec = '{\"name\": 1'", "experiment e1"),
        ("UPDATE experiments SET spec = '{}'", "experiment e1"),
        ("UPDATE experiments SET created_s = 'soon'", "experiment e1"),
    ],
)
def test_a_flipped_byte_is_told_with_its_row_and_what_to_do(store, home, statement, row):
    damage(home, statement)
    told = []
    for read in (store.experiments, store.listed, lambda: store.trials("e1"), lambda: store.state_changes("e1")):
        try:
            read()
        except StoreError as error:
            told.append(str(error))
    assert told
    assert any(row in text for text in told)
    assert all("doctor --repair" in text for text in told)


def test_a_trial_of_which_an_earlier_change_is_damaged_goes_on_and_keeps_its_last_copy(store, home):
    home.experiment("e1").mkdir(parents=True)
    store.change_state("e1", 1, TrialState.RUNNING, 3.0)
    damage(home, "UPDATE moves SET reason = X'ff'")
    assert store.change_state("e1", 1, TrialState.SUCCEEDED, 4.0).state is TrialState.SUCCEEDED
    assert json.loads(home.trial_rows("e1", 1).read_text())["state"] == "RUNNING"


def test_the_copy_of_a_trial_that_is_tried_very_often_stays_short(store, home):
    home.experiment("e1").mkdir(parents=True)
    for attempt in range(150):
        store.change_state("e1", 1, TrialState.WAITING, float(attempt), reason=f"again {attempt}")
        store.change_state("e1", 1, TrialState.PREPARING, float(attempt))
    kept = json.loads(home.trial_rows("e1", 1).read_text())["moves"]
    assert len(kept) == 200
    assert [move["reason"] for move in kept[-2:]] == ["again 149", ""]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE chunks SET columns = 0.5",
        "UPDATE chunks SET columns = 'text'",
        "UPDATE chunks SET columns = X''",
        "UPDATE chunks SET columns = substr(columns, 1, 25)",
        "UPDATE chunks SET columns = substr(columns, 1, 24)",
        "UPDATE chunks SET last_id = last_id + 1",
        "UPDATE series SET name = X'ff'",
    ],
)
def test_a_damaged_piece_of_a_metric_is_told_with_its_trial(store, home, statement):
    store.change_state("e1", 1, TrialState.RUNNING, 2.0)
    store.ingest([Ingest("e1", 1, 1, "metrics", 9, points=[("loss", step, 1.0, 0.5) for step in range(3)])])
    damage(home, statement)
    told = []
    for read in (store.points, store.metric_chunks, store.last_steps, lambda e: store.series(e, "loss")):
        try:
            read("e1")
        except StoreError as error:
            told.append(str(error))
    assert told
    assert all("of trial 1" in text and "doctor --repair" in text for text in told)


def test_a_damaged_note_is_told_with_its_trial(store, home):
    store.change_state("e1", 1, TrialState.RUNNING, 2.0)
    store.ingest([Ingest("e1", 1, 1, "metrics", 9, notes=[(1.0, "warning", "hot", 1)])])
    damage(home, "UPDATE notes SET text = X'ff'")
    with pytest.raises(StoreError, match="a note of trial 1"):
        store.notes("e1")


def test_a_damaged_name_does_not_hide_the_error_for_another(store, home):
    damage(home, "UPDATE experiments SET name = X'ff'")
    with pytest.raises(UnknownExperimentError, match="There is no experiment yet"):
        store.find("digits")


REFERENCES = (
    "a@" + "9" * 5000, "-" + "9" * 5000, "a@" + "9" * 19, "-" + "9" * 19, "@", "a@", "\0", "\ud800", "x" * 100_000, "%",
    "@1", "\u0663", "a@\u0663", "", " ",
)  # fmt: skip


def test_a_reference_of_any_form_is_found_or_unknown(store):
    for reference in REFERENCES:
        with pytest.raises(UnknownExperimentError) as caught:
            store.find(reference)
        assert len(str(caught.value)) < 1000
    assert store.find("-0").id == "e1"


def test_a_trial_number_of_any_size_is_an_error_of_the_store(store):
    for number in (10**18, 10**19, 10**5000, -(10**19)):
        with pytest.raises(StoreError):
            store.trial("e1", number)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE trials SET state = 'RUNNINF'",
        "UPDATE trials SET params = '{', placement = '7', ref = '['",
        "UPDATE moves SET state = X'ff'",
        "UPDATE trials SET state = 'X'; UPDATE moves SET state = 'Y'",
    ],
)
def test_what_a_row_error_asks_for_sets_the_row_right(store, home, statement):
    store.add_experiment("e2", ExperimentSpec("other", Bundle()), 1.0)
    store.close()
    for part in statement.split(";"):
        damage(home, part)
    report = repair.repair(home.store)
    assert report.damaged
    with Store.open(home) as mended:
        (trial,) = mended.trials("e1")
        assert trial.state in {TrialState.PREPARING, TrialState.LOST}
        mended.state_changes("e1")
        assert {record.id for record in mended.experiments()} == {"e1", "e2"}


def test_an_experiment_whose_specification_is_gone_is_taken_out_and_named(store, home):
    store.add_experiment("e2", ExperimentSpec("other", Bundle()), 1.0)
    store.close()
    damage(home, "UPDATE experiments SET spec = '{\"name\": 1' WHERE id = 'e1'")
    report = repair.repair(home.store)
    assert "1 with a specification" in report.damaged["experiments"]
    with Store.open(home) as mended:
        assert [record.id for record in mended.experiments()] == ["e2"]


@pytest.mark.parametrize("statement", ["UPDATE trials SET state = 'RUNNINF'", "UPDATE experiments SET spec = '{}'"])
def test_an_experiment_that_cannot_be_read_keeps_no_other_from_running(store, home, statement):
    damage(home, statement)
    store.add_experiment("e2", ExperimentSpec("mnist", Bundle()), 1.0)
    assert [record.id for record in store.unfinished()] == ["e2"]

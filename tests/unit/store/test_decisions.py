"""Decisions of the manager, as rows."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from jupyter_autotrain.agent.states import FinalState, TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import DamagedRowError
from jupyter_autotrain.store import Store
from jupyter_autotrain.store.database import migrate
from jupyter_autotrain.store.schema import MIGRATIONS

SPEC = ExperimentSpec("mnist", Bundle())
EARLY = FinalState(TrialState.EARLY_STOPPED, "worse than the median")


@pytest.fixture
def store(tmp_path):
    with Store.open(Home(tmp_path)) as store:
        store.add_experiment("a1", SPEC, 0.0)
        yield store


def test_the_first_decision_on_an_attempt_stays_and_the_next_attempt_has_none(store):
    store.decide_ends("a1", {(1, 1): EARLY})
    store.decide_ends("a1", {(1, 1): FinalState(TrialState.CANCELLED, "stopped"), (2, 1): EARLY})
    assert store.end_decisions("a1") == {(1, 1): EARLY, (2, 1): EARLY}


def test_a_decision_on_an_experiment_can_be_withdrawn_and_a_retry_withdraws_all(store):
    store.decide("a1", "objective", "trial 1 never reported it")
    assert store.decision("a1", "objective") == "trial 1 never reported it"
    store.decide("a1", "objective", "")
    assert store.decision("a1", "objective") == ""
    store.decide("a1", "closing", "the tuner failed")
    store.begin_retry("a1", 5.0)
    assert store.decision("a1", "closing") == ""


def test_block_reasons_replace_those_before(store):
    store.set_block_reasons("a1", {1: "waits", 2: "waits \ud800"})
    assert store.block_reasons("a1") == {1: "waits", 2: "waits ?"}
    store.set_block_reasons("a1", {2: "cannot be looked at"})
    assert store.block_reasons("a1") == {2: "cannot be looked at"}


def test_a_deleted_experiment_leaves_no_decision(store, tmp_path):
    store.decide_ends("a1", {(1, 1): EARLY})
    store.decide("a1", "closing", "x")
    store.set_block_reasons("a1", {1: "waits"})
    store.delete_experiment("a1")
    with closing(sqlite3.connect(Home(tmp_path).store)) as connection:
        for table in ("end_decisions", "experiment_decisions", "block_reasons"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_a_decision_whose_state_is_damaged_names_its_trial(store, tmp_path):
    store.decide_ends("a1", {(3, 1): EARLY})
    with closing(sqlite3.connect(Home(tmp_path).store, isolation_level=None)) as connection:
        connection.execute("UPDATE end_decisions SET state = 'EARLY_STOPPEE'")
    with pytest.raises(DamagedRowError, match="decision on trial 3"):
        store.end_decisions("a1")


def test_a_store_of_before_gets_the_tables_when_it_is_opened(tmp_path):
    home = Home(tmp_path / "old")
    home.root.mkdir(mode=0o700)
    with closing(sqlite3.connect(home.store, isolation_level=None)) as connection:
        migrate(connection, home.store, MIGRATIONS[:6])
        connection.execute(
            "INSERT INTO experiments (id, name, version, spec, created_s) "
            "VALUES ('a1', 'm', 1, '{\"name\": \"m\", \"bundle\": {}}', 1.0)"
        )
    with Store.open(home) as store:
        store.decide_ends("a1", {(1, 1): EARLY})
        assert store.end_decisions("a1") == {(1, 1): EARLY}
        assert store.block_reasons("a1") == {}

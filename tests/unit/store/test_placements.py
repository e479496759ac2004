"""Where a trial runs is in the store, node by node."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

from jupyter_autotrain.agent.json import to_json
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.records import UnreachableNode
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, NodePlacement, Placement
from jupyter_autotrain.store import Store
from jupyter_autotrain.store.database import migrate
from jupyter_autotrain.store.schema import MIGRATIONS

BEFORE_PLACEMENTS = 7
BEFORE_BACKENDS = 8


def test_a_placement_comes_back_as_it_was_given(tmp_path):
    placement = Placement((NodePlacement("gpu1", ("GPU-1", "GPU-2")), NodePlacement("gpu2", ("GPU-3",))), backend="lab")
    with Store.open(Home(tmp_path)) as store:
        store.add_experiment("a1", ExperimentSpec("mnist", Bundle()), 0.0)
        store.add_trial("a1", 1, {}, 1.0)
        store.change_state("a1", 1, TrialState.PREPARING, 2.0, placement=placement)
        trial = store.trial("a1", 1)
    assert trial.placement == placement
    assert trial.gpus == ("GPU-1", "GPU-2", "GPU-3")


def test_the_placement_of_each_attempt_stays_in_the_log_of_state_changes(tmp_path):
    first = Placement((NodePlacement("gpu1", (), "machine-1"),), "lab")
    second = Placement((), "local")
    with Store.open(Home(tmp_path)) as store:
        store.add_experiment("a1", ExperimentSpec("mnist", Bundle()), 0.0)
        store.add_trial("a1", 1, {}, 1.0)
        store.change_state("a1", 1, TrialState.PREPARING, 2.0, reason="it ends first there", placement=first)
        store.change_state("a1", 1, TrialState.WAITING, 3.0)
        assert store.trial("a1", 1).placement == Placement()
        store.change_state("a1", 1, TrialState.PREPARING, 4.0, placement=second)
        changes = store.state_changes("a1")
    assert [change.placement for change in changes] == [None, first, None, second]
    assert changes[1].reason == "it ends first there"


def test_nodes_that_do_not_answer_are_kept_until_they_are_replaced(tmp_path):
    nodes = [UnreachableNode("gpu1", 0.0, 3), UnreachableNode("gpu2", 60.0, 1)]
    with Store.open(Home(tmp_path)) as store:
        store.add_experiment("a1", ExperimentSpec("mnist", Bundle()), 0.0)
        store.set_unreachable_nodes("a1", nodes)
        assert store.unreachable_nodes("a1") == nodes
        store.set_unreachable_nodes("a1", [])
        assert store.unreachable_nodes("a1") == []


def test_devices_kept_by_an_older_version_are_still_held(tmp_path):
    path = tmp_path / "store.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, path, MIGRATIONS[:BEFORE_PLACEMENTS])
        connection.execute("PRAGMA foreign_keys = OFF")
        for number, gpus in ((1, '["GPU-1"]'), (2, "[]"), (3, "damaged")):
            connection.execute(
                "INSERT INTO trials (experiment, number, state, params, created_s, gpus) VALUES (1, ?, 'x', '', 0, ?)",
                (number, gpus),
            )
        migrate(connection, path)
        kept = [text for (text,) in connection.execute("SELECT placement FROM trials ORDER BY number")]
    assert kept == ['[{"node":"","accelerators":["GPU-1"]}]', "[]", "damaged"]


def test_the_backend_that_an_older_version_knew_is_the_only_choice_of_its_experiment(tmp_path):
    home = Home(tmp_path)
    home.root.mkdir(exist_ok=True)
    with closing(sqlite3.connect(home.store, isolation_level=None)) as connection:
        migrate(connection, home.store, MIGRATIONS[:BEFORE_BACKENDS])
        spec = to_json(ExperimentSpec("mnist", Bundle()))
        del spec["backends"]
        spec |= {"backend": "debug", "backend_options": {"verbose": True}}
        columns = "key, id, name, version, spec, created_s"
        connection.execute(
            f"INSERT INTO experiments ({columns}) VALUES (1, 'a1', 'mnist', 1, ?, 0)", (json.dumps(spec),)
        )
        connection.execute(f"INSERT INTO experiments ({columns}) VALUES (2, 'a2', 'mnist', 2, 'damaged', 0)")
        for number, state in ((1, "RUNNING"), (2, "WAITING")):
            row = (number, state)
            connection.execute(
                "INSERT INTO trials (experiment, number, state, params, created_s) VALUES (1, ?, ?, '{}', 0)", row
            )
    with Store.open(home) as store:
        assert store.experiment("a1").spec.backends == (
            BackendChoice(Profile("debug", "debug"), options={"verbose": True}),
        )
        assert [trial.placement.backend for trial in store.trials("a1")] == ["debug", ""]

"""The list of experiments: its order by best value, the tags of the home, and what is deleted while it is read."""

from __future__ import annotations

import time

import pytest

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.store import Ingest, Store
from jupyter_autotrain.views.experiment_list import ListQuery, experiments_json

LOSS = Objective("loss", Direction.MINIMIZE)


@pytest.fixture
def store(tmp_path):
    with Store.open(Home(tmp_path / "home")) as opened:
        yield opened


def add(store, name, *values, objective=LOSS):
    spec = ExperimentSpec(name, Bundle(), objective=objective, trials=max(len(values), 1))
    store.add_experiment(name, spec, time.time())
    for number, value in enumerate(values, start=1):
        store.add_trial(name, number, {}, time.time())
        for state in (TrialState.PREPARING, TrialState.RUNNING):
            store.change_state(name, number, state, time.time())
        points = [(objective.metric, 1, 0.0, value)]
        store.ingest([Ingest(name, number, 1, "metrics", 1, points=points, objective=objective)])


def names(store, **query):
    return [item["name"] for item in experiments_json(store, ListQuery(**query))["experiments"]]


def test_the_better_is_first_whichever_way_the_objective_points(store):
    add(store, "poor", 3.0, 2.0)
    add(store, "none")
    add(store, "good", 5.0, 0.5)
    assert names(store, sort="best") == ["good", "poor", "none"]
    assert names(store, sort="best", is_descending=False) == ["poor", "good", "none"]
    accuracy = Objective("acc")
    add(store, "worse", 0.25, objective=accuracy)
    add(store, "better", 0.25, 0.75, objective=accuracy)
    shown = names(store, sort="best")
    assert shown.index("better") < shown.index("worse")


def test_the_best_of_the_list_is_the_best_of_the_store(store):
    add(store, "equal", 1.0, 0.5, 0.5, 2.0)
    item = experiments_json(store, ListQuery())["experiments"][0]
    best = store.best_trial("equal", LOSS)
    assert item["best"] == {"trial": best.number, "value": best.value} == {"trial": 2, "value": 0.5}


def test_a_failed_experiment_says_why_the_first_of_its_failed_trials_failed(store):
    add(store, "hungry", 1.0, 2.0)
    store.change_state("hungry", 1, TrialState.CANCELLED, time.time())
    store.change_state("hungry", 2, TrialState.FAILED, time.time(), reason="ran out of memory\nLower width.")
    store.close_experiment("hungry", time.time())
    add(store, "refused", 1.0)
    store.change_state("refused", 1, TrialState.FAILED, time.time(), reason="no such file")
    store.close_experiment("refused", time.time(), reason="3 trials failed alike")
    items = experiments_json(store, ListQuery())["experiments"]
    assert {item["name"]: item["reason"] for item in items} == {
        "hungry": "ran out of memory",
        "refused": "3 trials failed alike",
    }


def test_the_list_has_all_tags_of_the_home_whatever_is_filtered(store):
    add(store, "cats")
    add(store, "dogs")
    store.annotate_experiment("cats", tags=["paper", "baseline"])
    store.annotate_experiment("dogs", tags=["paper"])
    listed = experiments_json(store, ListQuery(tag="baseline"))
    assert listed["tags"] == ["baseline", "paper"]
    assert [item["name"] for item in listed["experiments"]] == ["cats"]


def test_an_experiment_that_is_gone_has_no_values(store):
    add(store, "here", 1.0)
    assert store.trial_values(["gone", "here"]) == {"gone": [], "here": [(1, 1.0)]}

"""The list of experiments: its order by best value, the tags of the home, and what is deleted while it is read."""

from __future__ import annotations

import time
from typing import get_args

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import BackendChoice, Bundle, ExperimentSpec, Origin
from jupyter_autotrain.server.experiments import ListAsked
from jupyter_autotrain.store import Ingest, Store
from jupyter_autotrain.views.experiment_list import ListQuery, experiments_json

LOSS = Objective("loss", Direction.MINIMIZE)
SORTS = get_args(ListAsked.model_fields["sort"].annotation)


@pytest.fixture
def store(tmp_path):
    with Store.open(Home(tmp_path / "home")) as opened:
        yield opened


def add(store, name, *values, objective=LOSS, notebook=""):
    spec = ExperimentSpec(name, Bundle(), objective=objective, trials=max(len(values), 1), origin=Origin(notebook))
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


def finish(store, name):
    store.change_state(name, 1, TrialState.SUCCEEDED, time.time())
    store.close_experiment(name, time.time())


def test_what_runs_and_waits_is_in_the_first_page_of_a_list_by_state_however_old_it_is(store):
    for name in ("running", "waiting"):
        add(store, name, *([1.0] if name == "running" else []))
    for number in range(3):
        add(store, f"done {number}", 1.0)
        finish(store, f"done {number}")
    assert names(store, limit=3, by_group=True) == ["running", "waiting", "done 2"]
    assert names(store, limit=3, by_group=True, offset=3) == ["done 1", "done 0"]
    assert names(store, limit=3) == ["done 2", "done 1", "done 0"]


def test_a_list_is_filtered_by_state_place_metric_and_date_and_tells_what_there_is_to_choose(store):
    far = BackendChoice(Profile("far", "ssh", {}))
    add(store, "near", 1.0)
    store.add_experiment("away", ExperimentSpec("away", Bundle(), backends=(far,)), 1_000.0)
    add(store, "ended", 2.0, objective=Objective("acc"))
    finish(store, "ended")
    assert names(store, state="SUCCEEDED") == ["ended"]
    assert names(store, state="RUNNING", place="far") == []
    assert names(store, place="far") == ["away"]
    assert names(store, metric="acc") == ["ended"]
    assert names(store, until_s=2_000.0) == ["away"]
    assert names(store, since_s=2_000.0) == ["ended", "near"]
    listed = experiments_json(store, ListQuery(state="FAILED"))
    assert (listed["total"], listed["places"], listed["metrics"]) == (0, ["far", "local"], ["acc", "loss"])


def test_a_metric_that_is_not_the_objective_is_found_too(store):
    add(store, "seen", 1.0)
    store.ingest([Ingest("seen", 1, 1, "metrics", 2, points=[("lr", 1, 0.0, 0.1)])])
    add(store, "other", 1.0)
    assert names(store, metric="lr") == ["seen"]


def test_every_column_orders_the_list_and_numbers_in_names_count(store):
    for number, name in ((10, "run-10"), (9, "run-9")):
        add(store, name, float(number), notebook=f"n{number}.ipynb")
    store.annotate_experiment("run-10", tags=["paper"])
    finish(store, "run-9")
    ascending = {sort: names(store, sort=sort, is_descending=False) for sort in SORTS}
    assert ascending == {
        "created": ["run-10", "run-9"],
        "ended": ["run-9", "run-10"],
        "took": ["run-9", "run-10"],
        "name": ["run-9", "run-10"],
        "state": ["run-10", "run-9"],
        "trials": ["run-9", "run-10"],
        "best": ["run-10", "run-9"],
        "metric": ["run-9", "run-10"],
        "place": ["run-9", "run-10"],
        "notebook": ["run-9", "run-10"],
        "tags": ["run-10", "run-9"],
    }


def test_the_notebooks_of_a_page_are_counted_with_what_is_not_in_it(store):
    for number in range(3):
        add(store, f"e{number}", notebook="a.ipynb")
    add(store, "other", notebook="b.ipynb")
    assert experiments_json(store, ListQuery(limit=2))["notebooks"] == {"a.ipynb": 3, "b.ipynb": 1}
    assert experiments_json(store, ListQuery(limit=1))["notebooks"] == {"b.ipynb": 1}


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

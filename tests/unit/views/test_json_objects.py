"""The JSON that a notebook keeps of a run: small, without secrets and paths, drawn without the home."""

import json
import math
import time

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Ingest, Store
from jupyter_autotrain.views.card import LIMIT_BYTES as CARD_LIMIT_BYTES
from jupyter_autotrain.views.card import card
from jupyter_autotrain.views.json_objects import LIMIT_BYTES, MIME_TYPE

OBJECTIVE = Objective("acc")


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


@pytest.fixture
def store(home):
    with Store.open(home) as opened:
        yield opened


def fill(store, trials, points, name="digits", reason="", metrics=("acc",)):
    store.add_experiment("e1", ExperimentSpec(name, Bundle(), objective=OBJECTIVE, trials=trials), time.time())
    for number in range(1, trials + 1):
        store.add_trial("e1", number, {"lr": 0.1}, time.time())
        for state in (TrialState.PREPARING, TrialState.RUNNING):
            store.change_state("e1", number, state, time.time())
        rows = []
        for metric in metrics:
            rows += [(metric, step, 0.0, math.tanh(step * number / 500)) for step in range(points)]
        store.ingest([Ingest("e1", number, 1, "metrics", 1, points=rows, objective=OBJECTIVE)])
        store.change_state("e1", number, TrialState.SUCCEEDED, time.time())
    store.close_experiment("e1", time.time(), reason)
    return store.experiment("e1")


def test_it_tells_state_best_trial_and_curves(store):
    run = card(store, fill(store, trials=2, points=5)).run
    assert (run["version"], run["id"], run["name"], run["state"]) == (1, "e1", "digits", "SUCCEEDED")
    assert run["final"] is True
    assert run["counts"] == {"SUCCEEDED": 2}
    assert run["best"] == {"trial": 2, "value": pytest.approx(math.tanh(8 / 500))}
    assert [(curve["metric"], curve["trial"]) for curve in run["curves"]] == [("acc", 2), ("acc", 1)]
    assert run["curves"][0]["steps"] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("trials", "points"), [(1, 100_000), (60, 2_000)])
def test_it_stays_below_its_limit_and_all_forms_below_theirs(store, trials, points):
    made = card(store, fill(store, trials, points, metrics=("acc", "loss", "x" * 1_000)))
    assert len(json.dumps(made.run).encode()) <= LIMIT_BYTES
    assert made.run["curves"]
    assert made.size_bytes <= CARD_LIMIT_BYTES


def test_long_names_and_reasons_are_cut_and_paths_taken_out(store):
    record = fill(store, 1, 2, name="n" * 5_000, reason=f"/home/ada/secret/place is full. {'r' * 5_000}")
    text = json.dumps(card(store, record).run)
    assert len(text) < 2_000
    assert "/home/ada" not in text


def test_the_bundle_of_an_experiment_has_all_forms(store, home):
    fill(store, trials=1, points=3)
    bundle = Experiment(home, store, "e1", {})._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", MIME_TYPE}
    assert bundle[MIME_TYPE]["id"] == "e1"
    json.dumps(bundle[MIME_TYPE], allow_nan=False)

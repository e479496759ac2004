"""Curves of a bounded number of points: none too many, ends and extremes stay, rows stay together."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Ingest, Store
from jupyter_autotrain.views.series import SPARKLINE_POINTS, curves_json, sparkline

VALUES = st.one_of(st.floats(-1e6, 1e6), st.just(math.nan), st.just(math.inf))
OBJECTIVE = Objective("acc")


@pytest.fixture
def store(tmp_path):
    with Store.open(Home(tmp_path / "home")) as opened:
        yield opened


def fill(store, experiment_id, trials, chunk=7):
    """Trials that reported these values, in pieces; the time of a step is ten times the step."""
    store.add_experiment(experiment_id, ExperimentSpec("a", Bundle(), objective=OBJECTIVE, trials=len(trials)), 0.0)
    for number, values in enumerate(trials, 1):
        store.add_trial(experiment_id, number, {}, 0.0)
        for first in range(0, len(values), chunk):
            piece = enumerate(values[first : first + chunk], first)
            points = [("acc", step, step * 10.0, value) for step, value in piece]
            row = Ingest(experiment_id, number, 1, "metrics", first + 1, points=points, objective=OBJECTIVE)
            store.ingest([row])


def line_of(store, experiment_id):
    return sparkline(store, store.experiment(experiment_id), store.trial_values([experiment_id])[experiment_id])


@settings(max_examples=40)
@given(trials=st.lists(st.lists(VALUES, min_size=1, max_size=60), min_size=1, max_size=5), most=st.integers(4, 80))
def test_curves_are_bounded_and_keep_what_is_seen(tmp_path_factory, trials, most):
    with Store.open(Home(tmp_path_factory.mktemp("home"))) as store:
        fill(store, "a1", trials)
        found = curves_json(store, "a1", "acc", None, most)
    curves = found["curves"]
    assert sum(len(curve["steps"]) for curve in curves) <= most
    assert [curve["trial"] for curve in curves] + found["left_out"] == list(range(1, len(trials) + 1))
    for curve in curves:
        values = trials[curve["trial"] - 1]
        finite = [value for value in values if math.isfinite(value)]
        assert curve["points"] == len(values)
        assert curve["values"] == [or_null(values[step]) for step in curve["steps"]]
        assert curve["times_s"] == [step * 10.0 for step in curve["steps"]]
        assert (curve["steps"][0], curve["steps"][-1]) == (0, len(values) - 1)
        shown = [value for value in curve["values"] if value is not None]
        assert (min(shown, default=0), max(shown, default=0)) == (min(finite, default=0), max(finite, default=0))
        assert "null, null, null" not in json.dumps(curve["values"])


def or_null(value):
    return value if math.isfinite(value) else None


def test_attempts_join_at_the_step_of_resume(store):
    fill(store, "a1", [[1.0, 2.0, 3.0]])
    store.ingest([Ingest("a1", 1, 2, "metrics", 1, points=[("acc", 2, 50.0, 9.0)])])
    [curve] = curves_json(store, "a1", "acc", None, 100)["curves"]
    assert (curve["steps"], curve["values"], curve["points"]) == ([0, 1, 2], [1.0, 2.0, 9.0], 3)


def test_a_sparkline_is_the_curve_of_one_trial_or_the_values_of_all(store):
    fill(store, "one", [[float(step) for step in range(1000)]])
    line = line_of(store, "one")
    assert (line[0], line[-1]) == (0.0, 999.0)
    assert len(line) <= SPARKLINE_POINTS
    fill(store, "many", [[0.1], [0.7], [0.4]])
    assert line_of(store, "many") == [0.1, 0.7, 0.4]

"""The store's best trial is that of the one rule, found without reading all trials."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Direction, Objective, best_of
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Ingest, Store

VALUES = st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.0]), st.floats(allow_nan=False, allow_infinity=False))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with Store.open(Home(tmp_path_factory.mktemp("best") / "home")) as store:
        yield store


@settings(max_examples=30)
@given(values=st.lists(VALUES, max_size=8), direction=st.sampled_from(Direction))
def test_the_best_trial_of_the_store_is_that_of_the_rule(store, values, direction):
    experiment_id = f"e{len(store.experiments(limit=10_000))}"
    objective = Objective("acc", direction)
    store.add_experiment(experiment_id, ExperimentSpec("best", Bundle(), objective=objective), 1.0)
    for number, value in enumerate(values, 1):
        store.add_trial(experiment_id, number, {}, 1.0)
        if value is not None:
            store.ingest(
                [Ingest(experiment_id, number, 1, "metrics", 9, [("acc", 0, 1.0, value)], objective=objective)]
            )
    assert store.best_trial(experiment_id, objective) == best_of(objective, store.trials(experiment_id))
    assert store.best_trial(experiment_id, None) is None
    assert store.trials(experiment_id, offset=1, limit=3) == store.trials(experiment_id)[1:4]

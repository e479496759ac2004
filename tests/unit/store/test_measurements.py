"""Measured plans: told by notes of trials, kept when their experiments are deleted."""

import json

import pytest

from jupyter_autotrain.agent.json import to_json
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.measurement import MEASUREMENT_LEVEL, Measurement
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Ingest, Store

TOLD = Measurement("Net", "DDP over 2", "2xlocal", ("local",), 0.4, 1e6, (0.5, 0.6), (1, 2))


@pytest.fixture
def store(tmp_path):
    with Store.open(Home(tmp_path / "home")) as opened:
        opened.add_experiment("a1", ExperimentSpec("a", Bundle()), 1.0)
        opened.add_trial("a1", 1, {}, 1.0)
        yield opened


def tell(store, *texts, cursor=1):
    notes = [(5.0, MEASUREMENT_LEVEL, text, 1) for text in texts]
    store.ingest([Ingest("a1", 1, 1, "metrics", cursor, notes=notes)])


def test_what_a_trial_has_measured_is_kept_when_its_experiment_is_deleted(store):
    tell(store, json.dumps(to_json(TOLD)))
    store.delete_experiment("a1")
    (found,) = store.measurements()
    assert found.measured == TOLD
    assert found.time_s == 5.0


def test_a_stream_that_is_read_again_measures_nothing_twice(store):
    tell(store, json.dumps(to_json(TOLD)))
    store.forget_reports("a1", 1, 1)
    tell(store, json.dumps(to_json(TOLD)))
    assert len(store.measurements()) == 1


def test_the_newest_comes_first_and_what_is_no_measurement_is_left_out(store):
    tell(store, json.dumps(to_json(TOLD)))
    empty = json.dumps({**to_json(TOLD), "step_s": []})
    wrong = json.dumps({**to_json(TOLD), "predicted_step_s": "soon"})
    later = json.dumps({**to_json(TOLD), "plan": "FSDP over 2"})
    tell(store, "{", "[]", "5", '"x"', "{}", empty, wrong, later, cursor=2)
    assert [found.measured.plan for found in store.measurements()] == ["FSDP over 2", "DDP over 2"]

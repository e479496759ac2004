"""Changes: every kind of write is seen once, under an id that only grows; tags and notes of experiments."""

import time

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import StoreError, UnknownExperimentError
from jupyter_autotrain.store import Annotation, Ingest, Store


@pytest.fixture
def store(tmp_path):
    with Store.open(Home(tmp_path / "home")) as opened:
        opened.add_experiment("a1", ExperimentSpec("a", Bundle(), trials=3), time.time())
        opened.add_trial("a1", 1, {}, time.time())
        yield opened


def report(store, offset):
    store.ingest([Ingest("a1", 1, 1, "metrics", offset, points=[("loss", offset, 0.0, 1.0)])])


WRITES = {
    "add_trial": (lambda store: store.add_trial("a1", 2, {}, 0.0), "state"),
    "change_state": (lambda store: store.change_state("a1", 1, TrialState.PREPARING, 0.0), "state"),
    "close": (lambda store: store.close_experiment("a1", 0.0), "state"),
    "stop": (lambda store: store.request_stop("a1"), "state"),
    "annotate": (lambda store: store.annotate_experiment("a1", note="x"), "state"),
    "points": (lambda store: report(store, 8), "metrics"),
    "note": (lambda store: store.ingest([Ingest("a1", 1, 1, "metrics", 9, notes=[(0.0, "info", "x", 1)])]), "notes"),
    "delete": (lambda store: store.delete_experiment("a1"), "state"),
}


@pytest.mark.parametrize("name", WRITES)
def test_every_write_is_a_change_with_a_greater_id(store, name):
    write, kind = WRITES[name]
    before = store.last_change_id()
    write(store)
    changes = store.changes(before)
    assert [(change.experiment_id, change.kind) for change in changes] == [("a1", kind)]
    assert changes[0].id == store.last_change_id() > before


def test_only_the_newest_change_of_a_kind_is_kept(store):
    for offset in range(8, 108):
        report(store, offset)
    assert [change.kind for change in store.changes()] == ["state", "metrics"]


def test_what_was_seen_is_not_given_again(store):
    report(store, 8)
    seen = store.changes()[-1].id
    assert store.changes(seen) == []
    report(store, 9)
    assert [change.kind for change in store.changes(seen)] == ["metrics"]


def test_a_deleted_experiment_leaves_one_change(store):
    report(store, 8)
    store.delete_experiment("a1")
    assert [(change.experiment_id, change.kind) for change in store.changes()] == [("a1", "state")]


def test_tags_and_note_are_kept_apart_and_go_with_the_experiment(store):
    assert store.annotations() == {}
    store.annotate_experiment("a1", tags=["baseline", "gpu", "baseline"])
    assert store.annotate_experiment("a1", note="the first") == Annotation(("baseline", "gpu"), "the first")
    assert store.annotations() == {"a1": Annotation(("baseline", "gpu"), "the first")}
    store.delete_experiment("a1")
    assert store.annotations() == {}


def test_an_unknown_experiment_takes_no_tags(store):
    with pytest.raises(UnknownExperimentError):
        store.annotate_experiment("nothing", tags=["x"])


def test_a_read_only_handle_reads_and_cannot_write(store, tmp_path):
    with Store.open(Home(tmp_path / "home"), is_read_only=True) as reader:
        assert reader.experiment("a1").name == "a"
        with pytest.raises(StoreError, match="cannot be written"):
            reader.request_stop("a1")
        report(store, 8)
        assert reader.changes()[-1].kind == "metrics"

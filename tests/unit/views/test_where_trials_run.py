"""Every view shows where a trial runs, once there is more than one place, and which nodes do not answer."""

from __future__ import annotations

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.records import Trials, UnreachableNode
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, NodePlacement, Placement
from jupyter_autotrain.store import Store
from jupyter_autotrain.views.card import card
from jupyter_autotrain.views.feed import Feed
from jupyter_autotrain.views.json_objects import trial_json
from jupyter_autotrain.views.summary import summary

BACKENDS = tuple(BackendChoice(Profile(name, "test")) for name in ("here", "lab"))


@pytest.fixture
def store(tmp_path):
    with Store.open(Home(tmp_path / "home")) as opened:
        opened.add_experiment("e1", ExperimentSpec("digits", Bundle(), backends=BACKENDS, trials=4), 100.0)
        yield opened


def put(store, number, backend, *nodes):
    placement = Placement(tuple(NodePlacement(node) for node in nodes), backend)
    store.add_trial("e1", number, {}, 100.0)
    store.change_state("e1", number, TrialState.PREPARING, 100.0, placement=placement)


def labels(frame):
    return {trial["number"]: trial["runs_on"] for trial in frame.content["trials"]}


def test_one_place_is_not_shown_and_several_are_in_every_view(store, tmp_path):
    feed = Feed(store, "e1")
    put(store, 1, "here", "my-machine")
    assert labels(feed.delta(101.0)) == {1: ""}
    assert "runs on" not in repr(Trials(store.trials("e1")))
    assert "runs on" not in summary(Experiment(Home(tmp_path / "home"), store, "e1", {}))
    put(store, 2, "lab", "gpu1")
    assert labels(feed.delta(101.0)) == {1: "here", 2: "lab"}
    put(store, 3, "lab", "gpu2")
    assert labels(feed.delta(101.0)) == {2: "lab: gpu1", 3: "lab: gpu2"}
    put(store, 4, "lab", "gpu1", "gpu2")
    table = repr(Trials(store.trials("e1")))
    shown = card(store, store.experiment("e1"))
    in_a_shell = summary(Experiment(Home(tmp_path / "home"), store, "e1", {}))
    for text in (table, Trials(store.trials("e1"))._repr_html_(), shown.text, shown.html, in_a_shell):
        assert "runs on" in text
        assert "lab: gpu1, gpu2" in text
    assert "my-machine" not in table


def test_json_names_backend_and_nodes(store):
    put(store, 1, "lab", "gpu1", "gpu2")
    found = trial_json(store.trial("e1", 1))
    assert (found["backend"], found["nodes"]) == ("lab", ["gpu1", "gpu2"])


def test_a_node_that_does_not_answer_is_in_the_feed_and_on_the_card_until_it_does(store):
    feed = Feed(store, "e1")
    assert "warnings" not in feed.delta(101.0).content
    store.set_unreachable_nodes("e1", [UnreachableNode("gpu1", 0.0, 3)])
    (sentence,) = feed.delta(102.0).content["warnings"]
    assert sentence.startswith("gpu1 does not answer since ")
    assert sentence.endswith("; 3 trials go on there.")
    assert sentence in card(store, store.experiment("e1")).text
    assert "warnings" not in feed.delta(103.0).content
    store.set_unreachable_nodes("e1", [])
    assert feed.delta(104.0).content["warnings"] == []

"""Tests of what a front end knows of an experiment that ends while its view is being made, or attaches."""

from __future__ import annotations

import threading

import comm
import pytest
from comm.base_comm import BaseComm

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Store
from jupyter_autotrain.widgets.live import LiveView

HELD_S = 0.3


class FrontEnd(BaseComm):
    """The other end of a view's comm: it shows the state that came last, and asks as `session.ts` does.

    Attributes:
        meanwhile: Called once while a whole frame is on its way from the thread that this front end asks.
    """

    seq = -1
    state = ""

    def __init__(self, **more):
        self.meanwhile = None
        self.ended = threading.Event()
        self._asked_by = threading.current_thread()
        super().__init__(**more)

    def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **more):
        if msg_type == "comm_open" and "snapshot" in data["state"]:  # another is of the view's layout
            self._show(data["state"]["snapshot"])
        elif msg_type == "comm_msg" and data.get("content", {}).get("kind") == "frame":
            if self.meanwhile and threading.current_thread() is self._asked_by:
                meanwhile, self.meanwhile = self.meanwhile, None
                meanwhile()
            self._show(data["content"])

    def _show(self, frame):
        self.seq = max(self.seq, frame["seq"])
        self.state = frame["experiment"]["state"]
        if frame["experiment"]["final"]:
            self.ended.set()

    def attach(self, seq):
        content = {"kind": "attach", "seq": seq}
        self.handle_msg({"content": {"data": {"method": "custom", "content": content}}, "buffers": []})


@pytest.fixture
def running(tmp_path):
    """Yield an experiment whose trial runs."""
    home = Home(tmp_path / "home")
    with Store.open(home) as store:
        store.add_experiment("e1", ExperimentSpec("digits", Bundle()), 1.0)
        store.add_trial("e1", 1, {}, 1.0)
        store.change_state("e1", 1, TrialState.PREPARING, 2.0)
        store.change_state("e1", 1, TrialState.RUNNING, 3.0)
        yield Experiment(home, store, "e1", {})


def end(experiment):
    experiment.store.change_state(experiment.id, 1, TrialState.SUCCEEDED, 4.0)
    experiment.store.close_experiment(experiment.id, 5.0)


def test_an_experiment_that_ends_while_its_view_opens_is_shown_as_ended(running, monkeypatch):
    def create_comm(**more):
        front_end = FrontEnd(**more)
        if front_end.state:
            end(running)
        return front_end

    monkeypatch.setattr(comm, "create_comm", create_comm)
    ended = threading.Event()
    view = LiveView(running, ended.set, is_ended=False)
    view.comm.attach(view.comm.seq)
    assert ended.wait(HELD_S + 5)
    assert view.comm.state == "SUCCEEDED"
    view.close()


def test_an_experiment_that_ends_while_a_front_end_attaches_is_shown_as_ended(running, monkeypatch):
    monkeypatch.setattr(comm, "create_comm", FrontEnd)
    ended = threading.Event()
    view = LiveView(running, ended.set, is_ended=False)
    front_end = view.comm

    def end_meanwhile():
        end(running)
        front_end.ended.wait(HELD_S)  # the sender of the view may come first; it must not

    front_end.meanwhile = end_meanwhile
    front_end.attach(-1)
    assert ended.wait(HELD_S + 5)
    assert front_end.state == "SUCCEEDED"
    view.close()

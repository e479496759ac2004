"""A manager that a signal holds keeps its lock: whoever needs it is told so in words, and nothing hangs."""

from __future__ import annotations

import os
import signal
from functools import partial

import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.client.submitting import submit
from jupyter_autotrain.errors import ManagerError
from jupyter_autotrain.manager.contact import ManagerIdentity
from jupyter_autotrain.testing import wait_until
from jupyter_autotrain.verbs import doctor
from jupyter_autotrain.views.feed import Feed
from tests.fault.paused_manager import pause_between_writes

pytestmark = pytest.mark.fault
until = wait_until
WAITS = "import os, time\nreport(v=1)\nwhile not os.path.exists('../go_on'):\n    time.sleep(0.05)\n"


def test_a_manager_held_by_a_signal_is_named_with_what_lets_it_go_on(served):
    served.submit("e1", WAITS)
    until(lambda: served.store.points("e1"), "the trial reports")
    identity = ManagerIdentity.read(served.home.manager_lock)
    experiment = Experiment(served.home, served.store, "e1", {})
    feed = Feed(served.store, "e1", partial(manager.stopped_by_signal, served.home))
    assert "warnings" not in feed.delta(0.0).content
    try:
        pause_between_writes(identity.pid, served.home)
        until(lambda: identity.is_stopped, "the manager is held")
        advice = f"kill -CONT {identity.pid}"
        assert advice in experiment.why()[0]
        assert advice in feed.delta(1.0).content["warnings"][0]
        assert advice in doctor._check_manager(served.home).text
        for ask in (experiment.stop, experiment.wait, lambda: submit("report(v=1)", home=served.home, name="other")):
            with pytest.raises(ManagerError, match=advice):
                ask()
        assert len(served.store.experiments()) == 1
    finally:
        os.kill(identity.pid, signal.SIGCONT)
    until(lambda: not identity.is_stopped, "the manager goes on")
    assert experiment.why() == []
    assert feed.delta(2.0).content["warnings"] == []
    (served.home.trial("e1", 1, 1) / "go_on").touch()
    assert experiment.wait(240)
    assert served.states("e1") == ["SUCCEEDED"]

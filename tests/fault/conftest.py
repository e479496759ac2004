"""A home that a real manager process serves, and one with the local backend alone."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import time
from contextlib import suppress

import psutil
import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.agent.pool import warm_list
from jupyter_autotrain.agent.service import warm_starts
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.manager.contact import ManagerIdentity
from jupyter_autotrain.store import Store
from jupyter_autotrain.testing import wait_until
from tests.fault.local_trials import local

until = wait_until


class Served:
    """A home with a real manager."""

    def __init__(self, root):
        self.home = Home(root)
        self.store = Store.open(self.home)

    def submit(self, experiment_id, code, **spec):
        bundle = self.home.bundle(experiment_id)
        bundle.mkdir(parents=True)
        (bundle / "main.py").write_text(textwrap.dedent(code))
        spec = ExperimentSpec("exp", Bundle(python=sys.executable), **spec)
        self.store.add_experiment(experiment_id, spec, time.time())
        manager.ensure(self.home)
        manager.notify(self.home)

    def kill(self):
        identity = ManagerIdentity.read(self.home.manager_lock)
        if identity is not None and identity.alive:
            with suppress(ProcessLookupError):
                os.kill(identity.pid, signal.SIGKILL)
            until(lambda: not identity.alive, "the manager is gone")

    def states(self, experiment_id):
        return [trial.state.value for trial in self.store.trials(experiment_id)]

    def processes(self):
        """Every process that was started for this home, but for those that wait for more trials to begin."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                words = " ".join(process.cmdline())
                if str(self.home.root) in words and "start.py warm" not in words:
                    found.append(process.pid)
        return found

    def close(self):
        for experiment in self.store.unfinished():
            request = self.store.add_request("stop", experiment.id, {}, time.time())
            manager.ensure(self.home)
            manager.notify(self.home)
            until(lambda request=request: self.store.request(request).done, "the last stop")
        self.kill()
        warm_list.end_all(self.home.root / warm_starts.FOLDER)
        self.store.close()


@pytest.fixture
def served(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_IDLE_MIN", "5")
    served = Served(tmp_path / "home")
    yield served
    served.close()


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


@pytest.fixture
def backend(home):
    yield local(home)
    warm_list.end_all(home.root / warm_starts.FOLDER)

"""Verbs without a notebook and without a manager: a home with experiments, and what each verb writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_autotrain import manager, verbs
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import attach
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Ingest, Store
from jupyter_autotrain.verbs import doctor


@pytest.fixture(autouse=True)
def no_question_to_jupyterlab(monkeypatch):
    """`doctor` starts JupyterLab's own command for its sidebar, which takes a second; test_doctor_sidebar.py does."""
    monkeypatch.setattr(doctor, "_check_sidebar", lambda environ: iter(()))


class Terminal:
    """Runs verbs in a home and gives what they write."""

    def __init__(self, home, cwd):
        self.home = home
        self.cwd = cwd
        self.shown = []
        self.origin = None
        self.noted = []
        self.now_s = 100.0

    def run(self, *words):
        written = []
        command = verbs.CommandContext(
            home=self.home,
            environ={"HOME": str(self.cwd)},
            cwd=self.cwd,
            write_raw=written.append,
            show=self.shown.append,
            keep=lambda name, value: None,
            now=lambda: self.now_s,
            evaluate=lambda text: None,
            show_plan=lambda plan: None,
            origin=self.origin,
            note=self.noted.append,
        )
        verbs.run(words, command)
        return "".join(written)

    def find(self, name):
        return attach(name, home=self.home)

    def json(self, *words):
        return json.loads(self.run(*words, "--json"))


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(manager, "ensure", lambda home: None)
    monkeypatch.setattr(manager, "notify", lambda home, message=None: True)
    return Terminal(Home(tmp_path / "home"), tmp_path)


@pytest.fixture
def add(terminal):
    """Add an experiment whose trials went through the states given, with the value given."""

    def add(name, *trials, backend="local", objective="acc", closed=True, **spec_fields):
        spec = ExperimentSpec(
            name,
            Bundle(),
            trials=len(trials) or 1,
            backends=(BackendChoice(Profile(backend, backend)),),
            objective=Objective(objective) if objective else None,
            **spec_fields,
        )
        with Store.open(terminal.home) as store:
            experiment_id = f"{name}{len(store.experiments())}"
            store.add_experiment(experiment_id, spec, 10.0)
            for number, (states, value) in enumerate(trials, 1):
                store.add_trial(experiment_id, number, {"lr": number / 10}, 10.0)
                for time_s, state in enumerate(states, 20):
                    store.change_state(experiment_id, number, TrialState(state), float(time_s))
                if value is not None:
                    points = [(objective, 0, 1.0, value)]
                    store.ingest([Ingest(experiment_id, number, 1, "metrics", 1, points, objective=spec.objective)])
            if closed:
                store.close_experiment(experiment_id, 50.0)
        return experiment_id

    return add

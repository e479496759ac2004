"""The panel of an experiment, and experiments in the store that it shows."""

from __future__ import annotations

import time

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Ingest
from tests.browser.lab_page import run_command

OBJECTIVE = Objective("acc")


def open_panel(page, experiment_id):
    """Open the panel of an experiment, as a click on it does."""
    run_command(page, "autotrain:open-experiment", id=experiment_id)
    return page.locator(".jp-Autotrain-panel:visible")


def add(store, experiment_id, name, trials=2):
    """Add an experiment without trials."""
    spec = ExperimentSpec(name, Bundle(), objective=OBJECTIVE, trials=trials, header="trials: 2")
    store.add_experiment(experiment_id, spec, time.time())


def begin(store, experiment_id, number, **params):
    store.add_trial(experiment_id, number, params, time.time())
    for each in (TrialState.PREPARING, TrialState.RUNNING):
        store.change_state(experiment_id, number, each, time.time())


def report(store, experiment_id, number, values, metric="acc"):
    """Report values, at the steps that follow."""
    cursor = store.cursor(experiment_id, number, 1, "metrics")
    points = [(metric, cursor + step, time.time(), value) for step, value in enumerate(values)]
    after = cursor + len(values)
    store.ingest([Ingest(experiment_id, number, 1, "metrics", after, points=points, objective=OBJECTIVE)])

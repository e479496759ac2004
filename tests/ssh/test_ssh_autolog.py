"""Cells without a `report` that run on a host: loops of libraries report there, and the curves come back here."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.testing import write_bundle
from tests.journeys.test_autolog import KERAS, LIGHTNING, TRANSFORMERS, XGBOOST
from tests.ssh.served_home import ServedHome, until

SCIKIT_LEARN = """\
from sklearn.datasets import load_iris
from sklearn.neural_network import MLPClassifier
X, y = load_iris(return_X_y=True)
model = MLPClassifier((8,), max_iter=4, random_state=0, early_stopping=True).fit(X, y)
history = {"loss": list(enumerate(model.loss_curve_)), "validation_score": list(enumerate(model.validation_scores_))}"""
PRINTED = "\nimport json\nprint(json.dumps(history))"
OTHERS = {"transformers": TRANSFORMERS, "xgboost": XGBOOST, "keras": KERAS, "lightning": LIGHTNING}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def run(served: ServedHome, cell: str, trials: int = 1, **options: object) -> Experiment:
    """Run a cell on a host, to its good end."""
    backend = replace(served.lab(("h1",)), options=options)  # type: ignore[arg-type]  # the options are JSON
    spec = ExperimentSpec("by-itself", write_bundle(served.home.bundle("e1"), cell + PRINTED), backends=(backend,))
    served.store.add_experiment("e1", replace(spec, trials=trials), time.time())
    served.begin()
    until(lambda: served.store.experiment("e1").state.is_final, "the end")
    experiment = Experiment(served.home, served.store, "e1", {})
    states = [trial.state for trial in experiment.trials]
    assert states == [TrialState.SUCCEEDED] * trials, experiment.logs(1, stream=wire.STDERR)
    return experiment


def assert_plotted(experiment: Experiment, number: int = 1) -> None:
    """Compare the curves that the store has with what the library kept on the host."""
    history = json.loads(experiment.logs(number).splitlines()[-1])
    curves: dict[str, list[list[float | None]]] = {}
    for point in experiment.store.points("e1"):
        if point.number == number:
            curves.setdefault(point.name, []).append([point.step, point.value])
    for name, curve in history.items():
        assert curves.get(name) == [[step, pytest.approx(value, rel=1e-6)] for step, value in curve], name


def test_the_loop_of_a_library_on_a_host_is_plotted_here_and_the_trial_says_so(served: ServedHome) -> None:
    experiment = run(served, SCIKIT_LEARN)
    assert_plotted(experiment)
    assert "scikit-learn reports its metrics by itself" in experiment.logs(1, stream=wire.STDERR)


@pytest.mark.long
def test_trials_that_begin_with_the_imports_made_are_plotted_alike(served: ServedHome) -> None:
    experiment = run(served, SCIKIT_LEARN, trials=4, reuse=True, reuse_idle=5.0)
    for number in (1, 4):
        assert_plotted(experiment, number)


@pytest.mark.long
@pytest.mark.parametrize("library", OTHERS)
def test_each_library_is_plotted_as_it_keeps_its_values(served: ServedHome, library: str) -> None:
    pytest.importorskip(library)
    assert_plotted(run(served, OTHERS[library]))

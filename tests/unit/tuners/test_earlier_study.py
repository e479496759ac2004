"""A search that goes on from a study of Optuna, by the address of its storage."""

from __future__ import annotations

from dataclasses import replace

import optuna
import pytest

from jupyter_autotrain import tuners
from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.space import Choice, Uniform
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import AutotrainError

SPEC = ExperimentSpec(
    "x", Bundle(), search={"x": Uniform(-10.0, 10.0), "kind": Choice(("a", "b"))}, seed=1, tuner="tpe",
    objective=Objective("loss", Direction.MINIMIZE),
)  # fmt: skip


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('study')}/old.db"
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.RandomSampler(seed=1)
    study = optuna.create_study(storage=url, study_name="old", sampler=sampler)
    for _ in range(30):
        trial = study.ask()
        x = trial.suggest_float("x", -10, 10)
        study.tell(trial, (x - 3) ** 2 + (trial.suggest_categorical("kind", ["a", "b"]) == "a"))
    study.ask()
    return url


def of_study(url, **more):
    return replace(SPEC, tuner_options={"study": url, **more})


def test_a_search_begins_where_the_study_ended(url):
    spec = tuners.prepared(of_study(url, n_startup_trials=10))
    assert len(spec.tuner_options["earlier"]) == 30
    tuner = tuners.create(spec)
    first = [tuner.ask(number)["x"] for number in (1, 2, 3)]
    assert sum(abs(x - 3) < 3 for x in first) >= 2
    fresh = tuners.create(SPEC)
    assert first != [fresh.ask(number)["x"] for number in (1, 2, 3)]
    assert tuners.create(spec).ask(1)["x"] == first[0]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"tuner_options": {"study": "sqlite:////nowhere/at/all.db"}}, "cannot be read"),
        ({"study_name": "odl"}, "Did you mean 'old'"),
        ({"objective": Objective("loss")}, "is to minimize, this search to maximize"),
        ({"search": {"y": Uniform(0.0, 1.0)}}, "Its parameters are kind, x; `search:` has y"),
    ],
)
def test_a_study_that_cannot_be_gone_on_from_is_told(url, change, what):
    name = change.pop("study_name", None)
    spec = replace(of_study(url, **({"study_name": name} if name else {})), **change)
    with pytest.raises(AutotrainError, match=what):
        tuners.prepared(spec)

"""A tuner of another package: found by its entry point, held to the contract, told apart when it cannot be made."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from jupyter_autotrain import header, tuners
from jupyter_autotrain.core.space import RandInt, Uniform
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.header import search_keys
from jupyter_autotrain.testing import TunerContract

SPACE = {"x": Uniform(0.0, 1.0), "n": RandInt(0, 10)}


class GoldenRatio:
    """An example of a tuner: the low-discrepancy sequence of the golden ratio, in each parameter."""

    def __init__(self, spec):
        self.names = list(spec.search)

    def tell(self, trial):
        pass

    def ask(self, number):
        share = number * 0.6180339887 % 1
        return {"x": share, "n": int(share * 10)}


def fails(spec):
    raise RuntimeError("no licence")


class TestGoldenRatio(TunerContract):
    space = SPACE

    def create(self, spec):
        return GoldenRatio(spec)


@pytest.fixture
def installed(monkeypatch):
    points = EntryPoints(
        EntryPoint(name, f"{__name__}:{what}", tuners.GROUP)
        for name, what in (("golden", "GoldenRatio"), ("bad", "fails"))
    )
    monkeypatch.setattr(EntryPoint, "load", lambda self: globals()[self.attr])
    for module in (tuners, search_keys):
        monkeypatch.setattr(module, "entry_points", lambda group: points.select(group=group))


def test_a_tuner_of_an_installed_package_is_named_like_any_other(installed):
    found = header.parse_cell("", "search: {x: 'uniform(0, 1)'}\ntuner: golden\n---\n", header.HeaderContext()).header
    spec = replace(found.to_spec(bundle=Bundle(), name="x"), search=SPACE)
    assert spec.tuner == "golden"
    assert isinstance(tuners.create(spec), GoldenRatio)


def test_one_that_cannot_be_made_is_told_with_its_package(installed):
    with pytest.raises(AutotrainError, match=r"The tuner 'bad' of .*:fails cannot be made: RuntimeError: no licence"):
        tuners.check(ExperimentSpec("x", Bundle(), search=SPACE, tuner="bad"))


def test_an_unknown_one_is_told_with_the_nearest(installed):
    with pytest.raises(AutotrainError, match="Did you mean 'golden'"):
        tuners.create(ExperimentSpec("x", Bundle(), search=SPACE, tuner="goldn"))

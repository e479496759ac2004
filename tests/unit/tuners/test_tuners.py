"""Search algorithms: the contract for each, what each finds, and what loading them costs."""

import math
import statistics
import subprocess
import sys
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain import tuners
from jupyter_autotrain.core import grid
from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.space import Choice, NestedSpace, Normal, RandInt, Uniform
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.core.tuner import Observation
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.testing.tuners import TunerContract, lies_in

SMALL = {
    "width": Choice((32, 64)),
    "depth": RandInt(1, 4),
    "net": Choice((NestedSpace("a", {"k": RandInt(0, 2)}), "b")),
}


def spec(search, tuner, seed=0, direction=Direction.MINIMIZE):
    return ExperimentSpec("x", Bundle(), search=search, tuner=tuner, seed=seed, objective=Objective("loss", direction))


class TestTpe(TunerContract):
    def create(self, spec):
        return tuners.create(ExperimentSpec(**{**_fields(spec), "tuner": "tpe"}))


class TestRandom(TunerContract):
    def create(self, spec):
        return tuners.create(ExperimentSpec(**{**_fields(spec), "tuner": "random"}))


class TestEvolution(TunerContract):
    def create(self, spec):
        return tuners.create(ExperimentSpec(**{**_fields(spec), "tuner": "evolution"}))


class TestGrid(TunerContract):
    def create(self, spec):
        return tuners.create(ExperimentSpec(**{**_fields(spec), "tuner": "grid"}))


class TestBatch(TunerContract):
    space = MappingProxyType({"width": Choice((8, 16, 32, 64, 128, 256, 512))})

    def create(self, spec):
        return tuners.create(ExperimentSpec(**{**_fields(spec), "tuner": "batch"}))


def _fields(value):
    return {name: getattr(value, name) for name in type(value).__slots__}


def best_of(tuner, search, height, trials, seed):
    algorithm = tuners.create(spec(search, tuner, seed))
    history = []
    for number in range(1, trials + 1):
        params = algorithm.suggest(number, history)
        history.append(Observation(number, params, TrialState.SUCCEEDED, height(params)))
    return min(seen.value for seen in history)


@pytest.mark.parametrize("tuner", ["tpe", "evolution"])
def test_a_learning_tuner_beats_random_on_a_quadratic_in_the_median(tuner):
    search = {"x": Uniform(-5, 5), "y": Uniform(-5, 5)}

    def height(params):
        return (params["x"] - 2) ** 2 + (params["y"] + 1) ** 2

    learned = statistics.median(best_of(tuner, search, height, 35, seed) for seed in range(5))
    guessed = statistics.median(best_of("random", search, height, 35, seed) for seed in range(5))
    assert learned < guessed


def test_the_grid_gives_every_point_once_and_then_ends():
    algorithm = tuners.create(spec(SMALL, "grid"))
    points = [algorithm.suggest(number, []) for number in range(1, 19)]
    assert grid.count(SMALL) == 18
    assert len({str(point) for point in points}) == 18
    assert all(lies_in(SMALL, point) for point in points)
    assert algorithm.suggest(19, []) is None


def test_the_grid_takes_the_multiples_of_q_and_both_bounds():
    algorithm = tuners.create(spec({"p": Uniform(0.05, 0.5, q=0.1)}, "grid"))
    values = [
        algorithm.suggest(number, [])["p"] for number in range(1, grid.count({"p": Uniform(0.05, 0.5, q=0.1)}) + 1)
    ]
    assert values == [0.05, 0.1, 0.2, 0.3, 0.4, 0.5]


def test_a_batch_gives_whole_configurations_in_order():
    options = ({"lr": 0.1, "width": 8}, {"lr": 0.2, "width": 16})
    algorithm = tuners.create(spec({"combined": Choice(options)}, "batch"))
    assert [algorithm.suggest(number, []) for number in (1, 2, 3)] == [*options, None]


@pytest.mark.parametrize("name", tuners.names())
def test_without_a_search_every_trial_runs_the_cell_as_it_is(name):
    assert tuners.create(spec({}, name)).suggest(3, []) == {}


def test_without_a_seed_two_experiments_differ():
    algorithm = tuners.create(spec({"x": Uniform(0, 1)}, "random", seed=None))
    assert algorithm.suggest(1, []) != algorithm.suggest(1, [])


def test_an_unknown_tuner_names_those_there_are():
    with pytest.raises(AutotrainError, match="tpe, random, evolution, grid, batch"):
        tuners.create(spec({}, "anneal"))


FINITE = st.floats(-1e6, 1e6)
UNIFORM = st.builds(lambda a, b, q: Uniform(min(a, b), max(a, b), q=q), FINITE, FINITE, st.none() | st.floats(1e-3, 10))
LOG = st.builds(
    lambda a, b, q: Uniform(min(a, b), max(a, b), log=True, q=q),
    st.floats(1e-9, 1e6), st.floats(1e-9, 1e6), st.none() | st.floats(1e-3, 10),
)  # fmt: skip
NORMAL = st.builds(Normal, st.floats(-100, 100), st.floats(1e-3, 10), st.booleans(), st.none() | st.floats(1e-3, 10))
INTEGER = st.builds(lambda low, n: RandInt(low, low + n), st.integers(-1000, 1000), st.integers(1, 1000))
OPTIONS = st.lists(st.integers() | st.booleans() | st.text(max_size=3) | st.none(), min_size=1, max_size=4)
FLAT = UNIFORM | LOG | NORMAL | INTEGER | st.builds(lambda o: Choice(tuple(o)), OPTIONS)
NESTED = st.builds(
    lambda space: Choice((NestedSpace("n", space), 1)), st.dictionaries(st.sampled_from("pq"), FLAT, max_size=2)
)
SPACES = st.dictionaries(st.sampled_from("abcd"), FLAT | NESTED, min_size=1, max_size=3)


@pytest.mark.parametrize("tuner", ["random", "evolution", "grid", "tpe"])
@settings(max_examples=12)
@given(search=SPACES, seed=st.integers(0, 2**32 - 1))
def test_every_suggestion_lies_in_any_space(tuner, search, seed):
    algorithm = tuners.create(spec(search, tuner, seed))
    history = []
    for number in range(1, 14):
        params = algorithm.suggest(number, history)
        if params is None:
            assert number > grid.count(search)
            return
        assert lies_in(search, params), params
        history.append(Observation(number, params, TrialState.SUCCEEDED, float(number % 5)))


def test_random_needs_no_optuna():
    code = (
        "import sys; from jupyter_autotrain import tuners; from jupyter_autotrain.core.spec import *\n"
        "tuners.create(ExperimentSpec('x', Bundle(), tuner='random')); assert 'optuna' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_normal_is_drawn_by_its_share():
    assert grid.from_unit(Normal(3, 2), 0.5) == pytest.approx(3)
    assert grid.from_unit(Normal(0, 1, log=True), 0.5) == pytest.approx(1)
    assert math.isclose(grid.from_unit(Normal(0, 1), 0.975), 1.959964, rel_tol=1e-5)
    assert grid.from_unit(Uniform(0, 1, q=0.4), 0.99) == 0.8

"""Search algorithms: the contract for each, what each finds, and what loading them costs."""

import statistics
import subprocess
import sys
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain import tuners
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.space import Choice, NestedSpace, Normal, RandInt, Uniform, count_points, lies_in, point_at
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.core.tuner import Observation
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.testing.tuners import TunerContract
from jupyter_autotrain.tuners import samplers

SMALL = {
    "width": Choice((32, 64)),
    "depth": RandInt(1, 4),
    "net": Choice((NestedSpace("a", {"k": RandInt(0, 2)}), "b")),
}


def spec(search, tuner, seed=0, direction=Direction.MINIMIZE):
    return ExperimentSpec("x", Bundle(), search=search, tuner=tuner, seed=seed, objective=Objective("loss", direction))


class TestTpe(TunerContract):
    def create(self, spec):
        return tuners.create(replace(spec, tuner="tpe"))


class TestRandom(TunerContract):
    def create(self, spec):
        return tuners.create(replace(spec, tuner="random"))


class TestEvolution(TunerContract):
    def create(self, spec):
        return tuners.create(replace(spec, tuner="evolution"))


class TestQmc(TunerContract):
    def create(self, spec):
        return tuners.create(replace(spec, tuner="qmc"))


class TestCmaEs(TunerContract):
    def create(self, spec):
        return tuners.create(replace(spec, tuner="cmaes"))


@pytest.mark.long
class TestGp(TunerContract):
    space = MappingProxyType({"x": Uniform(0, 1), "y": Uniform(1e-3, 1, log=True)})
    trials = 8

    def create(self, spec):
        return tuners.create(replace(spec, tuner="gp", tuner_options={"n_startup_trials": 4}))

    def test_ten_trials_and_fifteen_more_are_twenty_five(self):
        pass  # each takes long; the test of a restart says the same of 8 trials


class TestAnySamplerOfOptuna(TunerContract):
    def create(self, spec):
        return tuners.create(replace(spec, tuner="optuna:NSGAIIISampler", tuner_options={"population_size": 4}))


class TestFiniteSpace(TunerContract):
    space = MappingProxyType({"a": RandInt(0, 4), "net": Choice((NestedSpace("n", {"k": RandInt(0, 4)}), "b"))})

    def create(self, spec):
        return tuners.create(replace(spec, tuner="evolution"))


class TestGrid(TunerContract):
    def create(self, spec):
        return tuners.create(replace(spec, tuner="grid"))


class TestBatch(TunerContract):
    space = MappingProxyType({"width": Choice((8, 16, 32, 64, 128, 256, 512))})

    def create(self, spec):
        return tuners.create(replace(spec, tuner="batch"))


def told(algorithm, numbers):
    """Return the points of these trials, each told before the next."""
    points = []
    for number in numbers:
        points.append(algorithm.ask(number))
        algorithm.tell(Observation(number, points[-1], TrialState.SUCCEEDED, float(number)))
    return points


def best_of(tuner, search, height, trials, seed):
    algorithm = tuners.create(spec(search, tuner, seed))
    values = []
    for number in range(1, trials + 1):
        params = algorithm.ask(number)
        values.append(height(params))
        algorithm.tell(Observation(number, params, TrialState.SUCCEEDED, values[-1]))
    return min(values)


@pytest.mark.parametrize(("tuner", "trials"), [("tpe", 35), ("cmaes", 35), ("evolution", 80)])
def test_a_learning_tuner_beats_random_on_a_quadratic_in_the_median(tuner, trials):
    search = {"x": Uniform(-5, 5), "y": Uniform(-5, 5)}

    def height(params):
        return (params["x"] - 2) ** 2 + (params["y"] + 1) ** 2

    learned = statistics.median(best_of(tuner, search, height, trials, seed) for seed in range(5))
    guessed = statistics.median(best_of("random", search, height, trials, seed) for seed in range(5))
    assert learned < guessed


def test_the_grid_gives_every_point_once_and_then_ends():
    algorithm = tuners.create(spec(SMALL, "grid"))
    points = told(algorithm, range(1, 19))
    assert count_points(SMALL) == 18
    assert len({str(point) for point in points}) == 18
    assert all(lies_in(SMALL, point) for point in points)
    assert algorithm.ask(19) is None


def test_the_grid_takes_the_multiples_of_q_and_both_bounds():
    algorithm = tuners.create(spec({"p": Uniform(0.05, 0.5, q=0.1)}, "grid"))
    values = [algorithm.ask(number)["p"] for number in range(1, count_points({"p": Uniform(0.05, 0.5, q=0.1)}) + 1)]
    assert values == [0.05, 0.1, 0.2, 0.3, 0.4, 0.5]


def test_a_batch_gives_whole_configurations_in_order():
    options = ({"lr": 0.1, "width": 8}, {"lr": 0.2, "width": 16})
    algorithm = tuners.create(spec({"combined": Choice(options)}, "batch"))
    assert [algorithm.ask(number) for number in (1, 2, 3)] == [*options, None]


@pytest.mark.parametrize("name", tuners.names())
def test_without_a_search_every_trial_runs_the_cell_as_it_is(name):
    assert tuners.create(spec({}, name)).ask(3) == {}


def test_without_a_seed_two_experiments_differ():
    one, other = (tuners.create(spec({"x": Uniform(0, 1)}, "random", seed=None)) for _ in range(2))
    assert one.ask(1) != other.ask(1)


def test_an_unknown_tuner_names_those_there_are():
    with pytest.raises(AutotrainError, match="There are tpe, random, evolution, cmaes, gp, qmc, grid, batch"):
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
    given = set()
    for number in range(1, 14):
        params = algorithm.ask(number)
        if params is None:
            assert len(given) == len({str(point_at(search, index)) for index in range(count_points(search))})
            return
        assert lies_in(search, params), params
        given.add(str(params))
        algorithm.tell(Observation(number, params, TrialState.SUCCEEDED, float(number % 5)))


def test_a_gaussian_process_suggests_from_a_few_trials():
    one, other = (
        tuners.create(replace(spec({"x": Uniform(0, 1)}, "gp"), tuner_options={"n_startup_trials": 2}))
        for _ in range(2)
    )
    for algorithm in (one, other):
        for number, x in enumerate((0.1, 0.4, 0.9), 1):
            algorithm.tell(Observation(number, {"x": x}, TrialState.SUCCEEDED, (x - 0.3) ** 2))
    assert one.ask(4) == other.ask(4)
    assert 0.1 < one.ask(4)["x"] < 0.9


def test_a_grid_needs_no_optuna():
    code = (
        "import sys; from jupyter_autotrain import tuners; from jupyter_autotrain.core.spec import *\n"
        "tuners.create(ExperimentSpec('x', Bundle(), tuner='grid')); assert 'optuna' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("tuner", ["tpe", "random", "evolution", "qmc"])
def test_a_finite_space_is_used_up_when_each_point_was_given_once(tuner):
    algorithm = tuners.create(spec(SMALL, tuner))
    assert len({str(point) for point in told(algorithm, range(1, 19))}) == 18
    assert algorithm.ask(19) is None


def pareto_distance(tuner, trials):
    """Return how far the trials are on average from the front of two parabolas."""
    search = {"x": Uniform(-10, 10), "y": Uniform(-10, 10)}
    both = replace(spec(search, tuner, seed=1), more_objectives=(Objective("b", Direction.MINIMIZE),))
    algorithm = tuners.create(both)
    distances = []
    for number in range(1, trials + 1):
        x, y = algorithm.ask(number).values()
        distances.append(abs(y) + max(0, -x, x - 2))
        seen = Observation(number, {"x": x, "y": y}, TrialState.SUCCEEDED, x**2 + y**2, ((x - 2) ** 2 + y**2,))
        algorithm.tell(seen)
    return statistics.mean(distances[-20:])


@pytest.mark.parametrize(("tuner", "trials", "share"), [("tpe", 60, 0.5), ("evolution", 120, 0.8)])
def test_several_objectives_are_weighed_against_each_other(tuner, trials, share):
    assert pareto_distance(tuner, trials) < share * pareto_distance("random", trials)


def test_a_search_keeps_away_from_what_breaks_a_constraint():
    algorithm = tuners.create(spec({"x": Uniform(0, 1)}, "tpe", direction=Direction.MAXIMIZE))
    given = []
    for number in range(1, 61):
        x = algorithm.ask(number)["x"]
        given.append(x)
        algorithm.tell(Observation(number, {"x": x}, TrialState.SUCCEEDED, x, (), {"x <= 0.5": x - 0.5}))
    assert statistics.mean(x <= 0.6 for x in given[-20:]) > 0.6


def test_what_a_sampler_lacks_is_told_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setattr(samplers.util, "find_spec", lambda name: None)
    with pytest.raises(AutotrainError, match=r"GPSampler needs torch and scipy, .*(?s:.*)pip install torch scipy"):
        tuners.create(spec({"x": Uniform(0, 1)}, "gp"))


@pytest.mark.parametrize(
    ("tuner", "options", "what"),
    [
        ("optuna:GPSamplr", {}, "Did you mean GPSampler"),
        ("tpe", {"n_startup_trails": 3}, "Did you mean 'n_startup_trials'"),
        ("optuna:PartialFixedSampler", {}, "without fixed_params and base_sampler"),
        ("optuna:TPESampler", {"seed": 3}, "has no option 'seed'"),
    ],
)
def test_a_sampler_or_option_that_there_is_not_is_told_with_the_nearest(tuner, options, what):
    with pytest.raises(AutotrainError, match=what):
        tuners.create(replace(spec({"x": Uniform(0, 1)}, tuner), tuner_options=options))


def test_a_sampler_of_optunahub_is_loaded_by_package_and_class(monkeypatch):
    class Middle(optuna.samplers.RandomSampler):
        def infer_relative_search_space(self, study, trial):
            return {"x": optuna.distributions.FloatDistribution(0, 1)}

        def sample_relative(self, study, trial, search_space):
            return {"x": 0.5}

    hub = SimpleNamespace(load_module=lambda package: SimpleNamespace(Middle=Middle))
    monkeypatch.setitem(sys.modules, "optunahub", hub)
    monkeypatch.setattr(samplers.util, "find_spec", lambda name: hub)
    assert tuners.create(spec({"x": Uniform(0, 1)}, "optunahub:samplers/middle:Middle")).ask(1) == {"x": 0.5}
    with pytest.raises(AutotrainError, match="Did you mean Middle"):
        tuners.create(spec({"x": Uniform(0, 1)}, "optunahub:samplers/middle:Midle"))

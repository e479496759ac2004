"""A trial's value is its curve of the objective, attempts joined, by the objective's rule, at any instant."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Direction, Objective, Summary, best_of
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, TrialSource
from jupyter_autotrain.store import Ingest, Store

RULES = [
    Objective("acc"),
    Objective("acc", summary=Summary.MAX),
    Objective("acc", summary=Summary.MIN, window=2),
    Objective("acc", summary=Summary.MEAN),
    Objective("acc", summary=Summary.MEAN, window=3),
]


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


@pytest.fixture
def store(home):
    with Store.open(home) as opened:
        opened.add_experiment("e1", ExperimentSpec("digits", Bundle()), 1.0)
        opened.add_trial("e1", 1, {}, 1.0)
        yield opened


def report(store, objective, values, cursor, attempt=1, first=0):
    points = [("acc", step, 1.0, value) for step, value in enumerate(values, first)]
    noise = [("loss", 0, 1.0, -99.0)]
    store.ingest([Ingest("e1", 1, attempt, "metrics", cursor, [*points, *noise], objective=objective)])


@pytest.mark.parametrize(
    ("objective", "value"),
    list(zip(RULES, [0.6, 0.9, 0.4, 0.6, (0.9 + 0.4 + 0.6) / 3], strict=True)),
    ids=lambda one: getattr(one, "label", ""),
)
def test_the_value_follows_the_rule_however_the_reports_arrive(store, objective, value):
    for cursor, piece in enumerate([[0.5], [0.9, None, 0.4], [None], [0.6]], 1):
        report(store, objective, piece, cursor)
    assert store.trial("e1", 1).value == pytest.approx(value)
    assert store.series("e1", "acc")[1][1][0] == 0.5


ATTEMPTS = st.lists(
    st.tuples(st.integers(0, 9), st.lists(st.lists(st.floats(-1e6, 1e6) | st.none(), max_size=4), max_size=4)),
    min_size=1,
    max_size=3,
)


@settings(max_examples=25)
@given(ATTEMPTS, st.sampled_from(RULES))
def test_the_running_value_is_the_one_recomputed_from_the_whole_curve(tmp_path_factory, attempts, objective):
    with Store.open(Home(tmp_path_factory.mktemp("store") / "home")) as store:
        store.add_experiment("e1", ExperimentSpec("digits", Bundle()), 1.0)
        store.add_trial("e1", 1, {}, 1.0)
        for attempt, (step, pieces) in enumerate(attempts, 1):
            if attempt > 1:
                begin_again(store)
            for cursor, piece in enumerate(pieces, 1):
                report(store, objective, piece, cursor, attempt, step + sum(map(len, pieces[: cursor - 1])))
        _, values = store.series("e1", "acc").get(1, ((), ()))
        again = objective.value(values)
        assert store.trial("e1", 1).value == (None if again is None else pytest.approx(again, abs=1e-6))


@pytest.mark.parametrize("objective", RULES, ids=lambda one: one.label)
def test_a_store_opened_anew_goes_on_where_the_value_was(store, home, objective):
    report(store, objective, [0.5, 0.9], 1)
    with Store.open(home) as other:
        report(other, objective, [0.4, 0.6], 2)
        report(other, objective, [0.0], 2)  # taken in before: the cursor has not moved
    assert store.trial("e1", 1).value == pytest.approx(objective.value([0.5, 0.9, 0.4, 0.6]))


def begin_again(store):
    for state in ("PREPARING", "RUNNING", "FAILED", "WAITING"):
        store.change_state("e1", 1, TrialState(state), 2.0)


@pytest.mark.parametrize("objective", RULES, ids=lambda one: one.label)
def test_an_attempt_that_begins_anew_replaces_the_value_once_it_reports(store, objective):
    report(store, objective, [0.1, 0.9], 1)
    before = store.trial("e1", 1).value
    begin_again(store)
    assert store.trial("e1", 1).value == before
    report(store, objective, [7.0], 2)  # late news of the first attempt
    assert store.trial("e1", 1).value == before
    report(store, objective, [None], 3, attempt=2)
    report(store, objective, [0.3, 0.5], 4, attempt=2)
    assert store.trial("e1", 1).value == pytest.approx(objective.value([0.3, 0.5]))


@pytest.mark.parametrize("objective", RULES, ids=lambda one: one.label)
def test_an_attempt_that_resumes_goes_on_from_the_values_below_its_first_step(store, objective):
    report(store, objective, [0.5, 0.9, 0.4, 0.1], 1)
    for attempt, first, values in ((2, 3, [0.6, 0.7]), (3, 4, [0.2])):
        begin_again(store)
        report(store, objective, values, 1, attempt, first)
    curve = [0.5, 0.9, 0.4, 0.6, 0.2]
    assert store.trial("e1", 1).value == pytest.approx(objective.value(curve))
    assert list(store.series("e1", "acc")[1][1]) == curve


def test_what_is_not_finite_gives_no_value(store):
    report(store, RULES[0], [None, math.inf, -math.inf], 1)
    assert store.trial("e1", 1).value is None


def test_the_mean_of_huge_values_does_not_overflow():
    assert Objective("a", summary=Summary.MEAN).value([1e308, 1e308, -1e308]) == pytest.approx(1e308 / 3)
    assert Objective("a", summary=Summary.MEAN, window=2).value([1e308, 1e308]) == pytest.approx(1e308)


@settings(max_examples=30)
@given(
    st.lists(st.sampled_from([None, -1.0, 0.0, 0.5, 0.5, 2.0]), max_size=6),
    st.lists(st.sampled_from(["SUCCEEDED", "FAILED", "CANCELLED", "LOST"]), min_size=6, max_size=6),
    st.sampled_from(Direction),
)
def test_the_store_and_the_ranking_agree_on_the_best_trial(tmp_path_factory, values, states, direction):
    objective = Objective("acc", direction)
    with Store.open(Home(tmp_path_factory.mktemp("store") / "home")) as store:
        store.add_experiment("e1", ExperimentSpec("digits", Bundle()), 1.0)
        for number, (value, state) in enumerate(zip(values, states, strict=False), 1):
            store.add_trial("e1", number, {}, 1.0)
            points = [("acc", 0, 1.0, value)]
            store.ingest([Ingest("e1", number, 1, "metrics", 1, points, objective=objective)])
            for step in ("PREPARING", "RUNNING", state):
                store.change_state("e1", number, TrialState(step), 2.0)
        assert store.best_trial("e1", objective) == best_of(objective, store.trials("e1"))
        assert store.best_trial("e1", None) is None


@pytest.mark.parametrize("objective", RULES, ids=lambda one: one.label)
def test_a_trial_that_goes_on_from_another_continues_its_curve_up_to_its_own_first_step(store, objective):
    report(store, objective, [0.1, 0.2, 0.3, 0.4], 1)
    store.add_trial("e1", 2, {}, 1.0, TrialSource("e1", 1, 1, "trial 1"))
    for cursor, (step, value) in enumerate([(2, 0.9), (3, 0.5)], 1):
        store.ingest([Ingest("e1", 2, 1, "metrics", cursor, [("acc", step, 2.0, value)], objective=objective)])
    joined = [0.1, 0.2, 0.9, 0.5]
    assert [*store.series("e1", "acc")[2][1]] == joined
    assert store.series("e1", "loss").keys() == {1}
    assert store.trial("e1", 2).value == pytest.approx(objective.value(joined))
    assert store.trial("e1", 2).source == TrialSource("e1", 1, 1, "trial 1")


def test_the_curve_of_a_deleted_source_is_not_there(store):
    store.add_trial("e1", 2, {}, 1.0, TrialSource("gone", 1, 1, "digits#1"))
    store.ingest([Ingest("e1", 2, 1, "metrics", 1, [("acc", 5, 2.0, 0.9)])])
    assert [*store.series("e1", "acc")[2][0]] == [5]

"""The newest experiment is the newest of the notebook that asks; nobody is given another notebook's by accident."""

import pytest

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, Origin
from jupyter_autotrain.errors import UnknownExperimentError
from jupyter_autotrain.store import Store

ONE, OTHER, NEW = (Origin(f"/home/ada/{name}.ipynb", f"session-{name}") for name in ("one", "other", "new"))
UNKNOWN = Origin("", "session-unknown")


@pytest.fixture
def store(tmp_path):
    with Store.open(Home(tmp_path / "home")) as opened:
        yield opened


def add(store, experiment_id, origin, name="digits"):
    store.add_experiment(experiment_id, ExperimentSpec(name, Bundle(), origin=origin), 1.0)


@pytest.fixture
def mixed(store):
    for experiment_id, origin in (("a1", ONE), ("b1", OTHER), ("a2", ONE), ("u1", UNKNOWN), ("b2", OTHER)):
        add(store, experiment_id, origin)
    return store


@pytest.mark.parametrize(
    ("origin", "newest"),
    [
        (ONE, ["a2", "a1"]),
        (OTHER, ["b2", "b1"]),
        (UNKNOWN, ["u1"]),
        (Origin("/home/ada/one.ipynb", "after a restart of the kernel"), ["a2", "a1"]),
        (None, ["b2", "u1", "a2", "b1", "a1"]),
    ],
)
def test_each_notebook_counts_back_over_its_own_experiments(mixed, origin, newest):
    assert [mixed.find(f"-{i}", origin).id for i in range(1, len(newest) + 1)] == newest
    assert mixed.find("_", origin).id == newest[0]
    with pytest.raises(UnknownExperimentError):
        mixed.find(f"-{len(newest) + 1}", origin)


def test_a_notebook_that_told_its_path_only_later_still_finds_what_its_session_sent(store):
    add(store, "a1", Origin("", "session-one"))
    assert store.find("_", ONE).id == "a1"
    with pytest.raises(UnknownExperimentError):
        store.find("_", OTHER)


def test_a_name_means_this_notebooks_experiment_before_any_other(mixed):
    assert mixed.find("digits", ONE).id == "a2"
    assert mixed.find("digits", OTHER).id == "b2"
    assert mixed.find("digits", NEW).id == mixed.find("digits").id == "b2"
    assert mixed.find("digits@2", ONE).id == "b1"
    assert mixed.find("b1", ONE).id == "b1"


def test_a_notebook_without_experiments_is_told_the_newest_of_all_instead_of_given_it(mixed):
    with pytest.raises(UnknownExperimentError) as error:
        mixed.find("_", NEW)
    assert error.value.found == "This notebook has submitted no experiment yet."
    assert error.value.expected == "The newest of all is digits@5, from other.ipynb."
    assert "Give its name, digits@5, " in error.value.action
    with pytest.raises(UnknownExperimentError) as error:
        mixed.find("-3", ONE)
    assert error.value.found == "This notebook has submitted only 2 experiments, so -3 names none."


def test_in_an_empty_home_there_is_no_experiment_at_all(store):
    for origin in (ONE, None):
        with pytest.raises(UnknownExperimentError) as error:
            store.find("_", origin)
        assert error.value.found == "There is no experiment yet."
        assert "'_'" not in str(error.value)


def test_what_still_runs_of_a_name_is_told_by_notebook(mixed):
    add(mixed, "a3", ONE, name="mnist")
    mixed.close_experiment("a1", 2.0)
    assert [record.id for record in mixed.unfinished_of("digits", ONE)] == ["a2"]
    assert mixed.unfinished_of("digits", NEW) == []


def test_numbers_that_are_too_long_are_only_names(mixed):
    with pytest.raises(UnknownExperimentError):
        mixed.find("-" + "9" * 40, ONE)

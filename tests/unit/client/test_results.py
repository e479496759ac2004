"""Frames of trials and metrics, groups with their spread, and importances, each by one call."""

from __future__ import annotations

import math
import statistics
import sys

import pytest

from jupyter_autotrain.client.results.frames import group, spread
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Store
from tests.searched import searched

pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    home = Home(tmp_path_factory.mktemp("results") / "home")
    with Store.open(home) as store:
        yield searched(home, store)


def test_a_frame_has_a_row_per_trial_with_parameters_values_and_times(experiment):
    frame = experiment.trials_frame()
    assert list(frame.index) == list(range(1, 25))
    assert list(frame.columns) == [
        *("state", "value", "value_latency", "params_lr", "params_width", "params_seed", "last_acc", "last_latency"),
        *("attempt", "started", "ended", "took_s", "backend", "reason"),
    ]
    best = experiment.best
    assert frame["value"].idxmax() == best.number
    row = frame.loc[best.number]
    assert (row["params_lr"], row["value"], row["last_acc"]) == (best.params["lr"], best.value, best.value)
    assert (row["started"].timestamp(), row["took_s"]) == (3.0, 1.0)
    assert str(row["started"].tzinfo) == "UTC"


def test_a_frame_of_a_metric_has_a_row_per_step_and_a_column_per_trial(experiment):
    frame = experiment.metrics_frame("acc")
    assert (frame.shape, frame.index.name, frame.columns.name) == ((3, 24), "step", "trial")
    assert list(frame[7]) == list(experiment.series("acc")[7][1])


def test_frames_are_written_as_csv_and_read_back(experiment, tmp_path):
    experiment.trials_frame().to_csv(tmp_path / "trials.csv")
    experiment.metrics_frame("acc").to_csv(tmp_path / "acc.csv")
    again = pandas.read_csv(tmp_path / "trials.csv", index_col="number", parse_dates=["started", "ended"])
    pandas.testing.assert_series_equal(again["value"], experiment.trials_frame()["value"])
    assert pandas.read_csv(tmp_path / "acc.csv", index_col="step").shape == (3, 24)


def test_frames_are_written_as_parquet_and_read_back(experiment, tmp_path):
    pytest.importorskip("pyarrow")
    experiment.trials_frame().to_parquet(tmp_path / "trials.parquet")
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "trials.parquet"), experiment.trials_frame())
    experiment.metrics_frame("acc").to_parquet(tmp_path / "acc.parquet")


def test_groups_have_the_mean_and_spread_of_their_values(experiment):
    values = {width: [] for width in (16, 32)}
    for trial in experiment.trials:
        values[trial.params["width"]].append(trial.value)
    frame = experiment.trials_frame(by="width")
    assert list(frame.columns) == ["mean", "std", "count", "min", "max"]
    for width, found in values.items():
        assert frame.loc[width, "mean"] == pytest.approx(statistics.mean(found))
        assert frame.loc[width, "std"] == pytest.approx(statistics.stdev(found))
        assert (frame.loc[width, "count"], frame.loc[width, "max"]) == (12, max(found))
    curves = experiment.metrics_frame("acc", by=["width", "seed"])
    assert curves.columns.names == ["width", "seed", "statistic"]
    assert list(curves[(16, 0)].columns) == ["count", "mean", "std"]
    assert list(curves[(16, 0)]["count"]) == [4, 4, 4]


def test_over_a_seed_trials_that_are_equal_in_all_else_are_one_group():
    params = {1: {"lr": 1, "seed": 0}, 2: {"lr": 1, "seed": 1}, 3: {"lr": 2, "seed": 0}}
    groups = group(params, over="seed")
    assert groups.members == {(1,): [1, 2], (2,): [3]}
    assert groups.label((1,)) == "lr=1"
    assert group(params, over=["seed", "lr"]).members == {(): [1, 2, 3]}
    with pytest.raises(AutotrainError, match="No trial has a parameter 'sed'") as caught:
        group(params, over="sed")
    assert "Did you mean 'seed'?" in str(caught.value)


def test_the_spread_of_curves_leaves_nan_out_and_takes_each_step_by_itself():
    from array import array

    curves = [(array("q", [0, 1, 2]), array("d", [1.0, 3.0, math.nan])), (array("q", [1]), array("d", [5.0]))]
    steps, (mean, deviation, count) = spread(curves)
    assert list(steps) == [0, 1, 2]
    assert (mean[1], deviation[1], list(count)) == (4.0, pytest.approx(math.sqrt(2)), [1, 2, 0])
    assert math.isnan(deviation[0])
    assert math.isnan(mean[2])


@pytest.mark.parametrize("evaluator", ["ped_anova", "fanova"])
def test_the_parameter_that_decides_is_the_most_important_one(experiment, evaluator):
    found = experiment.importances(evaluator=evaluator)
    assert next(iter(found)) == "lr"
    assert sum(found.values()) == pytest.approx(1)
    assert found["lr"] > 0.5
    assert next(iter(experiment.importances("latency"))) in {"width", "lr"}


def test_what_cannot_be_answered_says_why(experiment, tmp_path, monkeypatch):
    with pytest.raises(AutotrainError, match="no metric 'los'"):
        experiment.metrics_frame("los")
    with pytest.raises(AutotrainError, match="no objective 'loss'"):
        experiment.importances("loss")
    with pytest.raises(AutotrainError, match="no evaluator 'anova'"):
        experiment.importances(evaluator="anova")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(AutotrainError, match="pandas is not installed"):
        experiment.trials_frame()


def test_too_few_trials_for_importances_say_so(tmp_path):
    home = Home(tmp_path / "home")
    with Store.open(home) as store, pytest.raises(AutotrainError, match="No importances of acc can be computed"):
        searched(home, store, trials=1).importances()

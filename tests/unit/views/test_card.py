"""The run card reads by itself, and stays small whatever it shows."""

import base64
import math
import re
from array import array
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.data import DataKind, DataOrigin, DataSource
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Direction, Objective, ranked
from jupyter_autotrain.core.spec import Bundle, CapturedName, ExperimentSpec
from jupyter_autotrain.store import Ingest, Store
from jupyter_autotrain.views import series, svg
from jupyter_autotrain.views.card import LIMIT_BYTES, card
from jupyter_autotrain.views.card_content import without_paths
from jupyter_autotrain.views.feed import snapshot


@pytest.fixture
def store(tmp_path):
    with Store.open(Home(tmp_path / "home")) as opened:
        yield opened


def fill(store, *, trials=3, points=20, direction=Direction.MAXIMIZE, reason="", params=None):
    captured = (CapturedName("train_one_epoch", "source"), CapturedName("lr", "parameter"))
    spec = ExperimentSpec("digits", Bundle(captured=captured), objective=Objective("val_acc", direction), trials=trials)
    record = store.add_experiment("e1", spec, 1000.0)
    for number in range(1, trials + 1):
        store.add_trial("e1", number, params or {"lr": 0.1 / number}, 1000.0)
        for state in (TrialState.PREPARING, TrialState.RUNNING):
            store.change_state("e1", number, state, 1000.0 + number)
        rows = [("val_acc", step, 1001.0, math.tanh(step * number / 50)) for step in range(points)]
        rows += [("loss", step, 1001.0, math.exp(-step / 9)) for step in range(points)]
        store.ingest([Ingest("e1", number, 1, "metrics", 9, points=rows, objective=Objective("val_acc"))])
        store.change_state("e1", number, TrialState.FAILED if reason else TrialState.SUCCEEDED, 1010.0, reason=reason)
    store.close_experiment("e1", 1020.0)
    return store.experiment(record.id)


def drawn(html):
    """Return the SVG inside the page's image."""
    return base64.b64decode(re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', html).group(1)).decode()


def test_a_card_tells_state_best_trial_and_curves_in_both_forms(store):
    made = card(store, fill(store))
    for form in (made.text, made.html):
        assert "digits" in form
        assert "SUCCEEDED" in form
        assert "3 of 3 trials ended" in form
        assert "Best val_acc (last) 0.8144 in trial 3 (SUCCEEDED): lr=0.03333" in form
        assert "%autotrain show digits" in form
    assert "Captured 1 name<" in made.html
    assert "train_one_epoch" in made.html
    assert ">step 0</text>" in drawn(made.html)


def test_data_that_was_fetched_is_told_with_its_license_and_counts_in_both_forms(store):
    labels = DataOrigin("cvat", "task/12", format="coco", license="CC BY 4.0", revision="r1", counts=(("images", 20),))
    spec = ExperimentSpec("digits", Bundle(), data=(DataSource("pets", DataKind.COPY, origin=labels),))
    made = card(store, store.add_experiment("e1", spec, 1000.0))
    for form in (made.text, made.html):
        assert "data.pets" in form
        assert "CC BY 4.0" in form
        assert "20 images" in form


def test_a_card_needs_no_script_no_network_and_no_style_sheet(store):
    html = card(store, fill(store)).html
    assert not re.search(r"<script|<style|https?:|url\(|<link|@import", html)
    assert re.findall(r'src="([^,]*)', html) == ["data:image/svg+xml;base64"]


def test_no_text_of_a_chart_lies_in_the_page_itself_where_it_would_be_left_when_the_picture_is_stripped(store):
    html = card(store, fill(store)).html
    assert "<svg" not in html
    assert "step 0" not in html


def test_the_picture_of_a_card_is_well_formed_and_labelled(store):
    html = card(store, fill(store)).html
    picture = ElementTree.fromstring(drawn(html))
    assert len(picture.findall(".//{http://www.w3.org/2000/svg}polyline")) == 6
    assert "Best val_acc" in re.search(r'<img alt="([^"]+)"', html).group(1)


def test_the_best_curve_lies_on_top_of_the_others(store):
    made = drawn(card(store, fill(store, trials=12)).html)
    lines = re.findall(r'<polyline fill="none" stroke="([^"]+)" stroke-width="([^"]+)"', made)
    assert lines[11] == (svg.color_of(12), "2.25")


def test_a_trial_keeps_its_colour_and_dashes_whatever_else_is_shown():
    looks = [(svg.color_of(trial), svg.dash_of(trial)) for trial in range(1, 33)]
    assert len(set(looks)) == 32
    assert looks[9] == (svg.PALETTE[1], svg.DASHES[1])


def test_a_minimised_objective_puts_the_least_value_first(store):
    record = fill(store, direction=Direction.MINIMIZE)
    assert [trial.number for trial in ranked(record.spec.objective, store.trials("e1"))] == [1, 2, 3]


def test_a_card_of_many_trials_with_long_texts_stays_below_the_limit(store):
    record = fill(store, trials=200, points=30, reason="x" * 2_000, params={f"p{i}": "y" * 300 for i in range(20)})
    made = card(store, record)
    assert len(made.text.encode()) + len(made.html.encode()) < LIMIT_BYTES
    assert "<svg" in drawn(made.html)
    assert "and 190 more trials" in made.text


def test_a_card_of_two_hundred_curves_of_a_hundred_thousand_points_stays_below_the_limit(store):
    record = fill(store, trials=200, points=1)
    values = np.random.default_rng(0).normal(size=100_000)
    column = array("q", range(values.size)), array("d", values)
    long = SimpleNamespace(
        trials=store.trials,
        notes=lambda _id: [],
        unreachable_nodes=lambda _id: [],
        metric_names=lambda _id: ["val_acc", "loss", "norm", "rate"],
        series=lambda _id, _name: dict.fromkeys(range(1, 201), column),
    )
    made = card(long, record)
    assert "<svg" in drawn(made.html)
    assert len(made.text.encode()) + len(made.html.encode()) < LIMIT_BYTES


def test_decimation_keeps_every_spike_and_both_ends():
    values = np.zeros(50_000)
    values[[12_345, 40_000]] = 9.0, -9.0
    rows = series.kept_rows(values, 102)
    assert (values[rows].max(), values[rows].min(), rows[0], rows[-1]) == (9.0, -9.0, 0, 49_999)
    assert len(rows) <= 102


@pytest.mark.parametrize("points", [9, 90_000])
def test_a_gap_in_a_curve_is_a_gap_in_its_picture_however_long_it_is(points):
    values = np.linspace(1.0, 2.0, points)
    values[points // 3 : points // 2] = math.nan
    column = array("q", range(points)), array("d", values)
    [(_, steps, kept)] = series.sampled({1: column}, [1], 1, 400)
    assert series.with_nulls(kept).count(None) == 1
    drawn = svg.chart("loss", [svg.PlotCurve(steps, kept)], 0, 300, 100)
    assert drawn.count("<polyline") == 2
    assert "nan" not in drawn


def test_a_curve_of_no_number_is_not_drawn():
    for values in ([], [math.nan, math.nan]):
        curve = svg.PlotCurve(np.arange(float(len(values))), np.array(values))
        assert "no value yet" in svg.chart("loss", [curve], 0, 300, 100)


def test_ticks_are_round_and_within_the_range():
    assert svg.ticks(0.0, 1.0) == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert svg.ticks(-3.0, 7.0) == pytest.approx([-2.0, 0.0, 2.0, 4.0, 6.0])


def test_names_and_reasons_from_users_cannot_become_markup(store):
    record = fill(store, reason="<img src=x onerror=alert(1)>", params={"<b>": "</td><script>"})
    html = card(store, record).html
    assert "<script" not in html
    assert html.count("<img") == 1
    assert "<img src=x" not in html


def test_paths_of_this_machine_do_not_enter_a_card(store):
    record = fill(store, reason="File /home/someone/work/train.py, line 3: no such file: '~/data/x.csv'")
    made = card(store, record)
    assert "someone" not in made.text + made.html
    assert "…/train.py" in made.text
    assert without_paths("3/4 of a/b and 1.5 it/s") == "3/4 of a/b and 1.5 it/s"


def test_a_failure_and_its_reason_have_room_beside_the_best_trials(store):
    record = fill(store, trials=12)
    store.add_trial("e1", 13, {}, 1010.0)
    store.change_state("e1", 13, TrialState.FAILED, 1011.0, reason="out of memory")
    made = card(store, record)
    assert "out of memory" in made.text
    assert "and 3 more trials" in made.text
    numbers = [line.split()[0] for line in made.text.splitlines() if line[:2].strip().isdigit()]
    assert numbers == ["12", "11", "10", "9", "8", "7", "6", "5", "4", "13"]


def test_an_experiment_without_trials_or_objective_has_a_card(store):
    record = store.add_experiment("e0", ExperimentSpec("plain", Bundle()), 1.0)
    made = card(store, record, now_s=2.0)
    assert "WAITING" in made.text
    assert "0 of 1 trial ended" in made.html


@pytest.mark.parametrize("state", [TrialState.FAILED, TrialState.CANCELLED, TrialState.LOST])
def test_a_search_that_was_stopped_or_failed_keeps_its_best_in_every_view(store, state):
    record = fill(store, trials=2)
    store.add_trial("e1", 3, {"lr": 0.5}, 1000.0)
    for step in (TrialState.PREPARING, TrialState.RUNNING):
        store.change_state("e1", 3, step, 1003.0)
    objective = record.spec.objective
    store.ingest([Ingest("e1", 3, 1, "metrics", 9, [("val_acc", 0, 1001.0, 0.999)], objective=objective)])
    store.change_state("e1", 3, state, 1010.0, reason="ended")
    page = card(store, store.experiment("e1"), 1020.0)
    for form in (page.text, page.html):
        assert f"Best val_acc (last) 0.999 in trial 3 ({state}): lr=0.5" in form
    told = snapshot(store, "e1", 1020.0).content["experiment"]
    assert (told["best"], told["objective_label"]) == (3, "val_acc (last)")


def test_refused_reports_are_told_in_both_forms_of_the_card(store):
    record = fill(store)
    notes = [(1.0, "warning", "acc is 'high' (str), not one number; it was not kept", 12), (1.0, "info", "hello", 1)]
    for number in (1, 3):
        store.ingest([Ingest("e1", number, 1, "metrics", 20, notes=notes)])
    made = card(store, record)
    assert (
        "24 warnings in trial 1 and 1 other; first: acc is 'high' (str), not one number; it was not kept." in made.text
    )
    assert "24 warnings in trial 1 and 1 other; first: acc is" in made.html
    assert "hello" not in made.text + made.html


@pytest.mark.parametrize(
    "values",
    [
        [1e308, -1e308],
        [1.7976931348623157e308] * 2,
        [-1.7e308, 1.0],
        [0.0, 5e-324],
        [1e-310, 2e-310],
        [1e-300, -1e-300],
        [0.0, 1e308],
        [1e308],
        [1.0, 1.0000000000000002],
    ],
)
def test_values_of_any_size_are_drawn(values):
    curve = svg.PlotCurve(np.arange(len(values), dtype=float), np.array(values))
    drawn = svg.document([svg.chart("loss", [curve], 0, 300, 170)], 300, 170, "")
    ElementTree.fromstring(drawn)
    assert "nan" not in drawn
    assert "inf" not in drawn


@settings(max_examples=150)
@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6))
def test_any_values_are_drawn(values):
    curve = svg.PlotCurve(np.arange(len(values), dtype=float), np.array(values))
    drawn = svg.chart("loss", [curve], 0, 300, 170)
    assert "nan" not in drawn
    assert "inf" not in drawn

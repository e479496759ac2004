"""Plots of results and the report: pictures without scripts and addresses, each with the same as a table."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.space import Choice, NestedSpace, Uniform
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Ingest, Store
from jupyter_autotrain.views.axes import axis, value_on
from jupyter_autotrain.views.svg import PlotCurve, chart
from tests.searched import ACCURACY, searched


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    home = Home(tmp_path_factory.mktemp("plots") / "home")
    with Store.open(home) as store:
        yield searched(home, store)


def pictures(html):
    """Return the SVG documents of a page."""
    return [ElementTree.fromstring(base64.b64decode(data)) for data in re.findall(r"svg\+xml;base64,([^\"]+)", html)]


def points_outside(picture):
    """Dots and texts that lie outside of the picture."""
    _, _, width, height = map(float, picture.get("viewBox").split())
    found = []
    for part in picture.iter():
        x = float(part.get("cx") or part.get("x") or 0)
        y = float(part.get("cy") or part.get("y") or 0)
        if not (0 <= x <= width and 0 <= y <= height):
            found.append((part.tag, x, y))
    return found


@pytest.mark.parametrize(
    ("plot", "dots", "heads"),
    [
        (lambda one: one.plot_slice("lr", "width"), 48, ["trial", "lr", "width", "acc (last)"]),
        (lambda one: one.plot_slice(), 72, ["trial", "lr", "width", "seed", "acc (last)"]),
        (lambda one: one.plot_contour("lr", "width"), 48, ["trial", "lr", "width", "acc (last)"]),
        (lambda one: one.plot_parallel(), 0, ["trial", "lr", "width", "seed", "acc (last)"]),
        (lambda one: one.plot_importances(), 0, ["parameter", "importance"]),
        (lambda one: one.plot_curves(), 0, ["trial", "values", "last step", "last", "least", "greatest"]),
        (lambda one: one.plot_curves("acc", by="width"), 0, ["group", "trials", "last step", "last mean ± deviation"]),
    ],
)
def test_a_plot_is_a_picture_and_a_table(experiment, plot, dots, heads):
    made = plot(experiment)
    (picture,) = pictures(made._repr_html_())
    assert sum(part.tag.endswith("circle") for part in picture.iter()) == dots
    assert points_outside(picture) == []
    assert list(made.table.heads) == heads
    assert made.title in repr(made)
    assert "<table>" in made._repr_html_()


def test_the_pareto_front_stands_out_and_its_trials_are_the_table(experiment):
    made = experiment.plot_pareto()
    front = [str(trial.number) for trial in experiment.pareto_front()]
    assert [row[0] for row in made.table.rows] == front
    (picture,) = pictures(made.html())
    circles = [part for part in picture.iter() if part.tag.endswith("circle")]
    assert len([one for one in circles if one.get("r") == "4.5"]) == len(front)


def test_axes_are_logarithmic_where_the_search_is_and_named_by_options():
    rate = axis("lr", [1e-4, 1e-1], Uniform(1e-4, 1e-1, log=True))
    assert [text for _, text in rate.marks()] == ["0.0001", "0.001", "0.01", "0.1"]
    assert rate.share(1e-4) < rate.share(1e-3) < 0.5
    nets = Choice((NestedSpace("small", {}), 2, "x"))
    assert [text for _, text in axis("net", [0, 1], nets).marks()] == ["small", "2", "x"]
    assert [value_on(nets, value) for value in ({"_name": "small"}, 2, "x", "y")] == [0, 1, 2, None]


def test_a_line_of_parallel_coordinates_passes_over_what_its_trial_lacks_and_the_best_lies_on_top(tmp_path):
    with Store.open(Home(tmp_path / "home")) as store:
        one = searched(Home(tmp_path / "home"), store, trials=3)
        store.add_trial("abc", 4, {"lr": 0.01}, 1.0)
        for state in ("PREPARING", "RUNNING", "SUCCEEDED"):
            store.change_state("abc", 4, TrialState(state), 2.0)
        store.ingest([Ingest("abc", 4, 1, "metrics", 9, [("acc", 0, 3.0, 9.0)], objective=ACCURACY)])
        (picture,) = pictures(one.plot_parallel("lr", "width").html())
    lines = [part for part in picture.iter() if part.tag.endswith("polyline")]
    assert [len(line.get("points").split()) for line in lines] == [3, 3, 3, 2]
    assert [line.get("stroke-width") for line in lines] == ["1.2", "1.2", "1.2", "3"]


def test_the_use_of_nodes_is_drawn_of_those_that_were_watched_attempt_after_attempt(tmp_path):
    home = Home(tmp_path / "home")
    with Store.open(home) as store:
        one = searched(home, store, trials=3)
        with pytest.raises(AutotrainError, match="knows nothing of what its trials use"):
            one.plot_usage()
        for number, gpu in ((2, "null"), (3, "50")):
            directory = home.trial("abc", number, 1)
            directory.mkdir(parents=True)
            lines = [f"[{second}.0, {100 * second}, 2000000000, {gpu}, {gpu}]\n" for second in (1, 2, 3)]
            (directory / wire.USAGE).write_text("".join(lines))
        made = one.plot_usage(2)
        assert made.table.rows == [["2", "3.0 s", "200", "300", "2", "2", "", "", "", ""]]
        both = one.plot_usage()
        assert sorted(row[0] for row in both.table.rows) == ["2", "3"]
        panels = [part.text for part in pictures(both.html())[0].iter() if part.get("font-weight") == "600"]
        assert panels == ["CPU (%)", "memory (GB)", "GPU (%)", "GPU memory (GB)"]
        assert "Use of nodes" in Page(one.report(tmp_path / "digits.html").read_text()).titles


def test_a_parameter_that_is_not_searched_is_refused(experiment):
    with pytest.raises(AutotrainError, match="searches no parameter 'depth'"):
        experiment.plot_slice("depth")


class Page(HTMLParser):
    """The parts of a page that would load something, and its headings."""

    def __init__(self, text):
        super().__init__()
        self.loads = []
        self.titles = []
        self.is_title = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.is_title = tag in {"h1", "h2"}
        values = dict(attrs)
        addresses = [values.get(name) or "" for name in ("src", "href")]
        if tag in {"script", "link", "iframe"} or any(text and not text.startswith("data:") for text in addresses):
            self.loads.append((tag, addresses))

    def handle_data(self, data):
        if self.is_title:
            self.titles.append(data)
        self.is_title = False


def test_a_report_is_one_file_that_loads_nothing_with_each_plot_as_a_table_too(experiment, tmp_path):
    path = experiment.report(tmp_path / "digits.html", over="seed")
    text = path.read_text()
    page = Page(text)
    assert page.loads == []
    assert page.titles == ["digits", "Curves", "Trials", "Pareto front", "Parameters", "Header"]
    shown = pictures(text)
    assert len(shown) == text.count("<figure>") == text.count("As a table") == 10
    assert [points_outside(picture) for picture in shown] == [[]] * len(shown)
    assert "# &lt;all&gt;" in text
    assert len(text) < 600_000


@pytest.mark.parametrize(("steps", "labels"), [([5, 5], ["step 5"]), ([0], ["step 0"]), ([0, 2], ["step 0", "2"])])
def test_the_axis_of_steps_names_those_that_there_are(steps, labels):
    curve = PlotCurve(np.array(steps, dtype=float), np.full(len(steps), 0.5))
    texts = re.findall(r">([^<]*)</text>", chart("acc", [curve], 0, 300, 200))
    assert texts[-len(labels) :] == labels
    assert "step" in texts[-len(labels)]

"""Curves along the time of day, in the panel and in the comparison: each lies where its points were reported."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.store import Ingest
from tests.browser.filled_home import FilledHome
from tests.browser.lab_page import run_command

pytestmark = pytest.mark.browser

MORNING_S = 1_700_000_000.0
EVENING_S = MORNING_S + 10 * 3600
EVERY_S = 600.0
STEPS = 6


@pytest.fixture
def home(server):
    with FilledHome(server) as home:
        yield home


@pytest.fixture
def page(home, tab):
    with home.shown_in(tab) as page:
        yield page


def trial_at(home, experiment_id, number, begun_s):
    """Add a running trial whose points were reported from this time on."""
    home.fill.begin(experiment_id, number)
    points = [("val_acc", step, begun_s + step * EVERY_S, number + step / 10) for step in range(STEPS)]
    home.fill.store.ingest([Ingest(experiment_id, number, 1, "metrics", 1, points=points)])


def clock(page, time_s):
    """Return how the page writes a time of day."""
    return page.evaluate("(time_s) => new Date(time_s * 1000).toLocaleTimeString()", time_s)


def read_both_ends(page, view, morning, evening):
    """Read the last point of the curves, and then the first: at each is one of them."""
    view.get_by_role("button", name="Settings").click()
    view.get_by_label("Along the x axis").select_option("Time of day")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")  # drawn
    view.locator(".at-chart").focus()
    page.keyboard.press("ArrowLeft")
    tip = view.locator(".at-chart .at-tip")
    last_s = EVENING_S + (STEPS - 1) * EVERY_S
    expect(tip.locator(".at-tip-head")).to_have_text(f"{clock(page, last_s)} · step {STEPS - 1}")
    expect(tip).to_contain_text(evening)
    expect(tip).not_to_contain_text(morning)
    for _ in range(2 * STEPS):
        page.keyboard.press("ArrowLeft")
    expect(tip.locator(".at-tip-head")).to_have_text(f"{clock(page, MORNING_S)} · step 0")
    expect(tip).to_contain_text(morning)
    expect(tip).not_to_contain_text(evening)


def test_trials_of_an_experiment_lie_apart_in_its_panel(home, page):
    home.fill.experiment("day", trials=2)
    trial_at(home, "day", 1, MORNING_S)
    trial_at(home, "day", 2, EVENING_S)
    run_command(page, "autotrain:open-experiment", id="day")
    panel = page.locator(".jp-Autotrain-panel:visible")
    expect(panel.get_by_role("img", name="Curves of val_acc, 2 trials")).to_be_visible()
    read_both_ends(page, panel, "trial 1", "trial 2")


def test_runs_lie_apart_in_the_comparison(home, page):
    for name, begun_s in (("morning", MORNING_S), ("evening", EVENING_S)):
        home.fill.experiment(name, name, trials=1)
        trial_at(home, name, 1, begun_s)
    run_command(page, "autotrain:compare", ids=["morning", "evening"])
    view = page.locator(".at-compare:visible")
    expect(view.get_by_role("img", name="Curves of val_acc, 2 runs")).to_be_visible()
    read_both_ends(page, view, "morning", "evening")

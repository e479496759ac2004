"""A real trial that is stopped and resumed from its checkpoint: every view goes on, with the curve of before."""

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.store import Store
from tests.browser.jupyter_lab import wait_for
from tests.browser.notebook_page import open_panel_beside

pytestmark = pytest.mark.browser

CELL = """%%autotrain resumed
objective: maximize max(val_acc)
---
import time
start = trial.checkpoint.load(0)
for step in range(start, start + 15):
    report(step=step, val_acc=1 / (step + 1), loss=step)
    print("step", step)
    trial.checkpoint.save(step + 1, step=step)
while not trial.should_stop():
    time.sleep(0.1)
"""
STEPS = 15  # of each attempt, which then waits to be stopped: as many on any machine


@pytest.fixture
def running(lab):
    """Yield the page with the running cell on the left and the experiment's panel on the right."""
    lab.page.set_viewport_size({"width": 1700, "height": 1000})
    lab.open("%load_ext jupyter_autotrain", CELL)
    lab.agree_to_stop()
    lab.run_all()
    lab.until_run()
    with Store.open(Home(lab.server.home)) as store:
        experiment_id = store.find("resumed").id
        open_panel_beside(lab.page, experiment_id)
        yield lab, store, experiment_id


def steps(store, experiment_id):
    return list(store.series(experiment_id, "val_acc").get(1, ((), ()))[0])


def state_of(view):
    return view.locator("header .at-badge")


def rows(view):
    return view.get_by_role("region", name="Values of val_acc").get_by_role("rowheader")


def test_every_view_follows_a_trial_that_resumes_and_keeps_its_curve_its_best_value_and_its_logs(running):
    lab, store, experiment_id = running
    page = lab.page
    live = page.locator(".jp-Notebook .autotrain").last
    panel = page.locator(".jp-Autotrain-panel")
    for view in (live, panel):
        expect(state_of(view)).to_have_text("Running")
        view.get_by_role("button", name="Table", exact=True).click()
    wait_for(lambda: len(steps(store, experiment_id)) == STEPS, 120, "the points do not come")
    live.get_by_role("button", name="Stop", exact=True).click()
    for view in (live, panel):
        expect(state_of(view)).to_have_text("Cancelled")
    expect(live.locator(".at-receipt")).to_contain_text("stopped in")

    panel.get_by_role("button", name="Resume", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Resume", exact=True).click()
    for view in (live, panel):
        expect(state_of(view)).to_have_text("Running")
        expect(view.locator(".at-best")).to_contain_text("Best max(val_acc) 1")
    expect(live.locator(".at-receipt")).to_be_empty()
    wait_for(lambda: len(steps(store, experiment_id)) == 2 * STEPS, 120, "no more points come")
    for view in (live, panel):
        expect(rows(view)).to_have_text([str(step) for step in range(2 * STEPS)])
        view.get_by_role("button", name="Table", exact=True).click()
        expect(view.locator("canvas").first).to_be_visible()
    live.get_by_text("Log of trial 1").click()
    log = live.get_by_role("log")
    expect(log).to_contain_text(f"step {STEPS}\n")
    expect(log).not_to_contain_text("step 0\n")
    live.get_by_label("Attempt whose log is shown").select_option("attempt 1")
    expect(log).to_contain_text("step 0\n")
    lab.screenshot("resumed")

    panel.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Stop", exact=True).click()
    for view in (live, panel):
        expect(state_of(view)).to_have_text("Cancelled")
    assert steps(store, experiment_id) == list(range(2 * STEPS))
    assert store.trials(experiment_id)[0].value == 1.0
    assert lab.errors == []

"""Buttons that act, pressed on real experiments of a real manager: each asks, and does what it says."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.client.submitting import submit
from jupyter_autotrain.core.home import Home
from tests.browser.jupyter_lab import wait_for
from tests.browser.lab_page import picture
from tests.browser.sidebar_page import item
from tests.browser.toasts import Toasts

pytestmark = pytest.mark.browser

SLEEPS = "import time\nwhile not trial.should_stop():\n    time.sleep(0.02)\n"
FAILS = "raise ValueError('broken on purpose')\n"
REPORTS = "trial.report(loss=1.0)\n"


@pytest.fixture
def run(server, store):
    """Submit source as a notebook would; what still runs at the end of the test is stopped."""
    submitted = []

    def submitting(source, **header):
        submitted.append(submit(source, home=Home(server.home), trials=1, **header))

    yield submitting
    for experiment in submitted:
        if not experiment.state.is_final:
            experiment.stop(grace_s=0)
        experiment.store.close()


def answer(page, question, button, consequence=""):
    """Say yes to a question."""
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(question)
    expect(dialog).to_contain_text(consequence)
    picture(page, f"question-{button.lower()}")
    dialog.get_by_role("button", name=button, exact=True).click()
    expect(dialog).to_have_count(0)


def opened(sidebar, name, state):
    """Return the panel of an experiment, opened by a click on its row, which lies still once it has this state."""
    row = item(sidebar, name)
    expect(row).to_have_attribute("data-state", state)
    row.click()
    return panel_of(sidebar.page, name)


def panel_of(page, name):
    """Return the panel that is shown, once it is this experiment's."""
    panel = page.locator(".jp-Autotrain-panel:visible")
    expect(panel.get_by_role("heading", name=name, exact=True)).to_be_visible()
    return panel


def press(panel, name):
    panel.get_by_role("button", name=name, exact=True).first.click()


def test_an_experiment_is_stopped_and_resumed_in_its_panel_and_stopped_by_the_menu(sidebar, run):
    run(SLEEPS, name="stopped-twice")
    panel = opened(sidebar, "stopped-twice", "RUNNING")
    badge = panel.locator("header .at-badge")
    expect(panel.locator("tr[data-trial='1']")).to_contain_text("Running")
    press(panel, "Stop")
    answer(panel.page, "Stop stopped-twice?", "Stop", "Running trials end. What they have reported stays.")
    expect(badge).to_have_text("Cancelled")
    expect(panel.get_by_role("button", name="Stop", exact=True)).to_have_count(0)
    press(panel, "Resume")
    answer(panel.page, "Resume stopped-twice?", "Resume", "Runs the cancelled, preempted and lost trials again")
    expect(badge).to_have_text("Running")
    row = item(sidebar, "stopped-twice")
    expect(row).to_have_attribute("data-state", "RUNNING")
    row.click(button="right")
    panel.page.get_by_role("menuitem", name="Stop").click()
    answer(panel.page, "Stop stopped-twice?", "Stop")
    expect(row).to_have_attribute("data-state", "CANCELLED")


def test_failed_trials_are_tried_again(sidebar, run, store):
    run(FAILS, name="tried-again")
    panel = opened(sidebar, "tried-again", "FAILED")
    expect(panel.get_by_role("button", name="Resume", exact=True)).to_be_hidden()
    told = "Runs the failed, cancelled, preempted and lost trials again."
    expect(panel.get_by_role("button", name="Retry", exact=True)).to_have_attribute("title", told)
    press(panel, "Retry")
    answer(panel.page, "Retry tried-again?", "Retry", told)
    found = store.find("tried-again").id
    wait_for(lambda: store.trials(found)[0].attempt == 2, 120, "the trial is not tried again")


def test_a_stored_cell_is_run_again_opened_from_what_is_told_and_deleted(sidebar, run):
    run(REPORTS, name="run-again", objective="minimize loss")
    page = sidebar.page
    panel = opened(sidebar, "run-again", "SUCCEEDED")
    Toasts(page).press("Submitted run-again@2.", "Open")
    press(panel, "Rerun")
    answer(page, "Rerun run-again?", "Rerun", "Submits the same code again, as a new experiment.")
    again = panel_of(page, "run-again@2")
    expect(again.locator("header .at-badge")).to_have_text("Succeeded")
    press(again, "Delete")
    answer(page, "Delete run-again@2?", "Delete", "Deletes curves, logs, checkpoints and captured code")
    expect(again.get_by_text("This experiment was deleted")).to_be_visible()
    expect(item(sidebar, "run-again")).to_have_count(1)


def test_several_are_stopped_by_the_button_above_the_list(sidebar, run):
    page = sidebar.page
    for name in ("one-of-two", "other-of-two"):
        run(SLEEPS, name=name)
        expect(item(sidebar, name)).to_have_attribute("data-state", "RUNNING")
    for name in ("one-of-two", "other-of-two"):
        item(sidebar, name).click(modifiers=["Control"])
    toolbar = sidebar.get_by_role("toolbar", name="Chosen experiments")
    expect(toolbar).to_contain_text("2 chosen")
    button = toolbar.get_by_role("button", name="Stop")
    expect(button).to_have_attribute("title", "Running trials end. What they have reported stays.")
    button.click()
    answer(page, "Stop 2 experiments?", "Stop")
    for name in ("one-of-two", "other-of-two"):
        expect(item(sidebar, name)).to_have_attribute("data-state", "CANCELLED")

"""Trials that are cloned with changes, in the live view and in the panel: each goes on from a checkpoint."""

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.store import Store
from tests.browser.notebook_page import open_panel_beside

pytestmark = pytest.mark.browser

CELL = """%%autotrain cloned
search: {rate: [0.5, 1.0]}
objective: maximize height
---
state = checkpoint.load({"step": 0, "height": 0.0})
for _ in range(10):
    state = {"step": state["step"] + 1, "height": state["height"] + rate}
    report(**state)
checkpoint.save(state, step=state["step"])
"""


def cloned(view, trial, typed):
    """Ask for a clone of a trial with another rate."""
    view.get_by_role("button", name=f"Clone trial {trial} with changes").click()
    dialog = view.get_by_role("dialog")
    dialog.get_by_label("rate").fill(typed)
    dialog.get_by_role("button", name="Clone", exact=True).click()
    return dialog


def test_a_clone_with_changes_goes_on_from_its_trial_and_its_lineage_is_drawn(lab):
    page = lab.page
    page.set_viewport_size({"width": 1700, "height": 1200})
    lab.open("%load_ext jupyter_autotrain", CELL)
    lab.run_all()
    lab.until_run()
    with Store.open(Home(lab.server.home)) as store:
        experiment_id = store.find("cloned").id
        open_panel_beside(page, experiment_id)
        live = page.locator(".jp-Notebook .autotrain").last
        panel = page.locator(".jp-Autotrain-panel")
        for view in (live, panel):
            expect(view.locator("header .at-badge")).to_have_text("Succeeded")
        dialog = cloned(live, 2, "fast")
        expect(dialog).to_be_visible()
        expect(dialog.locator("input:invalid")).to_have_count(1)
        lab.screenshot("clone-question")
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(cloned(live, 2, "2.5")).to_have_count(0)
        for view in (live, panel):
            expect(view.locator("tr[data-trial='3']")).to_contain_text("#2")
            expect(view.locator("header .at-badge")).to_have_text("Succeeded")
        expect(cloned(panel, 3, "4")).to_have_count(0)
        for view in (live, panel):
            expect(view.locator("tr[data-trial='4']")).to_contain_text("#3")
            expect(view.locator("header .at-badge")).to_have_text("Succeeded")
            expect(view.locator(".at-lineage .at-node")).to_have_count(3)
            expect(view.locator(".at-lineage .at-edge")).to_have_count(2)
        lab.screenshot("clones")
        assert [(trial.params["rate"], trial.parent) for trial in store.trials(experiment_id)] == [
            (0.5, None), (1.0, None), (2.5, 2), (4, 3),
        ]  # fmt: skip
        steps, heights = store.series(experiment_id, "height")[4]
    assert [*steps] == [*range(1, 31)]  # that of its source goes on, without a jump
    assert [*heights[:10]] == [1.0 * step for step in range(1, 11)]
    assert [*heights[20:]] == [10 * 1.0 + 10 * 2.5 + 4.0 * step for step in range(1, 11)]
    assert lab.errors == []

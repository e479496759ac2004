"""A day's work without the mouse: submit, look into a run, compare two, stop one."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.lab_page import picture
from tests.browser.sidebar_page import item

pytestmark = pytest.mark.browser

LOAD = "%load_ext jupyter_autotrain"
CELL = """%%autotrain {name}
objective: maximize val_acc
search: {{lr: "loguniform(1e-4, 0.1)"}}
trials: 1
---
import math, pathlib, time
step = 0
while not pathlib.Path("{enough}").exists():
    report(step=step, val_acc=math.log1p(step) * lr)
    time.sleep(0.5)  # each report is drawn
    step += 1
"""


def tab_to(page, target, key="Tab"):
    """Press Tab until the target has the focus."""
    for _ in range(60):
        if target.evaluate("(element) => element === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{key} does not come to {target}")


def test_a_cell_is_submitted_inspected_compared_and_stopped_by_keyboard_alone(lab, tmp_path):
    enough = tmp_path / "enough"
    lab.open(LOAD, *(CELL.format(name=name, enough=enough) for name in ("keys-first", "keys-second")))
    page = lab.page
    keyboard = page.keyboard
    for _ in range(3):
        keyboard.press("Shift+Enter")
    expect(page.locator(".jp-Notebook article.autotrain")).to_have_count(2)  # a panel that is restored is one, too
    the_sidebar(page)
    inspect(page)
    compare(page)
    stop(page)
    enough.touch()
    expect(item(page, "keys-first")).to_have_attribute("data-state", "SUCCEEDED")
    assert lab.errors == []


def the_sidebar(page):
    """Open the sidebar, and go to the run that was submitted first; those of other tests may come after it."""
    page.keyboard.press("Alt+Shift+X")
    first = item(page, "keys-first")
    expect(first).to_have_attribute("data-state", "RUNNING")
    expect(item(page, "keys-second")).to_have_attribute("data-state", "RUNNING")
    tab_to(page, page.locator(".jp-Autotrain-tree [tabindex='0']"))
    page.keyboard.press("Home")
    tab_to(page, first, "ArrowDown")


def inspect(page):
    """Look at the trials and the details of the run."""
    page.keyboard.press("Enter")
    panel = page.locator(".jp-Autotrain-panel:visible")
    expect(panel.get_by_role("heading", name="keys-first")).to_be_visible()
    expect(panel).to_be_focused()
    picture(page, "journey-panel")
    tab_to(page, panel.get_by_role("tab", name="Overview"))
    page.keyboard.press("End")
    expect(panel.get_by_role("tab", name="Details")).to_be_focused()
    expect(panel.get_by_role("region", name="Search")).to_contain_text("maximize val_acc")
    page.keyboard.press("Home")
    tab_to(page, panel.get_by_role("img", name="Curves of val_acc").first)
    page.keyboard.press("ArrowRight")
    expect(panel.locator(".at-tip").first).to_contain_text("step")
    tab_to(page, panel.locator("tr[data-trial='1']"))
    picture(page, "journey-inspected")


def compare(page):
    """Choose both runs, and lay their curves over each other."""
    page.keyboard.press("Alt+Shift+X")
    expect(item(page, "keys-first")).to_be_focused()
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("C")
    view = page.locator(".at-compare")
    expect(view.get_by_role("region", name="Results").get_by_role("row")).to_have_count(3)
    expect(page.locator(".jp-AutotrainCompare")).to_be_focused()
    expect(view.get_by_role("img", name="Curves of val_acc, 2 runs")).to_be_visible()
    tab_to(page, view.get_by_role("img", name="Curves of val_acc, 2 runs"))
    picture(page, "journey-compared")


def stop(page):
    """Stop the second run; its row keeps the focus where it moves to."""
    page.keyboard.press("Alt+Shift+X")
    second = item(page, "keys-second")
    expect(second).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("S")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Stop keys-second?")
    expect(dialog.get_by_role("button", name="Stop")).to_be_focused()
    page.keyboard.press("Enter")
    expect(second).to_have_attribute("data-state", "CANCELLED")
    expect(second).to_be_focused()
    picture(page, "journey-stopped")

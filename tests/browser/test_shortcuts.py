"""Every shortcut of the settings' schema, pressed on the sidebar: what it asks or opens, and why it does nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.agent.states import TrialState
from tests.browser.lab_page import picture
from tests.browser.sidebar_page import add, item
from tests.browser.toasts import Toasts

pytestmark = pytest.mark.browser

SCHEMA = Path(__file__).parents[2] / "labextension" / "schema" / "settings.json"
ENDS = {
    "going": None,
    "over": TrialState.SUCCEEDED,
    "broken": TrialState.FAILED,
    "halted": TrialState.CANCELLED,
}
QUESTIONS = {
    "S": "Stop asked-going?",
    "T": "Retry asked-broken?",
    "U": "Resume asked-halted?",
    "R": "Rerun asked-over?",
    "Delete": "Delete asked-over?",
}
REFUSALS = [
    ("S", "over", "Nothing to stop in told-over"),
    ("T", "over", "Nothing to retry in told-over"),
    ("U", "broken", "Nothing to resume in told-broken"),
    ("Delete", "going", "Only ended experiments can be deleted: stop told-going first"),
    ("C", "over", "Choose 2 to 20 experiments to compare"),
]
OTHERS = {"Alt+Shift+X", "Enter", "F2", "C"}


def fill(sidebar, store, prefix):
    """Have one experiment in each of the states above, and the rows where they stay."""
    for name, state in ENDS.items():
        add(store, f"{prefix}-{name}", f"{prefix}-{name}", [0.5, 0.75], state)
    for name in ENDS:
        row(sidebar, f"{prefix}-{name}")


def row(sidebar, name):
    """Return the row of an experiment, once it is in the state that its name says."""
    state = ENDS[name.rpartition("-")[2]] or TrialState.RUNNING
    found = item(sidebar, name)
    expect(found).to_have_attribute("data-state", state.value)
    return found


def test_every_shortcut_of_the_schema_is_pressed_here():
    shortcuts = json.loads(SCHEMA.read_text())["jupyter.lab.shortcuts"]
    assert {"+".join(shortcut["keys"][0].split()) for shortcut in shortcuts} == OTHERS | QUESTIONS.keys()


def test_keys_of_actions_ask_and_escape_gives_the_focus_back(sidebar, store):
    fill(sidebar, store, "asked")
    for key, question in QUESTIONS.items():
        about = row(sidebar, question.split()[1].removesuffix("?"))
        about.focus()
        about.press(key)
        dialog = sidebar.page.get_by_role("dialog")
        expect(dialog).to_contain_text(question)
        sidebar.page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(about).to_be_focused()


def test_a_key_that_does_nothing_says_why(sidebar, store):
    fill(sidebar, store, "told")
    page = sidebar.page
    toasts = Toasts(page)
    for key, name, reason in REFUSALS:
        about = row(sidebar, f"told-{name}")
        about.focus()
        about.press(key)
        toasts.until_told(reason)
        expect(about).to_be_focused()
    picture(page, "shortcut-refused")
    first = row(sidebar, "told-over")
    first.focus()
    first.press("Shift+ArrowUp")
    page.keyboard.press("F2")
    toasts.until_told("Tags and note are edited one experiment at a time; 2 are chosen.")
    assert page.get_by_role("dialog").count() == 0


def test_keys_open_the_panel_the_editor_the_comparison_and_the_sidebar(sidebar, store):
    fill(sidebar, store, "opened")
    page = sidebar.page
    over = row(sidebar, "opened-over")
    over.focus()
    over.press("F2")
    expect(over.get_by_role("textbox", name="Tags")).to_be_focused()
    page.keyboard.press("Escape")
    expect(over).to_be_focused()
    page.keyboard.press("Enter")
    panel = page.locator(".jp-Autotrain-panel:visible")
    expect(panel.get_by_role("heading", name="opened-over")).to_be_visible()
    expect(panel).to_be_focused()
    page.keyboard.press("Alt+Shift+X")
    expect(over).to_be_focused()
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("C")
    expect(page.locator(".at-compare")).to_be_visible()
    page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    expect(sidebar).to_be_hidden()
    page.keyboard.press("Alt+Shift+X")
    expect(sidebar.get_by_role("treeitem").and_(page.locator(":focus"))).to_have_count(1)

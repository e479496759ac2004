"""Tests of what notebooks show of experiments beside their outputs, in a real JupyterLab: headers, badges, cells."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import expect

from tests.browser.lab_page import WAIT_MS, pictures
from tests.browser.notebook_page import OWN, add, code_cell, end, output
from tests.browser.toasts import Toasts

pytestmark = pytest.mark.browser
HEADER = """%%autotrain digits -j 2  # two at once
objective: maximize val_acc
search: {lr: "loguniform(1e-4, 0.1)"}
trails: 3
---
report(step=1, val_acc=0.5)
"""


def test_a_header_is_coloured_checked_and_completed_with_no_kernel(notebook):
    notebook.open(code_cell(HEADER))
    page = notebook.page
    expect(page.locator(".jp-Autotrain-header-key").first).to_have_text("objective")
    faults = page.get_by_role("list", name="Problems in the header")
    expect(faults).to_contain_text("unknown key 'trails'; did you mean 'trials'?")
    expect(page.locator(".jp-Autotrain-fault").first).to_be_visible()
    page.locator(".jp-Autotrain-fault").first.hover()
    expect(page.locator(".jp-Autotrain-fault-tip")).to_contain_text("unknown key")
    pictures(page, "header")
    page.get_by_text("trails").first.click()
    page.keyboard.press("End")
    page.keyboard.press("Shift+Home")
    page.keyboard.type("on_re")
    complete(page, "on_rerun: ")
    page.keyboard.type("sto")
    complete(page, "on_rerun: stop")
    expect(faults).to_have_count(0)


def test_the_keys_of_a_header_are_offered_on_an_empty_line_with_what_they_mean(notebook):
    notebook.open(code_cell("%%autotrain digits\n\n---\nreport(step=1, val_acc=0.5)\n"))
    page = notebook.page
    page.get_by_text("digits").first.click()
    page.keyboard.press("ArrowDown")
    offered = page.locator(".jp-Completer-item").filter(has_text="resources:")
    deadline_s = time.monotonic() + WAIT_MS / 1000
    while not offered.count():
        assert time.monotonic() < deadline_s, "nothing is offered"
        page.keyboard.press("Tab")
        page.wait_for_timeout(1000)
    expect(offered).to_contain_text("what one trial needs")
    means = offered.locator(".jp-Completer-typeExtended")
    assert means.evaluate("(element) => element.getClientRects().length") == 1
    assert means.evaluate("(element) => element.scrollWidth - element.clientWidth") <= 0
    notebook.screenshot("header-completed")


def complete(page, text):
    """Press Tab until the cell holds the text: JupyterLab drops answers that take a second, as on a loaded machine."""
    deadline_s = time.monotonic() + WAIT_MS / 1000
    content = page.locator(".cm-content").first
    while text not in content.inner_text():
        assert time.monotonic() < deadline_s, content.inner_text()
        page.keyboard.press("Tab")
        page.wait_for_timeout(1000)


def test_a_badge_tells_the_state_of_a_cells_last_run_and_opens_it(notebook, store, server):
    add(store, server, "b1", notebook.name)
    notebook.open(code_cell(OWN, output(store, "b1")), code_cell("1 + 1"))
    badge = notebook.page.locator(".jp-Autotrain-badge").get_by_role("button")
    expect(badge).to_have_text("Running0/2")
    expect(badge).to_have_attribute("title", "b1: Running, 0 of 2 trials ended. Open the experiment")
    end(store, "b1")
    expect(badge).to_have_text("Succeeded")
    pictures(notebook.page, "badge")
    badge.click()
    panel = notebook.page.locator(".jp-Autotrain-panel")
    expect(panel.locator(".at-name")).to_have_text("b1")
    expect(badge).to_be_hidden()
    panel.get_by_role("button", name="Open Cell").click()
    expect(badge).to_be_visible()
    expect(notebook.page.locator(".jp-Cell.jp-mod-active")).to_contain_text("%%autotrain digits")


def test_the_cell_of_an_experiment_is_opened(notebook, store, server):
    add(store, server, "o1", notebook.name)
    add(store, server, "o2", "gone.ipynb")
    filler = [code_cell(f"x = {i}\n" * 20) for i in range(12)]
    notebook.open(*filler, code_cell(OWN), code_cell("last = 1"))
    notebook.command("autotrain:open-cell", id="o1")
    active = notebook.page.locator(".jp-Cell.jp-mod-active")
    expect(active).to_contain_text("%%autotrain digits")
    expect(active).to_be_in_viewport()
    toasts = Toasts(notebook.page)
    notebook.command("autotrain:open-cell", id="o2")
    toasts.until_told("The notebook gone.ipynb no longer exists")
    notebook.command("autotrain:open-cell", id="o3")
    toasts.until_told("No experiment has the name")


def test_a_cell_whose_output_is_cleared_has_no_badge_and_the_width_of_other_cells(notebook, store, server):
    add(store, server, "b2", notebook.name)
    notebook.open(code_cell(OWN, output(store, "b2")), code_cell("1 + 1"))
    badge = notebook.page.locator(".jp-Autotrain-badge")
    expect(badge).to_be_visible()
    notebook.command("notebook:clear-cell-output")
    expect(badge).to_have_count(0)
    expect(notebook.page.locator(".jp-Autotrain-has-badge")).to_have_count(0)


def offered(page):
    """Return whether each cell can be run as an experiment."""
    return page.evaluate(
        """() => {
            const { commands, shell } = window.jupyterapp;
            const { content } = shell.currentWidget;
            return content.widgets.map((_, index) => {
                content.activeCellIndex = index;
                return commands.isEnabled('autotrain:run-as-experiment');
            });
        }"""
    )


def test_only_cells_of_python_that_are_experiments_or_can_be_made_some_are_offered_as_such(notebook):
    fixed = {"metadata": {"editable": False}}
    plain = code_cell("x = 1")
    shell = code_cell("%%bash\nls")
    cells = [plain, plain | fixed, code_cell(OWN) | fixed, shell, code_cell("")]
    notebook.open(*cells)
    assert offered(notebook.page) == [True, False, True, False, False]
    notebook.open(*cells, language="python")
    assert offered(notebook.page) == [True, False, True, False, False]
    notebook.open(*cells, language="R")
    assert offered(notebook.page) == [False] * len(cells)

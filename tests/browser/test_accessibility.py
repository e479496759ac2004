"""No rule of accessibility is broken in what we show: axe-core, on the real thing, in the light and in the dark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import broken
from tests.browser.filled_home import FilledHome
from tests.browser.notebook_page import OWN, add, code_cell, opened_notebook, output
from tests.browser.sidebar_page import empty_store

pytestmark = pytest.mark.browser

PLACE = Path(__file__).parent / "place.py"
SHOW = "from place import Place\n\nplace = Place()\nplace.fill(ended=9)\nhandle = place.experiment.show()"
PLAN = """
from jupyter_autotrain.parallel.api import plan
from jupyter_autotrain.parallel.graph import example_graphs

plan(example_graphs.gpt(width=512, layers=4, heads=8, sequence=256, batch=8, vocabulary=1000), cluster="8xA100-80GB")
"""
FAULTY = """%%autotrain digits -j 2  # two at once
objective: maximize val_acc
search: {lr: "loguniform(1e-4, 0.1)", deep: true}
trails: 3
---
"""


def test_the_live_view_and_the_preview_of_a_plan_break_no_rule(lab):
    (lab.server.notebooks / "place.py").write_text(PLACE.read_text())
    lab.open(SHOW, PLAN)
    lab.run_all()
    views = lab.page.locator(".autotrain")
    expect(views.nth(1).get_by_role("heading").first).to_be_visible()
    expect(views.first.locator("canvas").first).to_be_visible()
    views.first.get_by_role("button", name="Settings").first.click()
    assert broken(lab.page, ".autotrain") == []


def test_the_sidebar_breaks_no_rule(browser, server):
    with FilledHome(server) as home, home.page(browser) as page:
        home.some_experiments()
        page.evaluate("() => window.jupyterapp.commands.execute('autotrain:show-experiments')")
        page.get_by_text("running dogs").first.wait_for()
        assert broken(page, "#jp-autotrain-experiments") == []


def test_the_panel_of_an_experiment_breaks_no_rule_on_any_of_its_pages(browser, server):
    with FilledHome(server) as home, home.page(browser) as page:
        home.some_experiments()
        page.evaluate("() => { window.jupyterapp.commands.execute('autotrain:open-experiment', {id: 's2'}) }")
        panel = page.locator(".jp-Autotrain-panel")
        panel.locator("canvas").first.wait_for()
        pages = panel.get_by_role("tablist", name="Pages of the experiment").get_by_role("tab")
        assert pages.count() > 1
        for index in range(pages.count()):
            pages.nth(index).click()
            assert broken(page, ".jp-Autotrain-panel") == [], pages.nth(index).inner_text()


def test_headers_badges_and_outputs_in_notebooks_break_no_rule(browser, server):
    with empty_store(server) as store, opened_notebook(browser, server, "accessible") as notebook:
        add(store, server, "a1", notebook.name)
        kept = output(store, "a1")
        notebook.open(code_cell(FAULTY), code_cell(OWN, kept), code_cell(OWN, kept))
        page = notebook.page
        expect(page.locator(".jp-Autotrain-fault").first).to_be_visible()
        expect(page.locator(".jp-Autotrain-badge button")).to_have_count(2)
        states = page.locator(".jp-Autotrain-run .autotrain").get_by_role("status")
        expect(states).to_have_text([re.compile("Running")] * 2)
        parts = [".jp-Autotrain-header", ".jp-Autotrain-faults", ".jp-Autotrain-badge", ".jp-Autotrain-run"]
        assert broken(page, ", ".join(parts)) == []

"""Tests that all that is open beside notebooks is open again after a reload, with what it showed."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.filled_home import FilledHome
from tests.browser.jupyter_lab import until_layout_saved
from tests.browser.lab_page import run_command

pytestmark = pytest.mark.browser

RESTORED = """() => Promise.race([
    window.jupyterapp.restored.then(() => true),
    new Promise((resolve) => setTimeout(() => resolve(false), 60_000)),
])"""


def test_a_comparison_the_places_a_panel_and_the_filtered_table_are_open_again_after_a_reload(tab, server):
    with FilledHome(server) as home, home.shown_in(tab) as page:
        home.some_experiments()
        page.evaluate("() => { window.jupyterapp.commands.execute('autotrain:show-places') }")
        places = page.get_by_role("region", name="Places")
        places.get_by_role("region", name="local", exact=True).wait_for()
        page.evaluate("() => { window.jupyterapp.commands.execute('autotrain:compare', {ids: ['s2', 's3']}) }")
        results = page.locator(".at-compare").get_by_role("region", name="Results")
        expect(results).to_contain_text("running dogs")
        run_command(page, "autotrain:open-experiment", id="s2")
        panel = page.locator(".jp-Autotrain-panel").get_by_role("heading", name="running dogs")
        panel.wait_for()
        run_command(page, "autotrain:show-all-experiments")
        names = page.get_by_role("grid", name="Experiments").get_by_role("rowheader").locator("button")
        page.get_by_label("State", exact=True).select_option("Failed")
        expect(names).to_have_text(["broken fish"])
        until_layout_saved(page, "autotrain-places:places")
        until_layout_saved(page, "autotrain-compare:s2 s3")
        until_layout_saved(page, "autotrain-panel:s2")
        until_layout_saved(page, "autotrain-table:table")
        page.reload()
        expect(names).to_have_text(["broken fish"])
        expect(page.locator(".jp-Autotrain-panel")).to_have_count(1)
        run_command(page, "autotrain:open-experiment", id="s2")
        panel.wait_for()
        page.get_by_role("tab", name="Compare 2").click()
        expect(results).to_contain_text("running dogs")
        expect(results).to_contain_text("flown birds")
        assert page.evaluate(RESTORED)
        page.get_by_role("tab", name="Places").click()
        places.get_by_role("region", name="local", exact=True).wait_for()
        assert page.locator(".at-compare").count() == 1
        assert page.locator(".jp-Autotrain-panel").count() == 1
        assert page.locator(".jp-AutotrainPlaces").count() == 1

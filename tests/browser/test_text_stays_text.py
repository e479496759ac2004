"""Whatever a notebook, a trial or a file of profiles says is shown as text: no markup of it becomes an element."""

from __future__ import annotations

import json
import time

import pytest
from playwright.sync_api import expect

from tests.browser.filled_home import FilledHome
from tests.browser.lab_page import run_command

pytestmark = pytest.mark.browser

OURS = (".jp-Autotrain", ".jp-Autotrain-panel", ".at-compare", ".jp-AutotrainPlaces", ".Toastify", ".jp-Dialog")


def script(where):
    """Text that leaves a mark where it becomes an element."""
    return f"<img src=x onerror=\"document.documentElement.dataset.owned='{where}'\">{where}"


def fill(home):
    filler = home.fill
    filler.experiment("m1", script("name"), trials=2)
    for number in (1, 2):
        filler.begin("m1", number, **{script("key"): script("value")})
        filler.report("m1", number, [0.1, 0.2, 0.3])
        filler.report("m1", number, [0.1, 0.2], metric=script("metric"))
        filler.file("m1", number, "stdout", script("log").encode())
    filler.end("m1", 1, "FAILED", script("reason"))
    filler.store.annotate_experiment("m1", tags=(script("tag")[:60],), note=script("note"))
    (filler.server.home.bundle("m1") / "main.py").write_text(script("code"))
    filler.done("m2")


@pytest.fixture
def profiles(server):
    """Yield a file whose names and values are markup."""
    path = server.home.parent / "config" / "backends.yaml"
    named = json.dumps(script("profile"))
    path.write_text(f"{named}:\n  type: debug\n")
    yield path
    path.unlink()


def test_markup_is_text_in_sidebar_panel_comparison_places_dialog_and_notification(tab, server, profiles):
    with FilledHome(server) as home, home.shown_in(tab) as page:
        fill(home)
        run_command(page, "autotrain:show-experiments")
        shown = page.locator("#jp-autotrain-experiments")
        for where in ("name", "note"):
            expect(shown).to_contain_text(script(where))
        the_panel(page)
        run_command(page, "autotrain:compare", ids=["m1", "m2"])
        expect(page.locator(".at-compare")).to_contain_text(script("name"))
        expect(page.locator(".at-compare")).to_contain_text(script("key"))
        run_command(page, "autotrain:show-places")
        places = page.locator(".jp-AutotrainPlaces")
        for where in ("name", "profile"):
            expect(places).to_contain_text(f">{where}")
        run_command(page, "autotrain:stop", id="m1")
        expect(page.get_by_role("dialog")).to_contain_text(script("name"))
        page.keyboard.press("Escape")
        home.fill.end("m1", 2, "FAILED", script("reason"))
        home.fill.store.close_experiment("m1", time.time(), script("reason"))
        expect(page.locator(".Toastify__toast").filter(has_text=script("name"))).to_be_visible()
        assert page.locator(", ".join(f"{each} img" for each in OURS)).count() == 0
        assert page.evaluate("() => document.documentElement.dataset.owned") is None


def the_panel(page):
    """Each page of the panel of the experiment."""
    run_command(page, "autotrain:open-experiment", id="m1")
    panel = page.locator(".jp-Autotrain-panel")
    for where in ("name", "key", "value", "metric", "reason"):
        expect(panel).to_contain_text(script(where))
    panel.get_by_text("Log of trial").first.click()
    expect(panel).to_contain_text(script("log"))
    tabs = panel.get_by_role("tablist", name="Pages of the experiment").get_by_role("tab")
    for index in range(tabs.count()):
        tabs.nth(index).click()
    panel.get_by_role("tab", name="Code").click()
    expect(panel).to_contain_text(script("code"))

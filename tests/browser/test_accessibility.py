"""No rule of accessibility is broken in what we show: axe-core, on the real thing, in the light and in the dark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.agent.states import TrialState
from tests.browser.accessibility import broken
from tests.browser.filled_home import FilledHome
from tests.browser.lab_page import picture, run_command
from tests.browser.notebook_page import OWN, add, code_cell, output, plan_cell
from tests.browser.sidebar_page import add as add_row
from tests.browser.sidebar_page import item

pytestmark = pytest.mark.browser

PLACE = Path(__file__).parent / "place.py"
SHOW = "from place import Place\n\nplace = Place()\nplace.fill(ended=9)\nhandle = place.experiment.show()"
FAULTY = """%%autotrain digits -j 2  # two at once
objective: maximize val_acc
search: {lr: "loguniform(1e-4, 0.1)", deep: true}
trails: 3
---
"""


def test_the_live_view_and_the_preview_of_a_plan_break_no_rule(lab, plan, tmp_path):
    (lab.server.notebooks / "place.py").write_text(PLACE.read_text())
    lab.open(SHOW, plan_cell(plan, tmp_path))
    lab.run_all()
    views = lab.page.locator(".autotrain")
    expect(views.nth(1).get_by_role("heading").first).to_be_visible()
    expect(views.first.locator("canvas").first).to_be_visible()
    views.first.get_by_role("button", name="Settings").first.click()
    found = broken(lab.page, ".autotrain")
    assert found == [], "\n".join(found)


def test_the_sidebar_breaks_no_rule(tab, server):
    with FilledHome(server) as home, home.shown_in(tab) as page:
        home.some_experiments()
        page.evaluate("() => window.jupyterapp.commands.execute('autotrain:show-experiments')")
        page.get_by_text("running dogs").first.wait_for()
        assert broken(page, "#jp-autotrain-experiments") == []


def test_the_panel_of_an_experiment_breaks_no_rule_on_any_of_its_pages(tab, server):
    with FilledHome(server) as home, home.shown_in(tab) as page:
        home.some_experiments()
        page.evaluate("() => { window.jupyterapp.commands.execute('autotrain:open-experiment', {id: 's2'}) }")
        panel = page.locator(".jp-Autotrain-panel")
        panel.locator("canvas").first.wait_for()
        pages = panel.get_by_role("tablist", name="Pages of the experiment").get_by_role("tab")
        assert pages.count() > 1
        for index in range(pages.count()):
            pages.nth(index).click()
            assert broken(page, ".jp-Autotrain-panel") == [], pages.nth(index).inner_text()


def test_the_comparison_with_the_code_of_two_breaks_no_rule(tab, server):
    with FilledHome(server) as home, home.shown_in(tab) as page:
        home.some_experiments()
        run_command(page, "autotrain:compare", ids=["s1", "s2", "s3", "s4"])
        view = page.locator(".at-compare")
        view.locator("canvas").first.wait_for()
        view.get_by_label("Show equal values").check()
        view.get_by_role("button", name="Settings").click()
        view.get_by_text("Code", exact=True).click()
        view.get_by_label("and of").select_option(value="s3")
        expect(view.get_by_role("cell", name="trial.report(val_acc=0.5)").first).to_be_visible()
        assert broken(page, ".at-compare") == []
        view.get_by_role("button", name="Table").click()
        assert broken(page, ".at-compare") == []


def test_headers_badges_and_outputs_in_notebooks_break_no_rule(notebook, server, store):
    add(store, server, "a1", notebook.name)
    kept = output(store, "a1")
    notebook.open(code_cell(FAULTY), code_cell(OWN, kept), code_cell(OWN, kept))
    page = notebook.page
    expect(page.locator(".jp-Autotrain-fault").first).to_be_visible()
    expect(page.locator(".jp-Autotrain-badge button")).to_have_count(2)
    for index in range(2):
        run = page.locator(".jp-Autotrain-run").nth(index)
        run.evaluate("(element) => element.scrollIntoView()")  # what was never in sight has no view yet
        expect(run.locator(".autotrain").get_by_role("status")).to_have_text(re.compile("Running"))
    parts = [".jp-Autotrain-header", ".jp-Autotrain-faults", ".jp-Autotrain-badge", ".jp-Autotrain-run"]
    assert broken(page, ", ".join(parts)) == []


DIALOGS = [
    ("autotrain:stop", {"id": "s2"}, "Stop running dogs"),
    ("autotrain:retry", {"id": "s4"}, "Retry broken fish"),
    ("autotrain:rerun", {"id": "s3"}, "Rerun flown birds"),
    ("autotrain:delete", {"id": "s3"}, "Delete flown birds"),
    ("autotrain:open-experiment", {}, "running dogs"),
    ("autotrain:compare", {"ids": []}, "No experiment is chosen."),
]


def test_the_questions_break_no_rule(tab, server):
    with FilledHome(server) as home, home.shown_in(tab) as page:
        home.some_experiments()
        for command, args, text in DIALOGS:
            run_command(page, command, **args)
            expect(page.get_by_role("dialog")).to_contain_text(text)
            assert broken(page, ".jp-Dialog-content") == [], command
            page.keyboard.press("Escape")
            expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_editor_of_tags_and_note_breaks_no_rule(sidebar, store):
    add_row(store, "e1", "edited", [0.5], TrialState.SUCCEEDED)
    row = item(sidebar, "edited")
    expect(row).to_have_attribute("data-state", "SUCCEEDED")
    row.press("F2")
    row.get_by_role("textbox", name="Tags").fill("a tag, another")
    assert broken(sidebar.page, "#jp-autotrain-experiments") == []
    picture(sidebar.page, "editor")
    row.get_by_role("button", name="Save").click()
    row.get_by_text("another").wait_for()
    assert broken(sidebar.page, "#jp-autotrain-experiments") == []


@pytest.fixture
def profile(server):
    """Yield a profile of the user's own, which can be edited and removed."""
    path = server.home.parent / "config" / "backends.yaml"
    path.write_text("own:\n  type: debug\n")
    yield
    path.unlink(missing_ok=True)


def test_the_places_their_form_and_their_question_break_no_rule(page, profile):
    run_command(page, "autotrain:show-places")
    places = page.get_by_role("region", name="Places")
    local = places.get_by_role("region", name="local", exact=True)
    local.get_by_text(re.compile("^Usable")).wait_for()
    local.get_by_role("button", name="Check local").click()
    local.get_by_text("It works: a trial ran there").wait_for()
    assert broken(page, ".jp-AutotrainPlaces") == []
    places.get_by_role("button", name="Add a place").click()
    form = places.get_by_role("group", name="New place")
    form.get_by_label("Kind of place").select_option("ssh")
    form.get_by_label(re.compile("^Name")).fill("box")
    form.get_by_label(re.compile("^port")).fill("many")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_label(re.compile("^hosts"))).to_have_attribute("aria-invalid", "true")
    assert broken(page, ".jp-AutotrainPlaces") == []
    picture(page, "places-faults")
    form.get_by_role("button", name="Cancel").click()
    places.get_by_role("button", name="Remove own").press("Enter")  # results of checks move what is below them
    expect(page.get_by_role("dialog")).to_contain_text("Remove own?")
    assert broken(page, ".jp-Dialog-content") == []
    page.keyboard.press("Escape")

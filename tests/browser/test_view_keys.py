"""Keys pressed in a view stay in the view: the notebook keeps its cells."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.notebook_page import OWN, add, code_cell, output, plan_cell

pytestmark = pytest.mark.browser

PLACE = Path(__file__).parent / "place.py"
LIVE = "from place import Place\n\nplace = Place()\nplace.fill(ended=9)\nhandle = place.experiment.show()"
# Inserts below and above, cuts, deletes, undoes, merges, changes the kind of a cell, runs it, copies and pastes.
COMMANDS = [
    "b",
    "a",
    "x",
    "d",
    "d",
    "z",
    "m",
    "y",
    "1",
    "Shift+M",
    "c",
    "v",
    "Enter",
    "Escape",
    "Shift+Enter",
    "Control+Enter",
    "Alt+Enter",
    "0",
    "0",
    "i",
    "i",
    "Space",
    "j",
    "k",
]
CELLS = """() => window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells
    .map((cell) => [cell.cell_type, cell.getSource(), cell.execution_count])"""
MODE = "() => window.jupyterapp.shell.currentWidget.content.mode"


def press_all(page, before):
    for key in COMMANDS:
        page.keyboard.press(key)
        assert page.evaluate(CELLS) == before, f"{key} has changed the notebook"
        assert page.evaluate(MODE) == "command"
        assert page.evaluate("() => document.activeElement.closest('.autotrain') !== null"), key


def press_all_beside_a_kernel(lab, before):
    press_all(lab.page, before)
    lab.until_idle()
    assert lab.page.evaluate(CELLS) == before


@pytest.fixture
def live(lab):
    (lab.server.notebooks / "place.py").write_text(PLACE.read_text())
    lab.open(LIVE, "'below'")
    lab.run_all()
    expect(lab.view.locator("canvas").first).to_be_visible()
    lab.until_run()
    return lab


def test_no_key_pressed_in_any_part_of_a_live_view_reaches_the_notebook(live):
    view = live.view
    view.get_by_text("Log of trial").click()
    expect(view.get_by_role("log")).to_contain_text("epoch")
    before = live.page.evaluate(CELLS)
    parts = {
        "tab": view.get_by_role("tab", name="loss"),
        "row": view.locator(".at-trials tbody tr").nth(3),
        "chart": view.get_by_role("img").first,
        "log": view.get_by_role("log"),
        "between": view.locator(".at-facts"),
        "button": view.get_by_role("button", name="stderr"),
    }
    for part in parts.values():
        part.click()
        press_all_beside_a_kernel(live, before)
    assert live.errors == []


def test_no_key_pressed_in_a_plan_reaches_the_notebook(lab, plan, tmp_path):
    lab.open(plan_cell(plan, tmp_path), "'below'")
    lab.run_all()
    expect(lab.view.locator(".at-candidates tbody tr").first).to_be_visible()
    lab.until_run()
    before = lab.page.evaluate(CELLS)
    parts = [
        lab.view.locator(".at-figures"),
        lab.view.get_by_role("gridcell").first,
        lab.view.get_by_role("slider").first,
    ]
    for part in parts:
        part.click()
        press_all_beside_a_kernel(lab, before)
    assert lab.errors == []


def test_no_key_pressed_in_what_the_notebook_keeps_of_a_run_reaches_the_notebook(notebook, store, server):
    add(store, server, "k1", notebook.name)
    kept = output(store, "k1")
    store.delete_experiment("k1")
    notebook.open(code_cell(OWN, kept), code_cell("'below'"))
    page = notebook.page
    run = page.locator(".jp-Autotrain-run")
    expect(run.get_by_text("This is what the notebook kept")).to_be_visible()
    before = page.evaluate(CELLS)
    parts = [
        run.get_by_role("tab", name="val_acc"),
        run.get_by_role("img").first,
        run.locator(".at-facts"),
        run.get_by_role("button", name="Settings"),
    ]
    for part in parts:
        part.click()
        press_all(page, before)


def test_the_notebook_can_be_saved_from_within_a_view(live):
    live.view.get_by_role("tab", name="loss").click()
    path = live.server.notebooks / f"{live.name}.ipynb"
    assert "widget-view+json" not in path.read_text()
    live.page.keyboard.press("Control+s")
    live.page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    assert "widget-view+json" in path.read_text()

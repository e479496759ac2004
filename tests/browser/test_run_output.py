"""The outputs of experiments in notebooks, and charts as cells, in a real JupyterLab with no kernel."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.lab_page import pictures
from tests.browser.notebook_page import OWN, add, code_cell, end, output, report, view_output

pytestmark = pytest.mark.browser


def test_an_output_shows_the_present_state_with_no_kernel_and_in_a_notebook_that_is_not_trusted(
    notebook, store, server
):
    add(store, server, "r1", notebook.name)
    notebook.open(code_cell(OWN, output(store, "r1"), view_output()))
    page = notebook.page
    # A cell counts as trusted until its metadata have been read.
    page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.content.model.cells.get(0).trusted")
    view = page.locator(".jp-Autotrain-run .autotrain")
    expect(view.locator("canvas").first).to_be_visible()
    expect(view.get_by_role("status")).to_contain_text("Running, 0 of 2 trials ended")
    report(store, "r1", [0.75])
    expect(view.locator(".at-best")).to_contain_text("0.75")
    end(store, "r1")
    expect(view.locator(".at-badge")).to_have_text("Succeeded")
    pictures(page, "run-output")
    expect(page.locator(".jp-OutputArea-child").filter(visible=True)).to_have_count(1)
    store.delete_experiment("r1")
    said = page.locator(".jp-Autotrain-run").get_by_text("This experiment was deleted")
    expect(said).to_be_visible()


def test_why_the_server_refuses_to_tell_more_is_told_beside_what_is_shown(notebook, store, server):
    add(store, server, "r2", notebook.name)
    notebook.open(code_cell(OWN, output(store, "r2")))
    run = notebook.page.locator(".jp-Autotrain-run")
    expect(run.locator(".at-facts")).to_contain_text("0 of 2 trials")
    problem = {"detail": "The history cannot be read.", "action": "Free some space."}
    notebook.page.route(
        "**/jupyter-autotrain/api/experiments/r2*", lambda route: route.fulfill(status=500, json=problem)
    )
    report(store, "r2", [0.75])
    expect(run.get_by_role("status").first).to_have_text("The history cannot be read. Free some space.")


def test_the_last_of_many_metrics_is_drawn_when_it_is_chosen(notebook, store, server):
    add(store, server, "m1", notebook.name)
    for number in range(30):
        report(store, "m1", [0.1, 0.2, 0.3], metric=f"m{number:02}")
    notebook.open(code_cell(OWN, output(store, "m1")))
    view = notebook.page.locator(".jp-Autotrain-run .autotrain")
    expect(view.get_by_role("status")).to_contain_text("Running, 0 of 2 trials ended")
    view.get_by_role("tab", name="m29").click()
    expect(view.get_by_role("img", name="Curves of m29, 1 trial.")).to_be_visible()


def test_what_the_notebook_keeps_is_shown_of_an_experiment_that_is_no_more(notebook, store, server):
    add(store, server, "d1", notebook.name)
    kept = output(store, "d1")
    store.delete_experiment("d1")
    notebook.open(code_cell(OWN, kept, view_output()))
    run = notebook.page.locator(".jp-Autotrain-run")
    expect(run.get_by_text("This is what the notebook kept")).to_be_visible()
    expect(run.locator("canvas").first).to_be_visible()
    expect(run.locator(".at-stop")).to_be_hidden()
    notebook.screenshot("run-kept")


def test_the_chart_of_an_output_gets_into_the_notebook_by_button_and_by_command(notebook, store, server):
    add(store, server, "c1", notebook.name)
    notebook.open(code_cell(OWN, output(store, "c1")), code_cell("last = 1"))
    page = notebook.page
    view = page.locator(".jp-Autotrain-run .autotrain")
    expect(view.get_by_role("status")).to_contain_text("Running")
    view.get_by_role("button", name="To notebook").focus()
    page.keyboard.press("Enter")
    expect(notebook.pictures).to_have_count(1)
    expect(notebook.pictures).to_have_attribute("alt", "val_acc of c1")
    expect(page.locator(".jp-Cell").nth(1).locator("img")).to_be_visible()
    view.locator(".at-charts").click(button="right")
    page.get_by_role("menuitem", name="Insert Chart into Notebook").click()
    expect(notebook.pictures).to_have_count(2)
    notebook.command("autotrain:insert-chart")
    expect(notebook.pictures).to_have_count(3)
    notebook.screenshot("chart-inserted")


def middle(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_chart_is_dragged_from_the_panel_into_a_notebook(notebook, store, server):
    add(store, server, "g1", notebook.name)
    notebook.open(code_cell("first = 1"), code_cell("last = 1"))
    page = notebook.page
    panel = notebook.open_panel_beside("g1")
    give = panel.get_by_role("button", name="To notebook")
    give.hover()  # once it lies still
    page.mouse.down()
    page.mouse.move(500, 400, steps=5)
    expect(page.locator(".jp-Autotrain-dragged")).to_be_visible()
    page.mouse.move(*middle(page.locator(".jp-CodeCell .jp-InputArea").last), steps=5)
    notebook.screenshot("chart-dragged")
    page.mouse.up()
    expect(notebook.pictures).to_have_count(1)
    expect(page.locator(".jp-Notebook .jp-Cell").nth(1).locator("img")).to_have_attribute("alt", "val_acc of g1")
    give.click()
    expect(notebook.pictures).to_have_count(2)
    notebook.screenshot("chart-from-panel")

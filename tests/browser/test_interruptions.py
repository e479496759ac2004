"""Kernel, manager and server may end while a page is open: the page says so, goes on, and shows nothing twice."""

from __future__ import annotations

import time
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.store import Store
from tests.browser.filled_home import FilledHome
from tests.browser.jupyter_lab import running_lab
from tests.browser.lab_page import new_page, open_empty, run_command
from tests.browser.notebook_page import OURS, OWN, Notebook, code_cell, output
from tests.browser.sidebar_page import item
from tests.server.jupyter import Filler, end_manager, free_port

pytestmark = pytest.mark.browser

SIDEBAR = "#jp-autotrain-experiments"
SHOW = "() => window.jupyterapp.commands.execute('autotrain:show-experiments')"
TRAINING = """%%autotrain interrupted
objective: maximize counted
---
import time
for step in range(10_000):
    report(step=step, counted=step)
    time.sleep(0.5)  # each report is drawn
"""


def sidebar(page):
    page.evaluate(SHOW)
    return page.locator(SIDEBAR)


def test_a_kernel_and_a_manager_that_die_stop_no_page_and_a_page_that_watches_starts_the_manager_again(lab):
    lab.open("%load_ext jupyter_autotrain", TRAINING)
    lab.run_all()
    expect(lab.view.get_by_text("Running").first).to_be_visible()
    lab.shut_down()
    lab.page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel")
    shown = sidebar(lab.page)
    row = item(shown, "interrupted")
    value = row.get_by_text("counted (last)")
    value.wait_for()
    before = value.inner_text()
    expect(value).not_to_have_text(before)
    end_manager(Home(lab.server.home))
    before = value.inner_text()
    expect(value).not_to_have_text(before)
    expect(shown.get_by_text("The manager is not running")).to_be_hidden()
    with Store.open(Home(lab.server.home)) as store:
        lab.command("autotrain:stop", {"id": store.find("interrupted").id})
    lab.page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(row).to_have_attribute("data-state", "CANCELLED")


def fill(server):
    return Filler(SimpleNamespace(home=Home(server.home), root=server.notebooks))


@pytest.mark.long  # by default the panel, the comparison and an output outlive such a server
def test_two_pages_behind_a_base_url_outlive_their_server_and_show_nothing_twice(browser, tmp_path):
    options = {"port": free_port(), "base_url": "/user/ada"}
    asked = []
    with new_page(browser, ours=OURS) as first:
        pages = [first, first.context.new_page()]
        with running_lab(tmp_path, **options) as server:
            fill(server).done("a1", name="before the end")
            for number, page in enumerate(pages):
                page.on("request", lambda request: asked.append(urlsplit(request.url).path))
                page.on("websocket", lambda socket: asked.append(urlsplit(socket.url).path))
                page.goto(f"{server.url}/lab/workspaces/w{number}?token={server.token}&reset")
                page.wait_for_selector(".jp-LauncherCard")
                sidebar(page).get_by_text("before the end").wait_for()
        for page in pages:
            page.locator(SIDEBAR).get_by_text("The server does not answer").wait_for()
        with running_lab(tmp_path, **options) as server:
            fill(server).done("a2", name="after the start")
            for page in pages:
                shown = page.locator(SIDEBAR)
                expect(shown.get_by_text("after the start")).to_have_count(1)
                expect(shown.get_by_text("The server does not answer")).to_be_hidden()
                expect(shown.get_by_text("before the end")).to_have_count(1)
    ours = [path for path in asked if "jupyter-autotrain/api" in path]
    assert "/user/ada/jupyter-autotrain/api/changes" in ours
    assert [path for path in ours if not path.startswith("/user/ada/jupyter-autotrain/api/")] == []


def some_runs(server):
    """Two running experiments, of which the first has printed something."""
    filler = fill(server)
    for name in ("cats", "dogs"):
        filler.experiment(name, name)
        filler.begin(name, 1, lr=0.1)
        filler.report(name, 1, [0.25, 0.5])
    return filler, filler.file("cats", 1, "stdout", b"before the end\n")


def result_of(comparison):
    """Return the row of the first run."""
    return comparison.get_by_role("region", name="Results").get_by_role("row").filter(has_text="cats")


def told_away(view):
    """Return the line that tells that the server is away."""
    return view.get_by_role("status").filter(has_text="The server does not answer. Trying again…")


def open_all(server, page, kept):
    """Return a notebook with an output of the first run, and beside it the comparison behind the panel with its log."""
    open_empty(page, server)
    notebook = Notebook(server, page, "kept")
    notebook.open(code_cell(OWN, kept))
    panel = notebook.open_panel_beside("cats")
    run_command(page, "autotrain:compare", ids=["cats", "dogs"])
    expect(result_of(page.locator(".at-compare"))).to_contain_text("0.5")
    run_command(page, "autotrain:open-experiment", id="cats")
    panel.get_by_text("Log of trial 1").click()
    expect(panel.get_by_role("log")).to_have_text("before the end\n")
    return panel, page.locator(".jp-Autotrain-run"), page.locator(".at-compare")


def test_behind_a_base_url_panel_log_comparison_and_output_outlive_their_server_also_hidden(browser, tmp_path):
    options = {"port": free_port(), "base_url": "/user/ada"}
    with new_page(browser, width=1600, ours=OURS) as page:
        with running_lab(tmp_path, **options) as server:
            filler, log = some_runs(server)
            panel, shown, comparison = open_all(server, page, output(filler.store, "cats"))
            expect(shown.locator(".at-best")).to_contain_text("0.5")
        for view in (panel, shown):
            expect(told_away(view)).to_be_visible()
        run_command(page, "autotrain:compare", ids=["cats", "dogs"])  # the panel is hidden from now on
        expect(told_away(comparison)).to_be_visible()
        filler.report("cats", 1, [0.75])
        with log.open("a") as file:
            file.write("after the start\n")
        with running_lab(tmp_path, **options):
            expect(result_of(comparison)).to_contain_text("0.75")
            expect(comparison.get_by_text("The server does not answer")).to_have_count(0)
            run_command(page, "autotrain:open-experiment", id="cats")
            for view in (panel, shown):
                expect(view.locator(".at-best")).to_contain_text("0.75")
                expect(view.get_by_text("The server does not answer")).to_have_count(0)
            expect(panel.get_by_role("log")).to_have_text("before the end\nafter the start\n")
            filler.end("cats", 1)
            filler.store.close_experiment("cats", time.time())
            expect(panel.locator(".at-badge").first).to_have_text("Succeeded")


@pytest.mark.long  # two pages of one server follow what happens in `test_two_pages_behind_a_base_url_...`
def test_what_one_tab_does_the_tab_of_another_user_shows(browser, server):
    with FilledHome(server) as home, home.page(browser) as ada, home.page(browser) as bob:
        home.some_experiments()
        for page in (ada, bob):
            sidebar(page).get_by_text("flown birds").wait_for()
        run_command(ada, "autotrain:delete", id="s3")
        ada.get_by_role("dialog").get_by_role("button", name="Delete").click()
        for page in (ada, bob):
            expect(page.locator(SIDEBAR).get_by_text("flown birds")).to_have_count(0)
            expect(page.locator(SIDEBAR).get_by_text("running dogs")).to_have_count(1)
        assert "s3" not in home.fill.store.ids()

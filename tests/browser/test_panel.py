"""The panel of one experiment in a real JupyterLab, with no kernel: it shows the store and follows it."""

from __future__ import annotations

import json
import time

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.cell.planning import kept_plan
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.space import Uniform
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, Placement, Resources
from tests.browser.jupyter_lab import until_layout_saved
from tests.browser.lab_page import DARK, in_theme, picture, pictures, run_command
from tests.browser.panel_page import OBJECTIVE, add, begin, open_panel, report

pytestmark = pytest.mark.browser

SCRIPT = "<img src=x onerror=document.body.remove()>"


def test_a_panel_shows_curves_trials_and_logs_and_follows_them(page, store, server):
    add(store, "p1", "cats")
    begin(store, "p1", 1, lr=0.1)
    report(store, "p1", 1, [0.1, 0.5])
    log = Home(server.home).trial("p1", 1, 1) / "stdout"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("10%\r100%\nloaded\n")
    panel = open_panel(page, "p1")
    panel.get_by_role("heading", name="cats").wait_for()
    panel.get_by_text("Best acc (last) 0.5").wait_for()
    panel.locator(".at-chart canvas").wait_for()
    panel.get_by_role("row", name="lr").wait_for()
    panel.get_by_text("Log of trial 1").click()
    panel.get_by_role("log").get_by_text("loaded").wait_for()
    assert "10%\n" not in panel.get_by_role("log").text_content()
    with log.open("a") as file:
        file.write("epoch 2\n")
    panel.get_by_role("log").get_by_text("epoch 2").wait_for()
    report(store, "p1", 1, [0.75])
    panel.get_by_text("Best acc (last) 0.75").wait_for()
    begin(store, "p1", 2, lr=0.2)
    panel.get_by_role("gridcell", name="0.2").wait_for()
    panel.get_by_text("The manager is not running").wait_for()


def test_a_deleted_experiment_is_told(page, store):
    add(store, "p2", SCRIPT)
    begin(store, "p2", 1)
    panel = open_panel(page, "p2")
    panel.get_by_role("heading", name=SCRIPT).wait_for()
    assert panel.locator("img").count() == 0
    store.delete_experiment("p2")
    panel.get_by_text("This experiment was deleted").wait_for()
    assert panel.get_by_role("heading", name=SCRIPT).is_visible()


def test_a_narrow_panel_shows_all_tabs_and_keeps_its_parts_apart(page, store):
    add(store, "p10", "narrow", trials=1)
    begin(store, "p10", 1, lr=0.1)
    store.change_state("p10", 1, TrialState.FAILED, time.time(), reason="broken")
    store.close_experiment("p10", time.time())
    page.set_viewport_size({"width": 700, "height": 900})
    panel = open_panel(page, "p10")
    panel.get_by_role("button", name="Rerun").wait_for()
    tabs = panel.get_by_role("tablist", name="Pages of the experiment")
    assert tabs.evaluate("(tabs) => tabs.scrollWidth - tabs.clientWidth") == 0
    rows = {
        button.bounding_box()["height"]
        for button in panel.get_by_role("group", name="Actions").get_by_role("button").all()
    }
    assert len(rows) == 1
    above = panel.get_by_role("progressbar").bounding_box()
    assert tabs.bounding_box()["y"] - above["y"] > 30
    picture(page, "panel-narrow")


def test_at_200_percent_every_tab_and_tool_of_a_panel_is_in_sight(page, store):
    add(store, "p12", "large letters", trials=2)
    begin(store, "p12", 1, lr=0.1)
    report(store, "p12", 1, [0.1, 0.4])
    for name in ("loss", "learning_rate", "a_rather_long_metric"):
        report(store, "p12", 1, [1.0, 0.5], name)
    page.set_viewport_size({"width": 590, "height": 500})  # as a page of 1180 pixels at 200 %
    page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    panel = open_panel(page, "p12")
    panel.locator(".at-chart canvas").wait_for()
    right = panel.evaluate("(panel) => panel.getBoundingClientRect().right")
    tools = panel.get_by_role("group", name="Curves").get_by_role("button")
    for part in [*panel.get_by_role("tab").all(), *tools.all()]:
        box = part.bounding_box()
        assert box is None or box["x"] + box["width"] <= right, part.inner_text()
    assert panel.locator(".jp-Autotrain-panelBody").evaluate("(el) => el.scrollWidth <= el.clientWidth")
    picture(page, "panel-200-percent")


def test_the_trials_take_the_height_of_a_tall_panel_and_no_more_than_they_need(page, store):
    add(store, "p13", "tall", trials=60)
    for number in range(1, 4):
        begin(store, "p13", number, lr=0.1 * number)
        report(store, "p13", number, [0.1, 0.4])
    page.set_viewport_size({"width": 1180, "height": 1500})
    panel = open_panel(page, "p13")
    panel.get_by_role("row", name="0.3").wait_for()
    height = "document.querySelector('.jp-Autotrain-panel .at-scroll').clientHeight"
    page.wait_for_function(f"() => {height} < 150")
    for number in range(4, 61):
        begin(store, "p13", number, lr=0.1 * number)
    panel.get_by_role("gridcell", name="1.5", exact=True).wait_for()
    page.wait_for_function(f"() => {height} > 600")
    page.wait_for_function("(panel) => panel.scrollHeight <= panel.clientHeight", arg=panel.element_handle())
    expect(panel.locator("tr[data-trial='25']")).to_be_in_viewport()
    picture(page, "panel-tall")


def test_an_experiment_that_never_was_here_leaves_nothing_to_wait_for(page):
    run_command(page, "autotrain:open-experiment", id="p9")
    panel = page.locator(".jp-Autotrain-panel:visible")
    panel.get_by_text("This experiment no longer exists.").wait_for()
    expect(panel.get_by_role("tablist")).to_have_count(0)
    assert panel.inner_text().strip() == "This experiment no longer exists."


@pytest.mark.long  # by default test_restored_layout.py loads the page anew, with a panel in it
def test_an_open_panel_is_there_again_after_a_reload(page, store, server):
    add(store, "p3", "dogs")
    open_panel(page, "p3").get_by_role("heading", name="dogs").wait_for()
    open_panel(page, "p3")
    expect(page.locator(".jp-Autotrain-panel")).to_have_count(1)
    until_layout_saved(page, "autotrain-panel:p3")
    page.goto(f"{server.url}/lab?token={server.token}")
    page.locator(".jp-Autotrain-panel").get_by_role("heading", name="dogs").wait_for()
    assert page.locator(".jp-Autotrain-panel").count() == 1


def test_the_details_say_what_was_submitted_and_where_trials_run(page, store):
    resources = Resources(cpus=2, memory_bytes=4_000_000_000, nodes=2, workers_per_node=4)
    spec = ExperimentSpec("ranks", Bundle(), objective=OBJECTIVE, resources=resources, header="nodes: 2")
    store.add_experiment("p4", spec, time.time())
    store.add_trial("p4", 1, {}, time.time())
    placement = Placement(backend="cluster")
    store.change_state("p4", 1, TrialState.PREPARING, time.time(), placement=placement)
    store.change_state("p4", 1, TrialState.RUNNING, time.time())
    panel = open_panel(page, "p4")
    panel.get_by_role("tab", name="Details").click()
    panel.get_by_role("region", name="Where trials run").get_by_text("cluster").wait_for()
    panel.get_by_role("region", name="Resources").get_by_text("4 GB").wait_for()
    panel.get_by_role("region", name="Strategy").get_by_text("8 workers").wait_for()
    panel.get_by_role("region", name="Header").get_by_text("nodes: 2").wait_for()
    panel.get_by_role("region", name="Why").get_by_text("manager").first.wait_for()


def test_a_trial_that_begins_takes_neither_focus_nor_selection_from_the_details(page, store):
    spec = ExperimentSpec("read", Bundle(), trials=2, search={"lr": Uniform(0.001, 1, log=True)}, header="trials: 2")
    store.add_experiment("p11", spec, time.time())
    panel = open_panel(page, "p11")
    panel.get_by_role("tab", name="Details").click()
    search = panel.get_by_role("region", name="Search")
    expect(search).to_contain_text("loguniform(0.001, 1)")
    header = panel.get_by_role("region", name="Header").get_by_text("trials: 2")
    header.focus()
    header.select_text()
    store.add_trial("p11", 1, {"lr": 0.1}, time.time())
    store.change_state("p11", 1, TrialState.PREPARING, time.time(), placement=Placement(backend="cluster"))
    expect(panel.get_by_role("region", name="Where trials run")).to_contain_text("cluster")
    expect(header).to_be_focused()
    assert page.evaluate("() => getSelection().toString()") == "trials: 2"


def test_the_details_show_the_plan_that_was_kept_at_submit(page, store, server, plan):
    plan = kept_plan(plan)
    bundle = Home(server.home).bundle("p6")
    bundle.mkdir(parents=True, exist_ok=True)
    (bundle / "plan.json").write_text(json.dumps(plan))
    add(store, "p6", "planned")  # as at a submit, last: a page hears of an experiment that is whole
    panel = open_panel(page, "p6")
    panel.get_by_role("tab", name="Details").click()
    strategy = panel.get_by_role("region", name="Strategy")
    expect(strategy).to_contain_text(f"Plan of {plan['name']} on {plan['cluster']['name']}")
    strategy.get_by_role("row", name="DDP").first.wait_for()
    strategy.get_by_label("The plan as code").get_by_text("from torch.distributed").wait_for()


def test_the_details_of_a_finished_experiment_are_there_once_they_are_chosen(page, store):
    add(store, "p8", "finished", trials=1)
    begin(store, "p8", 1, lr=0.1)
    store.change_state("p8", 1, TrialState.SUCCEEDED, time.time())
    store.close_experiment("p8", time.time())
    panel = open_panel(page, "p8")
    panel.get_by_role("row", name="lr").wait_for()
    # Nothing changes any more that would draw it later.
    panel.get_by_role("tab", name="Details").evaluate("(tab) => tab.click()")
    assert "trials: 2" in panel.inner_text()


def test_code_that_is_not_kept_any_more_is_told_in_one_sentence(page, store):
    add(store, "p7", "cleaned")
    panel = open_panel(page, "p7")
    panel.get_by_role("tab", name="Code").click()
    code = panel.get_by_role("region", name="Captured code")
    sentence = "The code of this experiment is no longer kept. Run its cell again to capture it."
    expect(code.get_by_role("status")).to_have_text(sentence)
    assert code.inner_text().strip() == sentence
    picture(page, "panel-no-code")


@pytest.mark.long  # for its pictures
def test_the_panel_and_its_question_follow_the_theme(page, store):
    add(store, "p5", "curves", trials=6)
    for number in range(1, 5):
        begin(store, "p5", number, lr=0.1 * number, layers=number)
        report(store, "p5", number, [1 - 0.9 ** (step * number / 3) for step in range(40)])
    panel = open_panel(page, "p5")
    panel.locator(".at-chart canvas").wait_for()
    panel.get_by_role("gridcell", name="0.4").wait_for()
    pictures(page, "panel")
    panel.get_by_role("tab", name="Details").click()
    panel.get_by_role("region", name="Header").wait_for()
    pictures(page, "panel-details")
    panel.get_by_role("tab", name="Parallel coordinates").click()
    panel.get_by_text("4 trials", exact=True).wait_for()
    pictures(page, "panel-parallel")
    with in_theme(page, DARK):
        run_command(page, "autotrain:stop", id="p5")
        page.get_by_role("dialog").get_by_text("Stop curves").wait_for()
        picture(page, "question-dark")
        page.keyboard.press("Escape")

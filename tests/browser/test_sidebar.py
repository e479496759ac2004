"""The sidebar of experiments in a real JupyterLab, with no kernel: it shows the home and follows it."""

from __future__ import annotations

import re
import statistics
import sys
import time

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from tests.browser.lab_page import picture, pictures
from tests.browser.sidebar_page import add, choose, filter_by, group, head_button, item, menu_item

pytestmark = pytest.mark.browser

# What of the rows is wider than its place.
CUT = """(region) => [...region.querySelectorAll('.jp-Autotrain-item, .jp-Autotrain-item *')]
    .filter((part) => part.scrollWidth > part.clientWidth + 1 && getComputedStyle(part).display !== 'inline')
    .map((part) => part.outerHTML)"""
SCRIPT = "<img src=x onerror=document.body.remove()>"


def test_experiments_are_grouped_filtered_and_followed(sidebar, store):
    sidebar.get_by_text("No experiments yet").wait_for()
    add(store, "s1", "sleeping cats")
    add(store, "s2", "running dogs", [0.1, 0.9, 0.5])
    add(store, "s3", "flown birds", [0.25], TrialState.SUCCEEDED)
    for title, name in (("Queued", "sleeping cats"), ("Running", "running dogs"), ("Done", "flown birds")):
        group(sidebar, title).get_by_text(name).wait_for()
    sidebar.get_by_text("acc (last) 0.5").wait_for()
    sidebar.get_by_text("The manager is not running").wait_for()
    expect(sidebar.get_by_label("Filter by name")).to_have_count(0)
    filter_by(sidebar, "DOG")
    expect(sidebar.locator(".jp-Autotrain-item")).to_have_count(1)
    sidebar.page.keyboard.press("Escape")
    expect(sidebar.get_by_label("Filter by name")).to_have_count(0)
    expect(sidebar.locator(".jp-Autotrain-item")).to_have_count(3)
    store.change_state("s2", 1, TrialState.FAILED, time.time(), reason="broken")
    store.close_experiment("s2", time.time())
    group(sidebar, "Done").get_by_text("running dogs").wait_for()
    expect(item(sidebar, "running dogs")).to_contain_text(re.compile(r"failed · .*1/2 · took .* · just now"))
    expect(item(sidebar, "running dogs")).to_have_attribute("title", re.compile("failed: broken\nSubmitted "))
    expect(item(sidebar, "flown birds")).not_to_contain_text("succeeded")
    store.annotate_experiment("s2", note="a note that is longer than a row of the sidebar is wide")
    sidebar.get_by_title("a note that is longer than a row of the sidebar is wide").wait_for()
    store.delete_experiment("s3")
    sidebar.get_by_text("flown birds").wait_for(state="detached")


def test_what_runs_is_listed_however_many_newer_ones_have_ended(sidebar, store):
    add(store, "old", "old cats", [0.1, 0.9], notebook="/n/busy.ipynb")
    for number in range(55):
        add(store, f"n{number}", f"newer {number}", [0.5], TrialState.SUCCEEDED, "/n/busy.ipynb")
    expect(group(sidebar, "Done")).to_have_attribute("aria-label", "Done 55")
    group(sidebar, "Running").get_by_text("old cats").wait_for()
    expect(sidebar.locator(".jp-Autotrain-item")).to_have_count(50)
    choose(sidebar, "Groups", "By notebook")
    expect(group(sidebar, "busy.ipynb")).to_have_attribute("aria-label", "busy.ipynb 56")
    expect(item(sidebar, "newer 54")).to_contain_text("succeeded")
    choose(sidebar, "Groups", "By state")
    group(sidebar, "Running").get_by_text("old cats").wait_for()


def test_what_is_left_of_a_running_experiment_is_estimated_from_the_trials_that_have_ended(sidebar, store):
    now_s = time.time()
    store.add_experiment("s7", ExperimentSpec("estimated", Bundle(), trials=4), now_s - 170)
    store.add_trial("s7", 1, {}, now_s - 170)
    for state in (TrialState.PREPARING, TrialState.RUNNING):
        store.change_state("s7", 1, state, now_s - 170)
    store.change_state("s7", 1, TrialState.SUCCEEDED, now_s)
    # Three more of 170 seconds, one after the other, and what has passed since on a loaded machine; an age is told by
    # whole minutes of the clock.
    expect(item(sidebar, "estimated")).to_contain_text(
        re.compile(r"1/4 · ([5-9]|\d\d) min( \d\d s)? left · [12] min ago")
    )


def test_a_name_with_markup_is_shown_as_text(sidebar, store):
    add(store, "s4", SCRIPT)
    sidebar.get_by_text(SCRIPT).wait_for()
    assert sidebar.locator("img").count() == 0


@pytest.mark.long  # for its pictures
def test_the_sidebar_follows_the_theme(sidebar, store):
    add(store, "s5", "curves", [0.1, 0.4, 0.3, 0.8])
    add(store, "s6", "finished", [0.2, 0.6], TrialState.SUCCEEDED)
    sidebar.get_by_text("finished").wait_for()
    pictures(sidebar.page, "sidebar")


def test_nothing_of_a_row_is_cut_in_a_narrow_sidebar(sidebar, store):
    name = "a-name-that-is-far-longer-than-a-narrow-sidebar-is-wide"
    add(store, "w1", name, [0.125, 0.25, 0.5], TrialState.SUCCEEDED)
    add(store, "w2", "running", [0.125, 0.25, 0.5])
    expect(item(sidebar, name)).to_have_attribute("data-state", "SUCCEEDED")
    expect(item(sidebar, "running")).to_have_attribute("data-state", "RUNNING")
    width = sidebar.evaluate("(element) => element.getBoundingClientRect().width")
    try:
        for width_px in (250, 400):
            set_width(sidebar, width_px)
            sidebar.page.wait_for_function(f"(region) => !({CUT})(region).length", arg=sidebar.element_handle())
            buttons = sidebar.get_by_role("toolbar", name="Filter and order").get_by_role("button")
            tops = buttons.evaluate_all("(all) => all.map((each) => each.getBoundingClientRect().top)")
            assert len(tops) == 6
            assert len(set(tops)) == 1
            picture(sidebar.page, f"sidebar-{width_px}")
    finally:
        set_width(sidebar, width)


def set_width(sidebar, width_px):
    """Make the sidebar so wide."""
    sidebar.evaluate(
        """(element, width) => {
            const split = window.jupyterapp.shell._hsplitPanel;
            const all = split.node.getBoundingClientRect().width;
            split.setRelativeSizes([width, all - width, 0]);
        }""",
        width_px,
    )
    sidebar.page.wait_for_function(
        "([id, width]) => Math.abs(document.getElementById(id).getBoundingClientRect().width - width) < 2",
        arg=["jp-autotrain-experiments", width_px],
    )


def test_the_buttons_above_the_list_are_one_stop_of_tab_with_arrows_between_them(sidebar):
    page = sidebar.page
    head_button(sidebar, "Filter").focus()
    page.keyboard.press("ArrowRight")
    expect(head_button(sidebar, "Tags")).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(menu_item(page, "Newest")).to_have_attribute("aria-checked", "true")
    page.keyboard.press("Escape")
    expect(head_button(sidebar, "Order: Newest")).to_be_focused()


def test_from_a_row_in_the_store_to_the_sidebar(sidebar, store, capsys):
    times = []
    sidebar.get_by_text("No experiments yet").wait_for()
    for number in range(10):
        began_s = time.perf_counter()
        add(store, f"t{number}", f"insert-{number}")
        sidebar.get_by_text(f"insert-{number}").wait_for()
        times.append(time.perf_counter() - began_s)
        sidebar.page.wait_for_timeout(150)  # longer than changes are gathered: each is measured alone
    with capsys.disabled():
        median = statistics.median(times) * 1000
        slowest = max(times) * 1000
        sys.stdout.write(f"\ninsert to pixel, {len(times)} inserts: median {median:.0f} ms, slowest {slowest:.0f} ms\n")

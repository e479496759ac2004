"""The table of all experiments in the main area: pages, filters, orders, keys, actions, live and after a reload."""

from __future__ import annotations

import re
import sys
import time

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from tests.browser.accessibility import broken
from tests.browser.jupyter_lab import until_layout_saved
from tests.browser.lab_page import open_empty, pictures, run_command
from tests.browser.sidebar_page import add, end, item

pytestmark = pytest.mark.browser


@pytest.fixture
def size():
    return 1280, 900


def shown(page):
    """Return the table, opened by its command."""
    run_command(page, "autotrain:show-all-experiments")
    table = page.get_by_role("grid", name="Experiments")
    table.wait_for()
    return table


def names(table):
    return table.get_by_role("rowheader").locator("button")


def test_experiments_are_filtered_and_ordered_by_each_column(page, store):
    add(store, "a1", "row-10", [0.5, 0.9], TrialState.SUCCEEDED, "/n/a.ipynb")
    add(store, "a2", "row-9", [0.5], TrialState.FAILED)
    add(store, "a3", "row-8", [0.1, 0.2])
    store.annotate_experiment("a2", tags=["paper"], note="to be read again")
    table = shown(page)
    expect(names(table)).to_have_text(["row-8", "row-9", "row-10"])
    expect(table.get_by_role("row").nth(3)).to_contain_text(re.compile("Succeeded.*acc.*0.9.*1/2"))
    for head, ascending in (("Name", ["row-8", "row-9", "row-10"]), ("Best", ["row-10", "row-9", "row-8"])):
        column = table.get_by_role("columnheader", name=head)
        column.get_by_role("button").click()
        expect(names(table)).to_have_text(ascending)
        expect(column).to_have_attribute("aria-sort", "ascending" if head == "Name" else "descending")
        column.get_by_role("button").click()
        expect(names(table)).to_have_text(ascending[::-1])
    for label, option, found in (
        ("State", "Failed", 1),
        ("Tag", "paper", 1),
        ("Place", "local", 3),
        ("Metric", "acc", 3),
    ):
        page.get_by_label(label, exact=True).select_option(option)
        expect(names(table)).to_have_count(found)
        page.get_by_role("button", name="Clear filters").click()
    page.get_by_label("From", exact=True).fill("2001-01-01")
    expect(names(table)).to_have_count(3)
    page.get_by_label("To", exact=True).fill("2001-01-02")
    expect(names(table)).to_have_count(0)
    page.get_by_text("No experiments match.").wait_for()


def test_the_table_follows_live_is_operated_by_keys_and_acts_on_what_is_chosen(page, store):
    for number in range(4):
        add(store, f"k{number}", f"kept-{number}", [0.5], TrialState.SUCCEEDED)
    add(store, "k4", "running", [0.5])
    table = shown(page)
    rows = table.locator("tr.jp-Autotrain-item")
    expect(rows).to_have_count(5)
    end(store, "k4", TrialState.SUCCEEDED)
    expect(rows.first).to_contain_text("Succeeded")
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    expect(rows.nth(2)).to_be_focused()
    expect(rows.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("C")
    results = page.get_by_role("region", name="Results").get_by_role("rowheader")
    expect(results).to_have_text(["kept-3", "kept-2"])
    shown(page)
    rows.nth(4).click(button="right")
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(rows).to_have_count(4)
    rows.nth(3).focus()
    page.keyboard.press("F2")
    page.get_by_role("textbox", name="Tags").fill("seen")
    page.keyboard.press("Control+Enter")
    expect(rows.nth(3)).to_contain_text("seen")
    page.keyboard.press("Enter")
    expect(page.locator(".jp-Autotrain-panel").get_by_role("heading", name="kept-1")).to_be_visible()


def test_of_the_table_and_the_sidebar_the_one_that_was_used_last_is_acted_on(page, store):
    for number in range(2):
        add(store, f"u{number}", f"used-{number}", [0.5], TrialState.SUCCEEDED)
    run_command(page, "autotrain:show-experiments")
    sidebar = page.get_by_role("region", name="Experiments")
    for number in range(2):  # a row that is new moves those below it
        expect(item(sidebar, f"used-{number}")).to_have_attribute("data-state", "SUCCEEDED")
    item(sidebar, "used-0").locator(".jp-Autotrain-check").click()
    table = shown(page)
    table.locator("tr", has_text="used-1").locator(".jp-Autotrain-check").click()
    run_command(page, "autotrain:delete")
    expect(page.get_by_role("dialog")).to_contain_text("Delete used-1?")


@pytest.mark.long  # by default test_restored_layout.py loads the page anew, with the table in it
def test_what_is_shown_is_there_again_after_a_reload(page, store, server):
    open_empty(page, server)  # nothing of another test is in the saved layout
    for number in range(3):
        add(store, f"r{number}", f"restored-{number}", [0.5], TrialState.SUCCEEDED)
    store.annotate_experiment("r1", tags=["paper"])
    table = shown(page)
    page.get_by_label("Tag", exact=True).select_option("paper")
    table.get_by_role("columnheader", name="Name").get_by_role("button").click()
    expect(names(table)).to_have_text(["restored-1"])
    until_layout_saved(page, "autotrain-table:table")
    page.reload()
    expect(names(table)).to_have_text(["restored-1"])
    expect(page.get_by_label("Tag", exact=True)).to_have_value("paper")
    expect(table.get_by_role("columnheader", name="Name")).to_have_attribute("aria-sort", "ascending")


def test_the_table_breaks_no_rule_of_accessibility(page, store):
    add(store, "x1", "waits")
    add(store, "x2", "ended", [0.5, 0.75], TrialState.SUCCEEDED)
    store.annotate_experiment("x2", tags=["paper"], note="a note")
    table = shown(page)
    table.locator("tr", has_text="ended").locator(".jp-Autotrain-check").click()
    pictures(page, "experiments-table")
    assert broken(page, ".jp-AutotrainTable") == []


@pytest.mark.parametrize("count", [250, pytest.param(1200, marks=pytest.mark.long)])
def test_many_experiments_are_turned_page_by_page(page, store, capsys, count):
    now_s = time.time()
    for number in range(count):
        spec = ExperimentSpec(f"many-{number}", Bundle(), objective=Objective("acc"), trials=2)
        store.add_experiment(f"m{number}", spec, now_s - count + number)
    began_s = time.perf_counter()
    table = shown(page)
    expect(names(table).first).to_have_text(f"many-{count - 1}")
    opened_s = time.perf_counter() - began_s
    page.get_by_text(f"1\N{EN DASH}100 of {count:,}").wait_for()
    began_s = time.perf_counter()
    page.get_by_role("button", name="Last page").click()
    last_page = count % 100 or 100
    expect(names(table).first).to_have_text(f"many-{last_page - 1}")
    turned_s = time.perf_counter() - began_s
    assert table.get_attribute("aria-rowcount") == str(count + 1)
    expect(table.get_by_role("row").nth(1)).to_have_attribute("aria-rowindex", str(count - last_page + 2))
    names(table).first.focus()
    table.locator("tr.jp-Autotrain-item").first.focus()
    page.keyboard.press("PageUp")
    expect(names(table).first).to_have_text(f"many-{last_page + 99}")
    page.get_by_label("Filter by name").fill("many-1")
    expect(names(table)).to_have_count(100)
    found = sum(str(number).startswith("1") for number in range(count))
    page.get_by_text(f"1\N{EN DASH}100 of {found}").wait_for()
    with capsys.disabled():
        sys.stdout.write(f"\n{count} experiments: opened in {opened_s:.2f} s, a page turned in {turned_s:.2f} s\n")

"""Tests of actions in the sidebar: choosing, editing, acting, and what JupyterLab tells outside of it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from jupyter_autotrain import manager
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from tests.browser.jupyter_lab import until_layout_saved
from tests.browser.lab_page import run_command
from tests.browser.sidebar_page import add, choose, end, filter_by, group, head_button, item

pytestmark = pytest.mark.browser

SCRIPT = "<img src=x onerror=document.body.remove()>"
CURRENT = '"current":"autotrain-experiments"'


def ended(row):
    """Return the row, once it shows that its experiment has ended: only then deleting is offered."""
    expect(row).to_have_attribute("data-state", "SUCCEEDED")
    return row


def test_tags_and_a_note_are_edited_in_place_and_filter_the_list(sidebar, store):
    add(store, "a1", "cats", [0.5], TrialState.SUCCEEDED)
    add(store, "a2", "dogs", [0.75], TrialState.SUCCEEDED)
    cats = ended(item(sidebar, "cats"))
    cats.press("F2")
    cats.get_by_role("textbox", name="Tags").fill("paper, baseline")
    cats.get_by_role("textbox", name="Note").fill(SCRIPT)
    cats.get_by_role("button", name="Save").click()
    cats.get_by_text("baseline").wait_for()
    cats.get_by_text(SCRIPT).wait_for()
    item(sidebar, "dogs").wait_for()
    assert store.annotations()["a1"].tags == ("paper", "baseline")
    choose(sidebar, "Tags", "#paper")
    item(sidebar, "dogs").wait_for(state="detached")
    assert cats.is_visible()
    sidebar.get_by_role("button", name="#paper: show all tags").click()
    item(sidebar, "dogs").wait_for()


def test_the_list_is_grouped_sorted_and_folded_and_stays_so_after_a_reload(sidebar, store):
    add(store, "b1", "foxes", [0.5], TrialState.SUCCEEDED, notebook="/notebooks/animals.ipynb")
    add(store, "b2", "oaks", [0.25], TrialState.SUCCEEDED, notebook="/notebooks/plants.ipynb")
    add(store, "b3", "wolves", [0.75], TrialState.SUCCEEDED, notebook="/notebooks/animals.ipynb")
    prefer(sidebar, "Groups", "By notebook")
    prefer(sidebar, "Order", "Best value")
    animals = group(sidebar, "animals.ipynb")
    expect(sidebar.locator(".jp-Autotrain-name")).to_have_text(["wolves", "foxes", "oaks"])
    animals.press("ArrowLeft")
    item(sidebar, "wolves").wait_for(state="detached")
    until_layout_saved(sidebar.page, CURRENT)
    sidebar.page.reload()
    item(sidebar, "oaks").wait_for()
    expect(animals).to_have_attribute("aria-expanded", "false")
    expect(head_button(sidebar, "Order: Best value")).to_be_visible()
    sidebar.page.evaluate("() => window.jupyterapp.restored")  # until then JupyterLab moves the focus
    animals.click()
    expect(sidebar.locator(".jp-Autotrain-name")).to_have_text(["wolves", "foxes", "oaks"])


def test_the_order_is_reversed_and_turned_back_by_the_menu(sidebar, store):
    for number, name in enumerate(["eldest", "middle", "newest"]):
        add(store, f"o{number}", name)
    names = sidebar.locator(".jp-Autotrain-name")
    expect(names).to_have_text(["newest", "middle", "eldest"])
    for order, told in (
        ("Order: Newest, reversed", ["eldest", "middle", "newest"]),
        ("Order: Newest", ["newest", "middle", "eldest"]),
    ):
        prefer(sidebar, "Order", "Reverse the order")
        expect(head_button(sidebar, f"{order}$")).to_be_visible()
        expect(names).to_have_text(told)


def prefer(sidebar, button, option):
    """Choose an option of the list; returns when the server keeps it."""
    with sidebar.page.expect_response(re.compile("/lab/api/settings/jupyter-autotrain")):
        choose(sidebar, button, option)


def test_several_are_chosen_and_deleted_by_the_menu_although_the_manager_is_dead(sidebar, store, server):
    for number, name in enumerate(["cats", "dogs", "birds"]):
        add(store, f"c{number}", name, [0.5], TrialState.SUCCEEDED)
    for name in ("cats", "dogs", "birds"):
        ended(item(sidebar, name))
    item(sidebar, "birds").click()
    item(sidebar, "dogs").click(modifiers=["Shift"])
    toolbar = sidebar.get_by_role("toolbar", name="Chosen experiments")
    toolbar.get_by_text("2 chosen").wait_for()
    assert toolbar.get_by_role("button", name="Stop").count() == 0
    item(sidebar, "dogs").click(button="right")
    page = sidebar.page
    menu = page.get_by_role("menu")
    assert menu.get_by_role("menuitem", name="Stop").get_attribute("aria-disabled") == "true"
    menu.get_by_role("menuitem", name="Delete").click()
    question = page.get_by_role("dialog")
    question.get_by_text("Delete 2 experiments?").wait_for()
    question.get_by_text("The manager is not running; this starts it.").wait_for()
    question.get_by_role("button", name="Delete").click()
    for name in ("birds", "dogs"):
        item(sidebar, name).wait_for(state="detached")
    assert item(sidebar, "cats").is_visible()
    assert manager.status(Home(server.home)).alive


def test_the_command_of_the_palette_compares_what_is_chosen_in_the_list(sidebar, store):
    for number, name in enumerate(["compared-a", "compared-b", "beside"]):
        add(store, f"p{number}", name, [0.5], TrialState.SUCCEEDED)
    for name in ("compared-a", "compared-b"):
        ended(item(sidebar, name)).locator(".jp-Autotrain-facts").click(modifiers=["Control"])
    run_command(sidebar.page, "autotrain:compare")
    compared = sidebar.page.get_by_role("article", name="Comparison of 2 experiments")
    names = compared.get_by_role("region", name="Results").get_by_role("rowheader")
    expect(names).to_have_text(["compared-a", "compared-b"])


def test_a_row_that_moves_between_press_and_release_is_the_one_that_is_ticked(sidebar, store):
    add(store, "m1", "pressed", [0.5], TrialState.SUCCEEDED)
    pressed = ended(item(sidebar, "pressed"))
    mouse = sidebar.page.mouse
    keys = sidebar.page.keyboard
    pressed.locator(".jp-Autotrain-facts").hover()
    keys.down("Control")
    mouse.down()
    add(store, "m2", "on top", [0.5], TrialState.SUCCEEDED)
    ended(item(sidebar, "on top"))
    mouse.up()
    keys.up("Control")
    expect(pressed).to_have_attribute("aria-selected", "true")
    expect(item(sidebar, "on top")).to_have_attribute("aria-selected", "false")
    expect(group(sidebar, "Done")).to_have_attribute("aria-expanded", "true")


def test_a_run_that_was_opened_is_not_compared_with_those_that_are_ticked_after_it(sidebar, store):
    for number in range(6):
        add(store, f"t{number}", f"ticked-{number}", [0.5], TrialState.SUCCEEDED)
    page = sidebar.page
    item(sidebar, "ticked-5").click()
    page.locator(".jp-Autotrain-panel").wait_for()
    for number in range(5):
        item(sidebar, f"ticked-{number}").locator(".jp-Autotrain-facts").click(modifiers=["Control"])
    sidebar.get_by_text("5 chosen").wait_for()
    sidebar.get_by_role("button", name="Compare").click()
    names = page.get_by_role("region", name="Results").get_by_role("rowheader")
    expect(names).to_have_text([f"ticked-{number}" for number in range(5)])


def test_the_button_above_the_list_shows_the_places(sidebar):
    head_button(sidebar, "Show places").click()
    places = sidebar.page.get_by_role("region", name="Places")
    expect(places.get_by_role("region", name="local", exact=True)).to_contain_text("Usable")


def test_all_controls_above_the_list_are_of_one_height(sidebar, store):
    for number in (1, 2):
        add(store, f"h{number}", f"high-{number}", [0.5])
        item(sidebar, f"high-{number}").locator(".jp-Autotrain-facts").click(modifiers=["Control"])
    sidebar.get_by_role("button", name="Compare").wait_for()
    filter_by(sidebar, "high")
    controls = sidebar.locator(".jp-Autotrain-body").locator("input, button")
    assert controls.count() == 4
    heights = controls.evaluate_all("(all) => all.map((each) => each.getBoundingClientRect().height)")
    assert set(heights) == {28}


def test_what_is_refused_in_the_question_stays(sidebar, store):
    add(store, "d1", "asked-about", [0.5], TrialState.SUCCEEDED)
    row = ended(item(sidebar, "asked-about"))
    row.press("ArrowDown")
    row.press("Delete")
    page = sidebar.page
    page.get_by_role("dialog").get_by_text("Delete asked-about?").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    assert row.is_visible()


def test_a_row_that_moves_to_another_group_keeps_the_focus(sidebar, store):
    add(store, "g1", "ends", [0.5])
    row = item(sidebar, "ends")
    expect(row).to_have_attribute("data-state", "RUNNING")
    row.focus()
    end(store, "g1", TrialState.SUCCEEDED)
    expect(ended(row)).to_be_focused()


def test_the_status_bar_counts_and_an_end_is_told_as_text(sidebar, store):
    page = sidebar.page
    add(store, "e0", "earlier", [0.5], TrialState.FAILED)
    item(sidebar, "earlier").wait_for()
    until_layout_saved(page, CURRENT)
    page.reload()
    item(sidebar, "earlier").wait_for()
    add(store, "e1", SCRIPT, [0.5])
    add(store, "e2", "waits")
    status = page.get_by_role("button", name="1 running, 1 queued")
    status.wait_for()
    end(store, "e1", TrialState.FAILED, "out of memory")
    told = page.locator(".Toastify__toast").filter(has_text=re.compile("failed: out of memory"))
    told.wait_for()
    assert SCRIPT in told.inner_text()
    assert page.locator(".Toastify__toast").filter(has_text="earlier").count() == 0
    page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    page.get_by_role("button", name="0 running, 1 queued").click()
    item(sidebar, "waits").wait_for()

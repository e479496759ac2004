"""The panel of places in a real JupyterLab, with no kernel: state, nodes, checks, and the form for profiles."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, NodePlacement, Placement
from tests.browser.lab_page import picture, pictures, run_command

pytestmark = pytest.mark.browser

SCRIPT = "<img src=x onerror=document.body.remove()>"
WRITTEN = f"""\
# ours
lab:  # two boxes
  type: debug
  colour: "{SCRIPT}"
"""


@pytest.fixture
def file(server) -> Iterator:
    path = server.home.parent / "config" / "backends.yaml"
    path.write_text(WRITTEN)
    yield path
    path.unlink(missing_ok=True)


@pytest.fixture
def panel(file, page):
    """Return the panel of a page with nothing else open."""
    run_command(page, "autotrain:show-places")
    return page.get_by_role("region", name="Places")


def place(panel, name):
    return panel.get_by_role("region", name=name, exact=True)


def running(store):
    store.add_experiment("p1", ExperimentSpec(SCRIPT, Bundle(), trials=2), time.time())
    store.add_trial("p1", 1, {}, time.time())
    placement = Placement((NodePlacement("here"),), "local")
    store.change_state("p1", 1, TrialState.PREPARING, time.time(), placement=placement)
    store.change_state("p1", 1, TrialState.RUNNING, time.time())


def test_places_show_their_state_nodes_and_what_runs_and_are_checked(panel, store, file):
    local = place(panel, "local")
    local.get_by_text(re.compile("^Usable")).wait_for()
    local.get_by_role("table", name="Nodes of local").get_by_role("row").nth(1).wait_for()
    panel.get_by_text(str(file)).wait_for()
    expect(panel.page.locator(".jp-MainAreaWidget:visible > .jp-Toolbar")).to_be_hidden()
    running(store)
    local.get_by_text(SCRIPT).wait_for()
    assert panel.locator("img").count() == 0
    local.get_by_role("button", name="Check local").press("Enter")
    steps = local.get_by_role("list", name="Steps of the check")
    steps.get_by_text(re.compile("tiny trial")).wait_for()
    local.get_by_text("It works: a trial ran there").wait_for()
    pictures(panel.page, "places")
    faulty = place(panel, "lab")
    faulty.get_by_text(re.compile("Problem: .*colour")).wait_for()
    assert faulty.get_by_role("button", name="Check lab").count() == 0


def test_a_profile_is_added_edited_and_removed_by_forms(panel, file):
    panel.get_by_role("button", name="Add a place").click()
    form = panel.get_by_role("group", name="New place")
    form.get_by_label("Kind of place").select_option("ssh")
    form.get_by_label(re.compile("^Name")).fill("box")
    form.get_by_label(re.compile("^port")).fill("many")
    form.get_by_role("button", name="Save").click()
    hosts = form.get_by_label(re.compile("^hosts"))
    expect(hosts).to_have_attribute("aria-invalid", "true")
    form.get_by_text(re.compile("box.port")).wait_for()
    assert file.read_text() == WRITTEN
    picture(panel.page, "places-form")
    hosts.fill("[127.0.0.1]")
    form.get_by_label(re.compile("^port")).fill("1")
    form.get_by_role("button", name="Save").click()
    place(panel, "box").get_by_text("Not usable").wait_for()
    assert "hosts: [127.0.0.1]" in file.read_text()
    assert file.read_text().startswith(WRITTEN)
    place(panel, "box").get_by_role("button", name="Edit box").click()
    form = panel.get_by_role("group", name="box")
    expect(form.get_by_label(re.compile("^port"))).to_have_value("1")
    form.get_by_label(re.compile("^user")).fill("ada")
    form.get_by_role("button", name="Save").click()
    form.wait_for(state="detached")
    assert "user: ada" in file.read_text()
    place(panel, "box").get_by_role("button", name="Remove box").click()
    panel.page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    place(panel, "box").wait_for(state="detached")
    assert file.read_text() == WRITTEN


@pytest.fixture
def project(server) -> Iterator:
    path = server.notebooks / "autotrain.yaml"
    path.write_text(f"backends:\n  theirs: {{type: debug}}\nenv: {{WORD: '{SCRIPT}'}}\n")
    yield path
    path.unlink()


def test_a_project_file_is_asked_about_in_a_dialog_and_counts_when_it_is_trusted(project, panel):
    page = panel.page
    dialog = page.get_by_role("dialog")
    dialog.get_by_text(re.compile("^Trust this project.s autotrain.yaml")).wait_for()
    dialog.get_by_text('place theirs: {"type": "debug"}').wait_for()
    dialog.get_by_text(SCRIPT).wait_for()
    assert page.locator("img[src=x]").count() == 0
    picture(page, "places-trust")
    page.keyboard.press("Enter")  # what is chosen at first is harmless
    expect(dialog).to_have_count(0)
    place(panel, "theirs").get_by_text(re.compile("not trusted yet")).wait_for()
    panel.get_by_role("button", name="Review …").click()
    dialog.get_by_role("button", name="Not now").click()
    expect(dialog).to_have_count(0)
    panel.get_by_role("button", name="Review …").click()
    dialog.get_by_role("button", name="Trust", exact=True).click()
    place(panel, "theirs").get_by_text(re.compile("^Usable")).wait_for()
    expect(panel.get_by_role("button", name="Review …")).to_have_count(0)
    project.write_text(project.read_text().replace("WORD", "OTHER"))
    panel.get_by_role("button", name="Refresh").click()
    dialog.get_by_text(re.compile("OTHER")).wait_for()
    dialog.get_by_role("button", name="Not now").click()

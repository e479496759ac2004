"""Experiments compared in a real JupyterLab, with no kernel: curves over each other, what differs, the code of two."""

from __future__ import annotations

import hashlib
import shutil
import time

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.space import Uniform
from jupyter_autotrain.core.spec import Bundle, CapturedName, ExperimentSpec
from jupyter_autotrain.store import Ingest
from tests.browser.lab_page import picture, pictures, run_command

pytestmark = pytest.mark.browser

SCRIPT = "<img src=x onerror=document.body.remove()>"
OBJECTIVE = Objective("acc")


@pytest.fixture
def size():
    return 1280, 1500


def add(server, store, experiment_id, params, code="print(1)\n", ended=True):
    """Add an experiment of two trials; the second one is the better."""
    captured = (CapturedName("load", "source", "cell 2", 1500), CapturedName("np", "import"))
    digest = hashlib.sha256(code.encode()).hexdigest()
    bundle = Bundle(captured=captured, sha256=digest, differences=("The folder is another one.",))
    search = {"lr": Uniform(1e-4, 1, log=True)}
    spec = ExperimentSpec(experiment_id, bundle, objective=OBJECTIVE, trials=2, search=search)
    store.add_experiment(experiment_id, spec, time.time())
    folder = Home(server.home).bundle(experiment_id)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.py").write_text(code)
    for number in (1, 2):
        store.add_trial(experiment_id, number, {**params, "seed": number}, time.time())
        store.change_state(experiment_id, number, TrialState.PREPARING, time.time())
        store.change_state(experiment_id, number, TrialState.RUNNING, time.time())
        report(store, experiment_id, number, range(30), cursor=1)
        if ended:
            store.change_state(experiment_id, number, TrialState.SUCCEEDED, time.time())
    if ended:
        store.close_experiment(experiment_id, time.time())


def report(store, experiment_id, number, steps, cursor):
    slope = number + len(experiment_id) / 10
    points = [("acc", step, time.time() + step, 1 - 1 / (1 + slope * step)) for step in steps]
    points += [("loss", step, time.time() + step, 1 / (1 + slope * step)) for step in steps]
    store.ingest([Ingest(experiment_id, number, 1, "metrics", cursor, points=points, objective=OBJECTIVE)])


def compare(page, ids):
    run_command(page, "autotrain:compare", ids=list(ids))


def view_of(page):
    return page.locator(".at-compare:visible")


def test_results_curves_and_what_differs_follow_live(page, server, store):
    add(server, store, "first", {"lr": 0.1, "model": {"_name": "big", "width": 8}, "kind": "a"})
    add(server, store, "second", {"lr": 0.1, "model": {"_name": "big", "width": 16}, "kind": "a"}, ended=False)
    compare(page, ["first", "second"])
    view = view_of(page)
    results = view.get_by_role("region", name="Results")
    row = results.get_by_role("row").filter(has_text="second")
    expect(row).to_contain_text("★")
    expect(row).to_contain_text("Running")
    expect(row.get_by_role("spinbutton")).to_have_attribute("placeholder", "best: 2")
    expect(view.get_by_role("img", name="Curves of acc, 2 runs")).to_be_visible()
    differences = view.get_by_role("region", name="Parameters and settings").get_by_role("table")
    expect(differences.get_by_role("row").filter(has_text="model.width")).to_contain_text("816")
    expect(differences).not_to_contain_text("kind")
    view.get_by_label("Show equal values").check()
    expect(differences.get_by_role("row").filter(has_text="kind")).to_contain_text("aa")
    report(store, "second", 2, range(30, 40), cursor=2)
    view.get_by_role("button", name="Table").click()
    values = view.get_by_role("region", name="Values of acc")
    expect(values.get_by_role("row").filter(has_text="39").first).to_be_visible()
    expect(values.get_by_role("columnheader", name="second ★")).to_be_visible()
    row.get_by_role("spinbutton").fill("1")
    row.get_by_role("spinbutton").press("Enter")
    expect(differences.get_by_role("row").filter(has_text="seed")).to_contain_text("21")
    store.change_state("second", 1, TrialState.FAILED, time.time(), reason="broken")
    store.change_state("second", 2, TrialState.SUCCEEDED, time.time())
    store.close_experiment("second", time.time())
    expect(row).to_contain_text("2/2")
    store.delete_experiment("first")
    expect(results.get_by_role("row").nth(1)).to_contain_text("No experiment has the name")


def test_the_comparison_is_operated_by_keyboard_and_follows_the_theme(page, server, store):
    runs = [f"run{'s' * i}" for i in range(4)]
    for i, run in enumerate(runs):
        code = f"import math\n\nx = {i}\n" + "".join(f"print({line})\n" for line in range(20))
        add(server, store, run, {"lr": 0.1**i, "width": 8 * i, "fast": i % 2 == 0}, code)
    compare(page, runs)
    operate(page, runs)
    pictures(page, "compare")


def operate(page, runs):
    """Go through the comparison of four runs with the keyboard."""
    view = view_of(page)
    tab = view.get_by_role("tab", name="acc")
    expect(tab).to_be_visible()
    tab.focus()
    page.keyboard.press("ArrowRight")
    expect(view.get_by_role("img", name="Curves of loss, 4 runs")).to_be_visible()
    view.get_by_role("button", name="Settings").press("Enter")
    view.get_by_label("Smoothing").press("End")
    view.get_by_label("Along the x axis").select_option("Time of the trial")
    view.get_by_role("button", name=f"Curves of {runs[1]}", exact=True).press("Enter")
    expect(view.get_by_role("img", name="Curves of loss, 3 runs")).to_be_visible()
    view.get_by_text("Code", exact=True).press("Enter")
    expect(view.get_by_text(f"Lines only in {runs[0]} (\N{MINUS SIGN}): 1.")).to_be_visible()
    expect(view.get_by_role("cell", name="x = 1", exact=True)).to_be_visible()
    view.get_by_role("button", name="Show 17 more lines").press("Enter")
    expect(view.get_by_role("cell", name="print(19)", exact=True)).to_be_visible()


def test_as_many_as_can_be_compared_are_shown_each_in_a_row_a_curve_and_a_column(page, server, store):
    runs = [f"run-{i:02}" for i in range(20)]
    for i, run in enumerate(runs):
        add(server, store, run, {"lr": 0.01 * (i + 1)})
    compare(page, runs)
    view = view_of(page)
    expect(view.get_by_role("img", name="Curves of acc, 20 runs")).to_be_visible()
    results = view.get_by_role("region", name="Results")
    expect(results.get_by_role("rowheader")).to_have_text(runs)
    expect(results.locator("td.at-state")).to_have_text(["Succeeded"] * len(runs))
    differences = view.get_by_role("region", name="Parameters and settings")
    expect(differences.get_by_role("columnheader")).to_have_text(["Name", *runs])
    assert view.evaluate("(view) => view.scrollWidth - view.clientWidth") == 0
    picture(page, "compare-20")


def test_names_and_code_with_markup_are_shown_as_text(page, server, store):
    add(server, store, "plain", {"lr": 0.1})
    store.add_experiment("x1", ExperimentSpec(SCRIPT, Bundle(), objective=OBJECTIVE), time.time())
    folder = Home(server.home).bundle("x1")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.py").write_text(SCRIPT)
    compare(page, ["plain", "x1"])
    view = view_of(page)
    expect(view.get_by_role("button", name=SCRIPT).first).to_be_visible()
    expect(view.get_by_role("region", name="Results")).to_contain_text("No trial yet.")
    view.get_by_text("Code", exact=True).click()
    expect(view.get_by_role("cell", name=SCRIPT).first).to_be_visible()
    assert view.locator("img").count() == 0


def test_a_run_whose_code_is_not_kept_any_more_is_named_instead_of_an_empty_difference(page, server, store):
    add(server, store, "kept", {"lr": 0.1})
    add(server, store, "emptied", {"lr": 0.2})
    shutil.rmtree(Home(server.home).bundle("emptied"))
    compare(page, ["kept", "emptied"])
    view = view_of(page)
    view.get_by_text("Code", exact=True).click()
    code = view.locator(".jp-AutotrainCode")
    sentence = "The code of emptied is no longer kept. Run its cell again to capture it."
    expect(code.get_by_role("status")).to_have_text(sentence)
    expect(code.get_by_role("table")).to_have_count(0)


def test_too_many_are_refused_in_words_and_the_same_runs_open_once(page, server, store):
    for name in ("one", "two"):
        add(server, store, name, {"lr": 0.1})
    compare(page, [f"e{i}" for i in range(21)])
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("21 experiments are chosen, up to 20 can be compared. Choose fewer.")
    dialog.get_by_role("button").last.click()
    compare(page, [])
    expect(dialog).to_contain_text("No experiment is chosen.")
    dialog.get_by_role("button").last.click()
    compare(page, ["two", "one"])
    expect(view_of(page).get_by_role("region", name="Results")).to_contain_text("two")
    compare(page, ["one", "two"])
    expect(page.locator(".at-compare")).to_have_count(1)
    expect(page.locator(".jp-MainAreaWidget:has(.at-compare) > .jp-Toolbar")).to_be_hidden()


def brush_with_the_pointer(page):
    """Brush the upper part of an axis, then all of it by a handle, then a part that a double click takes away."""
    axis = page.get_by_role("group", name="Axis seed")
    track = axis.locator(".at-axis-track")
    least = axis.get_by_role("slider", name="seed, minimum")
    part = page.get_by_text("1 of 2 trials pass").first
    every = page.get_by_text("2 trials", exact=True)
    drag(page, point_of(track, 0.3), point_of(track, -0.1))
    expect(part).to_be_visible()
    assert 1 < float(least.get_attribute("aria-valuenow")) < 2
    drag(page, point_of(least, 0.5), point_of(track, 1.1))
    expect(every).to_be_visible()
    drag(page, point_of(track, 0.7), point_of(track, 1.1))
    expect(part).to_be_visible()
    page.mouse.dblclick(*point_of(track, 0.2))
    expect(every).to_be_visible()


def point_of(element, share):
    """Return a point in the middle of an element, at a share of its height from the top."""
    box = element.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + share * box["height"]


def drag(page, begin, end):
    """Move the pointer, pressed, from one point to another."""
    page.mouse.move(*begin)
    page.mouse.down()
    page.mouse.move(*end, steps=4)
    page.mouse.up()


def test_the_code_and_the_parallel_coordinates_of_an_experiment_are_pages_of_its_panel(page, server, store):
    for name, width in (("one", 8), ("two", 16)):
        add(server, store, name, {"lr": 0.1, "width": width}, f"x = {width}\n")
    run_command(page, "autotrain:open-experiment", id="one")
    page.get_by_role("tab", name="Code", exact=True).click()
    expect(page.get_by_role("cell", name="x = 8", exact=True)).to_be_visible()
    expect(page.get_by_text("The folder is another one.")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="load")).to_contain_text("1.5 kB")
    page.get_by_label("Compare with").select_option("two")
    expect(page.get_by_role("cell", name="x = 16", exact=True)).to_be_visible()
    page.get_by_role("tab", name="Parallel coordinates").click()
    page.get_by_role("slider", name="seed, minimum").press("PageUp")
    expect(page.get_by_text("1 of 2 trials pass").first).to_be_visible()
    page.get_by_text("Clear filter").click()
    expect(page.get_by_text("2 trials", exact=True)).to_be_visible()
    brush_with_the_pointer(page)
    plot = page.locator(".at-parallel-scroll:visible")
    assert plot.evaluate("(element) => element.scrollWidth - element.clientWidth") == 0

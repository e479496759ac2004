"""The whole flow in a real JupyterLab: a cell trains in the background and is never lost from sight."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.jupyter_lab import wait_for
from tests.browser.toasts import Toasts

pytestmark = pytest.mark.browser

LOAD = "%load_ext jupyter_autotrain"
CELL = """%%autotrain {name}
objective: maximize val_acc
search:
  lr: loguniform(0.001, 0.1)
  width: choice(16, 32, 64)
trials: {trials}
concurrency: 2
---
import math, pathlib, time
print("training with", lr, width)
step = 0
while step < 3 or not pathlib.Path("{enough}").exists():
    time.sleep(0.5)  # each report is drawn
    report(step=step, val_acc=math.log1p(step) * width / 100, loss=math.exp(-step * lr))
    step += 1
"""


@pytest.fixture
def enough(tmp_path):
    """Return a file whose presence ends the trials."""
    return tmp_path / "enough"


def test_a_cell_trains_in_the_background_and_survives_reload_and_restart(lab, enough):
    lab.open(LOAD, CELL.format(name="moving", trials=3, enough=enough))
    lab.run_all()
    expect(lab.view.locator("canvas").first).to_be_visible()
    # The kernel is free while the trials run.
    lab.until_idle()
    expect(lab.status).to_contain_text(re.compile(r"Running.*val_acc .* → "))
    before = lab.status.inner_text()
    expect(lab.status).not_to_have_text(before)
    lab.screenshot("cell-running")

    lab.saved("widget-view+json")
    lab.reload()
    expect(lab.view.locator("canvas").first).to_be_visible()
    expect(lab.view.locator(".at-name")).to_have_text("moving")
    kept = lab.page.locator(".jp-Autotrain-run")
    shown = lab.page.locator(".autotrain").filter(visible=True)
    expect(kept).to_be_hidden()
    expect(shown).to_have_count(1)

    lab.restart_kernel()
    # Nothing feeds the view any more: the output goes on with what the server says.
    expect(kept.get_by_role("status").last).to_contain_text("trials ended")
    expect(shown).to_have_count(1)
    lab.add_and_run("%load_ext jupyter_autotrain\n%autotrain show moving")
    expect(lab.view.locator("canvas").first).to_be_visible()
    enough.touch()
    expect(lab.status).to_contain_text("Succeeded, 3 of 3 trials ended")
    expect(lab.view.locator(".at-trials tbody tr")).to_have_count(3)
    lab.view.get_by_text(re.compile(r"Log of trial \d · best · Succeeded")).click()
    expect(lab.view.get_by_role("log")).to_contain_text("training with")
    lab.screenshot("cell-done")
    assert lab.errors == []


def test_a_kernel_that_has_not_loaded_the_extension_is_offered_to_and_the_cell_runs_again(lab):
    lab.open("%%autotrain unloaded\n---\nreport(step=1, loss=0.5)\n")
    Toasts(lab.page).press("This kernel has not loaded the extension: %load_ext jupyter_autotrain", "Load and run")
    lab.run_all()
    expect(lab.status).to_contain_text("Succeeded, 1 of 1 trial ended")


def test_the_stop_button_works_while_the_kernel_is_busy(lab, enough):
    lab.agree_to_stop()
    lab.open(LOAD, CELL.format(name="endless", trials=2, enough=enough))
    lab.run_all()
    expect(lab.status).to_contain_text(re.compile(r"Running.*val_acc"))
    lab.until_idle()
    busy = enough.with_name("busy")
    lab.execute(f"import pathlib, time\npathlib.Path({str(busy)!r}).touch()\nwhile True:\n    time.sleep(1)")
    wait_for(busy.exists, 120, "the kernel does not run the loop that never ends")
    lab.view.get_by_role("button", name="Stop trial 1").click()
    expect(lab.view.locator(".at-receipt")).to_contain_text(
        re.compile(r"endless, trial 1: stopped in .* nothing is left")
    )
    expect(lab.view.locator("tr[data-trial='1']")).to_contain_text("Cancelled")
    expect(lab.view.locator("tr[data-trial='2']")).to_contain_text("Running")
    lab.view.get_by_role("button", name="Stop", exact=True).click()
    expect(lab.view.locator(".at-receipt")).to_contain_text(re.compile(r"endless: stopped in .* nothing is left"))
    expect(lab.view.get_by_text("Cancelled").first).to_be_visible()
    lab.screenshot("stopped")
    lab.shut_down()


@pytest.mark.long  # the first test loads the page anew, and test_run_output.py opens an output with no kernel
def test_a_notebook_opened_without_the_kernel_that_ran_it_shows_the_run_as_the_server_knows_it(lab, enough):
    enough.touch()
    lab.open(LOAD, CELL.format(name="kept", trials=1, enough=enough))
    lab.run_all()
    expect(lab.status).to_contain_text("Succeeded, 1 of 1 trial ended")
    run = lab.page.locator(".jp-Autotrain-run")
    expect(run).to_be_hidden()
    lab.reopen_without_kernel("SUCCEEDED")
    expect(run).to_be_visible()
    expect(run.get_by_role("status").last).to_contain_text("1 of 1 trial ended")
    expect(run.locator("canvas").first).to_be_visible()
    expect(lab.page.get_by_text("Error displaying widget")).to_have_count(0)
    lab.screenshot("no-kernel")


def test_a_cell_run_again_keeps_the_view_of_its_earlier_run_in_one_line_that_opens(lab, enough):
    lab.agree_to_stop()
    lab.open(LOAD, CELL.format(name="again", trials=1, enough=enough))
    lab.run_all()
    expect(lab.status).to_contain_text(re.compile(r"Running.*val_acc"))
    lab.run_all()
    views = lab.page.locator("article.autotrain")
    expect(views).to_have_count(2)
    new = views.nth(0)
    earlier = views.nth(1)
    expect(new.locator(".at-name")).to_have_text("again@2")
    expect(earlier.locator(".at-name")).to_have_text("again@1")
    expect(new.locator("canvas").first).to_be_visible()
    expect(earlier.locator("canvas").first).to_be_hidden()
    lab.screenshot("rerun-folded")
    earlier.get_by_role("button", name="Show").click()
    expect(earlier.locator("canvas").first).to_be_visible()
    lab.screenshot("rerun-open")
    for view in (earlier, new):
        view.get_by_role("button", name="Stop", exact=True).click()
        expect(view.locator(".at-receipt")).to_contain_text("nothing is left")
    assert lab.errors == []


def test_a_cell_becomes_an_experiment_from_its_menu_whether_or_not_the_extension_is_loaded(lab):
    lab.end_kernels()
    lab.open("report(step=1, val_acc=0.5)")
    code = lab.page.locator(".jp-CodeCell .cm-content").first
    code.click(button="right")
    lab.page.get_by_role("menuitem", name="Run as Experiment").click()
    expect(code.locator(".jp-Autotrain-header-magic")).to_have_text("%%autotrain")
    expect(code).to_contain_text("report(step=1, val_acc=0.5)")
    expect(lab.status).to_contain_text("Succeeded, 1 of 1 trial ended")
    lab.screenshot("run-as-experiment")
    assert lab.errors == []

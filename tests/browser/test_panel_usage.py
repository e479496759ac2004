"""Tests of what a trial uses of its node, and what it printed, in the panel of its experiment."""

from __future__ import annotations

import json
import math

import pytest
from playwright.sync_api import expect

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from tests.browser.lab_page import DARK, in_theme, picture
from tests.browser.panel_page import add, begin, open_panel, report

pytestmark = pytest.mark.browser


def write(server, trial, name, data):
    """Add to a file of a trial: id of the experiment, number, attempt."""
    path = Home(server.home).trial(*trial) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(data)


def samples(seconds, gpus=False):
    """Lines as a supervisor writes them."""
    lines = []
    for second in seconds:
        cpu = 150 + 40 * math.sin(second / 7)
        gpu = [80.0, 3e9] if gpus else [None, None]
        lines.append(json.dumps([float(second), cpu, 2_000_000 * second, *gpu]) + "\n")
    return "".join(lines).encode()


def begin_again(store, experiment_id, number):
    for state in (TrialState.CANCELLED, TrialState.WAITING, TrialState.PREPARING, TrialState.RUNNING):
        store.change_state(experiment_id, number, state, 1.0)


def test_cpu_memory_and_gpus_of_the_chosen_trial_are_curves_that_go_on(page, store, server):
    add(store, "u1", "used")
    for number in (1, 2):
        begin(store, "u1", number, lr=0.1 * number)
        report(store, "u1", number, [0.1 * number])
    write(server, ("u1", 2, 1), wire.USAGE, samples(range(120)))
    panel = open_panel(page, "u1")
    panel.get_by_role("tab", name="Usage").click()
    usage = panel.get_by_role("tabpanel", name="Usage")
    expect(usage.get_by_role("heading", name="Usage of trial 2 · Running")).to_be_visible()
    expect(usage.get_by_role("tab")).to_have_text(["CPU (%)", "Memory (MB)", "All"])
    expect(usage.locator("canvas")).to_have_count(2)
    write(server, ("u1", 2, 1), wire.USAGE, samples(range(120, 900), gpus=True))
    expect(usage.get_by_role("tab")).to_have_text(["CPU (%)", "Memory (GB)", "GPU (%)", "GPU memory (GB)", "All"])
    picture(page, "panel-usage")
    with in_theme(page, DARK):
        picture(page, "panel-usage-dark")
    usage.get_by_role("tab", name="Memory (GB)", exact=True).click()
    chart = usage.get_by_role("img", name="Curves of Memory (GB), 1 attempt")
    chart.focus()
    page.keyboard.press("ArrowLeft")
    expect(usage.locator(".at-tip-head")).to_have_text("14 min 59 s")
    expect(usage.locator(".at-tip").first).to_contain_text("attempt 11.798")
    usage.get_by_role("button", name="Table").click()
    rows = usage.get_by_role("region", name="Values of Memory (GB)").get_by_role("row")
    expect(rows.last).to_have_text("8991.798")
    expect(rows.first).to_have_text("secondsattempt 1")


def test_each_attempt_has_its_curve_and_another_trial_is_shown_when_it_is_chosen(page, store, server):
    add(store, "u2", "used again", trials=3)
    for number in (1, 2, 3):
        begin(store, "u2", number)
    begin_again(store, "u2", 1)
    write(server, ("u2", 1, 1), wire.USAGE, samples(range(30)))
    write(server, ("u2", 1, 2), wire.USAGE, samples(range(60)))
    store.change_state("u2", 3, TrialState.FAILED, 2.0)
    panel = open_panel(page, "u2")
    panel.locator("tr[data-trial='1']").click()
    panel.get_by_role("tab", name="Usage").click()
    usage = panel.get_by_role("tabpanel", name="Usage")
    expect(usage.get_by_role("img", name="Curves of CPU (%), 2 attempts")).to_be_visible()
    usage.get_by_role("spinbutton", name="Trial").fill("3")
    usage.get_by_role("spinbutton", name="Trial").press("Enter")
    expect(usage.get_by_text("No usage was measured for this trial.")).to_be_visible()
    expect(usage.locator("canvas")).to_have_count(0)
    usage.get_by_role("spinbutton", name="Trial").fill("2")
    usage.get_by_role("spinbutton", name="Trial").press("Enter")
    expect(usage.get_by_text("No measurements yet.")).to_be_visible()


def test_the_whole_log_of_any_attempt_is_searched_and_saved(page, store, server):
    add(store, "u3", "talkative")
    begin(store, "u3", 1)
    data = "".join(f"epoch {i}: loss {'nan' if i % 1000 == 7 else i}\n" for i in range(20_000)).encode()
    write(server, ("u3", 1, 1), "stdout", data)
    begin_again(store, "u3", 1)
    write(server, ("u3", 1, 2), "stdout", b"resumed\n")
    panel = open_panel(page, "u3")
    panel.get_by_text("Log of trial 1 · Running").click()
    log = panel.get_by_role("log")
    expect(log).to_have_text("resumed\n")
    panel.get_by_label("Attempt whose log is shown").select_option("attempt 1")
    expect(log).to_contain_text("epoch 19999: loss 19999")
    find = panel.get_by_role("searchbox", name="Find in the whole log")
    find.fill("LOSS NAN")
    expect(panel.get_by_text("1 of 20", exact=True)).to_be_visible()
    for _ in range(2):
        find.press("Shift+Enter")
        panel.get_by_text("19 of 20", exact=True).or_(panel.get_by_text("20 of 20", exact=True)).wait_for()
    expect(panel.get_by_text("19 of 20", exact=True)).to_be_visible()
    expect(log.locator("mark.at-current")).to_be_in_viewport()
    expect(log).to_contain_text("epoch 18007: loss nan")
    picture(page, "panel-log")
    with in_theme(page, DARK):
        picture(page, "panel-log-dark")
    with page.expect_download() as saved:
        panel.get_by_role("button", name="Download").click()
    assert saved.value.suggested_filename == "talkative-trial-1-stdout.txt"
    assert saved.value.path().read_bytes() == data
    find.press("Escape")
    expect(log).to_contain_text("epoch 19999: loss 19999")

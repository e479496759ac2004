"""Tests of how soon a panel is there and how it bears many trials; `benchmarks/panel_paint.py` has the limits."""

from __future__ import annotations

import math
import statistics
import sys

import pytest

from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.store import Ingest
from tests.browser.filled_home import FilledHome

pytestmark = [pytest.mark.browser, pytest.mark.long]  # the benchmark measures it too, and other tests open panels

SHOWN = ".jp-Autotrain-panel:not(.lm-mod-hidden)"
# From the command to the frame after the one that has the chart and a row of the table.
FIRST_PAINT = """async ([id, shown]) => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const begun = performance.now();
    const deadline = begun + 60_000;
    window.jupyterapp.commands.execute('autotrain:open-experiment', {id});
    const isThere = () => document.querySelector(`${shown} .at-chart canvas`)
        && document.querySelector(`${shown} .at-trials tbody tr`);
    while (!isThere() && performance.now() < deadline) await frame();
    await frame();
    return isThere() ? performance.now() - begun : Infinity;
}"""
# From a press on a column's head until the rows are in another order and painted.
SORT = """async ([shown, name]) => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const first = () => document.querySelectorAll(`${shown} .at-trials tbody tr`)[1]?.dataset.trial;
    const heads = [...document.querySelectorAll(`${shown} .at-sort`)];
    const button = heads.find((head) => head.textContent === name);
    const before = first();
    const begun = performance.now();
    button.click();
    while (first() === before && performance.now() < begun + 60_000) await frame();
    await frame();
    return performance.now() - begun;
}"""
# From a key at an end of the first axis' range until other trials pass and are painted.
BRUSH = """async (shown) => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const passing = () => document.querySelector(`${shown} .at-parallel [role=status]`).textContent;
    const handle = document.querySelector(`${shown} .at-parallel .at-axis-low`);
    const before = passing();
    const begun = performance.now();
    handle.dispatchEvent(new KeyboardEvent('keydown', { key: 'PageUp', bubbles: true }));
    while (passing() === before && performance.now() < begun + 60_000) await frame();
    await frame();
    return performance.now() - begun;
}"""


@pytest.fixture(scope="module")
def home(server):
    with FilledHome(server) as home:
        yield home


@pytest.fixture
def page(home, browser):
    with home.page(browser) as page:
        yield page


def tell(capsys, text):
    with capsys.disabled():
        sys.stdout.write(f"\n{text}\n")


def close_all(page):
    page.evaluate("() => window.jupyterapp.commands.execute('application:close-all')")
    page.locator(SHOWN).wait_for(state="detached")


def test_a_panel_is_painted_soon(home, page, capsys):
    home.fill.experiment("quick", "quick", trials=8)
    for number in range(1, 9):
        home.fill.begin("quick", number, lr=0.1 / number)
        home.fill.report("quick", number, [1 - math.exp(-step / (9 + number)) for step in range(500)])
    first_ms = page.evaluate(FIRST_PAINT, ["quick", SHOWN])
    times_ms = []
    for _ in range(5):
        close_all(page)
        times_ms.append(page.evaluate(FIRST_PAINT, ["quick", SHOWN]))
    again_ms = statistics.median(times_ms)
    tell(capsys, f"panel of 8 trials: first opening {first_ms:.0f} ms, again {again_ms:.0f} ms")
    assert first_ms < 60_000  # the benchmark holds it against its limit
    assert again_ms < 20_000


@pytest.mark.parametrize("trials", [400, 5000])
def test_many_trials_stay_usable(home, page, capsys, trials):
    name = f"wide{trials}"
    home.fill.experiment(name, name, trials=trials)
    many_trials(home.fill, name, trials)
    paint_ms = page.evaluate(FIRST_PAINT, [name, SHOWN])
    panel = page.locator(SHOWN)
    panel.locator(f".at-trials[aria-rowcount='{trials + 1}']").wait_for()
    assert panel.locator(".at-trials tbody tr").count() < 60
    sort_ms = max(page.evaluate(SORT, [SHOWN, column]) for column in ("lr", "width", "lr"))
    panel.get_by_role("tab", name="Parallel coordinates").click()
    panel.get_by_text(f"{trials} trials", exact=True).wait_for()
    brush_ms = max(page.evaluate(BRUSH, SHOWN) for _ in range(3))
    tell(
        capsys,
        f"panel of {trials} trials: first opening {paint_ms:.0f} ms, slowest sort {sort_ms:.0f} ms, "
        f"slowest brush {brush_ms:.0f} ms",
    )
    assert paint_ms < 60_000
    assert sort_ms < 20_000
    assert brush_ms < 20_000


def many_trials(fill, name, trials):
    """Trials that have ended, each with a curve of twenty points."""
    objective = Objective("val_acc")
    ingests = []
    for number in range(1, trials + 1):
        fill.begin(name, number, lr=number * 7919 % trials / trials, width=number)
        points = [("val_acc", step, 100.0 + step, math.sin(number) * step / 20) for step in range(20)]
        ingests.append(Ingest(name, number, 1, "metrics", 1, points=points, objective=objective))
    fill.store.ingest(ingests)

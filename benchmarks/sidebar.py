"""Measure JupyterLab's sidebar and the panel of an experiment, in a real browser over a real server.

    python benchmarks/sidebar.py [--points 1000000]

Limits: 150 ms (median) from a row in the store to the sidebar's pixel; 100 ms for a series of 10^6 points as at most
2,000; 100 ms for a page of the list by the best value; 0.5 % of CPU of the server while one tab follows and nothing
happens; 1 s to the first paint of a panel; with 200 experiments of 50 trials, 60 frames per second while the list
scrolls and 100 ms until it is filtered.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.server_api import fill_list, fill_series, tell
from jupyter_autotrain.core.home import Home
from tests.browser.jupyter_lab import FLAGS, Server, chromium, running_lab
from tests.server.jupyter import Filler

PIXEL_LIMIT_S, SERIES_LIMIT_S, LIST_LIMIT_S, IDLE_LIMIT = 0.15, 0.1, 0.1, 0.005
PANEL_LIMIT_S, FILTER_LIMIT_S, FRAME_LIMIT_S = 1.0, 0.1, 1 / 60
INSERTS, PANELS, FILTERS, IDLE_S = 20, 5, 10, 30
SIDEBAR = "#jp-autotrain-experiments"
WATCH = """(text) => new Promise((seen, failed) => {
    const deadline = performance.now() + 60_000;
    const look = () => {
        const found = document.querySelector('SIDEBAR').textContent.includes(text);
        if (found) requestAnimationFrame(() => seen(Date.now() / 1000));
        else if (performance.now() > deadline) failed(new Error(`the sidebar does not show ${text}`));
        else requestAnimationFrame(look);
    };
    look();
})""".replace("SIDEBAR", SIDEBAR)  # the time of the frame that shows a text, in seconds since the epoch
PANEL = """([id, text]) => new Promise((painted, failed) => {
    const began = performance.now();
    const look = () => {
        const panel = document.querySelector('.jp-Autotrain-panel:not(.lm-mod-hidden)');
        const shown = panel?.querySelector('canvas') && panel.textContent.includes(text);
        if (shown) requestAnimationFrame(() => painted((performance.now() - began) / 1000));
        else if (performance.now() > began + 60_000) failed(new Error(`no panel shows ${text}`));
        else requestAnimationFrame(look);
    };
    window.jupyterapp.commands.execute('autotrain:open-experiment', { id });
    look();
})"""
FILTER = """([text, gone]) => new Promise((done, failed) => {
    const input = document.querySelector('SIDEBAR input[type=search]');
    const began = performance.now();
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(input, text);
    input.dispatchEvent(new Event('input', { bubbles: true }));
    const look = () => {
        const shown = document.querySelector('SIDEBAR').textContent;
        if (!shown.includes(gone)) requestAnimationFrame(() => done((performance.now() - began) / 1000));
        else if (performance.now() > began + 60_000) failed(new Error(`${gone} stays in the list`));
        else requestAnimationFrame(look);
    };
    look();
})""".replace("SIDEBAR", SIDEBAR)
# The seconds between two frames while the list scrolls from its begin to its end and back.
SCROLL = """() => new Promise((done) => {
    const inside = [document.querySelector('SIDEBAR'), ...document.querySelectorAll('SIDEBAR *')];
    const list = inside.find((each) => each.scrollHeight > each.clientHeight + 50
        && ['auto', 'scroll'].includes(getComputedStyle(each).overflowY));
    const frames = [];
    let last;
    const step = (now) => {
        if (last !== undefined) frames.push((now - last) / 1000);
        last = now;
        list.scrollTop = (list.scrollHeight - list.clientHeight) * Math.abs(Math.sin(frames.length / 60));
        if (frames.length < 240) requestAnimationFrame(step);
        else done(frames);
    };
    requestAnimationFrame(step);
})""".replace("SIDEBAR", SIDEBAR)


def open_page(page: Page, server: Server) -> None:
    """Open a page of JupyterLab that shows the sidebar."""
    page.set_default_timeout(120_000)
    page.goto(f"{server.url}/lab?token={server.token}&reset")
    page.wait_for_selector(".jp-LauncherCard", timeout=120_000)
    page.evaluate("() => { window.jupyterapp.commands.execute('autotrain:show-experiments') }")
    page.wait_for_selector(f"{SIDEBAR} input[type=search]", timeout=60_000)


def show_all(page: Page) -> None:
    """Let the list have as many as it can; it begins with 50."""
    for many in (100, 150, 200):
        page.locator(SIDEBAR).get_by_role("button", name="More").click()
        shown = f"document.querySelectorAll('{SIDEBAR} [aria-level=\"2\"]').length >= {many}"
        page.wait_for_function(shown, timeout=60_000)


def insert_s(page: Page, filler: Filler) -> float:
    """Return the median time from a row in the store to the frame of the sidebar that shows it."""
    times = []
    for number in range(INSERTS):
        seen = page.evaluate_handle(f"() => {{ window.seen = ({WATCH})('insert-{number}.') }}")
        time.sleep(0.25)
        began_s = time.time()
        filler.experiment(f"i{number}", name=f"insert-{number}.")
        shown_s: float = page.evaluate("() => window.seen")
        times.append(shown_s - began_s)
        seen.dispose()
    return statistics.median(times)


def median_of(many: int, measure: Callable[[int], float]) -> float:
    """Return the median of so many measurements."""
    return statistics.median(measure(index) for index in range(many))


def panel_s(page: Page, index: int) -> float:
    """Return the time from the command to the frame that shows charts and name of an experiment."""
    taken: float = page.evaluate(PANEL, [f"e{index}", f"sweep-{index}"])
    page.evaluate("() => { window.jupyterapp.commands.execute('application:close-all') }")
    return taken


def filter_s(page: Page, index: int) -> float:
    """Return the time from a key in the filter to the frame that shows what fits."""
    page.locator(f"{SIDEBAR} input[type=search]").fill("")
    page.locator(SIDEBAR).get_by_text("insert-1.").first.wait_for(timeout=30_000)
    taken: float = page.evaluate(FILTER, [f"sweep-1{index}", "insert-1."])
    return taken


def cpu_share(server: Server) -> float:
    """Return the share of a core that the server uses while nothing happens."""
    process = psutil.Process(server.pid)
    before = process.cpu_times()
    time.sleep(IDLE_S)
    after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / IDLE_S


def series_s(page: Page, server: Server) -> float:
    """Return the median time of a request for the long series, as the page makes it; it is read, too."""
    address = f"{server.url}/jupyter-autotrain/api/experiments/long/series?metric=val_acc&token={server.token}"
    ask = """async (address) => {
        const began = performance.now();
        const { curves } = await (await fetch(address)).json();
        if (curves[0].steps.length > 2000) throw new Error('too many points');
        return (performance.now() - began) / 1000;
    }"""
    return median_of(15, lambda _: page.evaluate(ask, address))


def sorted_s(page: Page, server: Server) -> float:
    """Return the median time of a request for a page of the list by the best value, as the sidebar makes it."""
    address = f"{server.url}/jupyter-autotrain/api/experiments?sort=best&limit=50&token={server.token}"
    ask = """async (address) => {
        const began = performance.now();
        const { experiments } = await (await fetch(address)).json();
        if (experiments.length !== 50) throw new Error(`${experiments.length} experiments`);
        return (performance.now() - began) / 1000;
    }"""
    return median_of(15, lambda _: page.evaluate(ask, address))


def measure(page: Page, server: Server, filler: Filler, points: int) -> None:
    """Measure and print, one figure a line."""
    tell("row in the store to the sidebar's pixel, median", insert_s(page, filler), PIXEL_LIMIT_S, "ms", 1000)
    tell(f"series of {points:,} points in the page", series_s(page, server), SERIES_LIMIT_S, "ms", 1000)
    tell("the list of 220 by the best value in the page", sorted_s(page, server), LIST_LIMIT_S, "ms", 1000)
    panel = median_of(PANELS, lambda index: panel_s(page, index))
    tell("command to the first paint of a panel, 50 trials", panel, PANEL_LIMIT_S, "ms", 1000)
    show_all(page)
    filtered = median_of(FILTERS, lambda index: filter_s(page, index))
    tell("key to the filtered list, of 200 in the page", filtered, FILTER_LIMIT_S, "ms", 1000)
    page.locator(f"{SIDEBAR} input[type=search]").fill("")
    page.locator(SIDEBAR).get_by_text("insert-1.").first.wait_for(timeout=30_000)
    frames = page.evaluate(SCROLL)
    tell("a frame while the list of 200 scrolls, median", statistics.median(frames), FRAME_LIMIT_S, "ms", 1000)
    slow = sum(frame > 1.5 * FRAME_LIMIT_S for frame in frames)
    print(f"frames that came late: {slow} of {len(frames)}, the longest took {max(frames) * 1000:.0f} ms")
    time.sleep(5)
    tell("CPU of the server with one idle tab", cpu_share(server), IDLE_LIMIT, "%", 100)


def main() -> None:
    """Fill a home, open a page, measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1_000_000)
    points = parser.parse_args().points
    path = chromium()
    if path is None:
        raise SystemExit("no Chromium here: set CHROMIUM to its path, or install the package chromium")
    with tempfile.TemporaryDirectory(prefix="sidebar-") as folder, running_lab(Path(folder)) as server:
        filler = Filler(SimpleNamespace(home=Home(server.home), root=server.notebooks))
        fill_series(filler, points)
        fill_list(filler)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            open_page(page, server)
            measure(page, server, filler, points)
            browser.close()
        filler.store.close()


if __name__ == "__main__":
    main()

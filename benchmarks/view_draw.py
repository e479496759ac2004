"""Measure an update of the live view in Chromium: 8 series of 100,000 points each, 100 new points per series."""

from __future__ import annotations

import os
import shutil
import statistics
from pathlib import Path

from playwright.sync_api import sync_playwright

LIMIT_MS = 20.0
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
STATIC = Path(__file__).parents[1] / "jupyter_autotrain" / "static"

# The bundle runs as in a notebook, with a stand-in for the kernel's side of the model.
SCENE = """
async ([code, trials, points, rows, updates]) => {
    const address = URL.createObjectURL(new Blob([code], {type: 'text/javascript'}));
    const widget = (await import(address)).default();
    const experiment = {id: 'e', name: 'draw', state: 'RUNNING', final: false, reason: '', backend: 'local',
        objective: 'loss', direction: 'minimize', trials, begun_s: 0, ended_s: null, now_s: 9, eta_s: null};
    let seq = 0;
    const frame = (first, count) => {
        const [steps, values, series] = [new Float64Array(trials * count), new Float64Array(trials * count), []];
        for (let t = 0; t < trials; t++) {
            series.push(['loss', t + 1, 1, first, count]);
            for (let i = 0; i < count; i++) {
                steps[t * count + i] = first + i;
                values[t * count + i] = Math.exp(-(first + i) / 4e4) + t / 20 + Math.random() / 5;
            }
        }
        const told = [...Array(trials)].map((_, t) => ({number: t + 1, state: 'RUNNING', params: {lr: t},
            value: 1 - t / 9, attempt: 1, started_s: 1, ended_s: null, reason: ''}));
        return [{kind: 'frame', seq: ++seq, experiment, trials: told, series}, steps, values];
    };
    const [head, steps, values] = frame(0, points);
    const snapshot = {...head, steps: new DataView(steps.buffer), values: new DataView(values.buffer)};
    let receive;
    const model = {get: () => snapshot, send() {}, on(_, handler) { receive = handler; }, off() {}};
    widget.initialize({model});
    const queue = [];
    window.requestAnimationFrame = (callback) => queue.push(callback);
    widget.render({model, el: document.body});
    const pass = () => new Promise((done) => setTimeout(done, 5));
    await pass();
    const took = [];
    for (let update = 0; update < updates; update++) {
        const [next, s, v] = frame(points + update * rows, rows);
        const buffers = [new DataView(s.buffer), new DataView(v.buffer)];
        for (const callback of queue.splice(0)) callback(performance.now());
        await pass();
        const begun = performance.now();
        receive(next, buffers);
        const received = performance.now();
        while (!queue.length) await pass();  // the view rests in between, the longer the more it draws
        const drawn = performance.now();
        for (const callback of queue.splice(0)) callback(drawn);
        // uPlot paints in a microtask.
        await Promise.resolve();
        await Promise.resolve();
        took.push(received - begun + performance.now() - drawn);
        await pass();
    }
    return took;
}
"""


def measure(trials: int, points: int, rows: int = 100, updates: int = 30) -> list[float]:
    """Milliseconds of the page per update, from a message's arrival until all drawing is handed to the rasteriser."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
    code, style = (STATIC / "live.js").read_text(), (STATIC / "live.css").read_text()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 800, "height": 900})
        page.set_content(f"<style>{style}</style>")
        took: list[float] = page.evaluate(SCENE, [code, trials, points, rows, updates])
        browser.close()
    return took


def main() -> None:
    """Measure short curves, long curves, and many of them; only eight have a limit."""
    for trials, points in ((8, 1_000), (8, 10_000), (8, 100_000), (200, 4_000)):
        took = measure(trials, points)
        median, high = statistics.median(took), sorted(took)[int(len(took) * 0.95)]
        limit = f"limit {LIMIT_MS:g} ms; ratio {LIMIT_MS / median:.1f}" if trials == 8 else "drawn less often"
        print(f"view update, {trials} series x {points:,} points: median {median:.1f} ms, p95 {high:.1f} ms; {limit}")


if __name__ == "__main__":
    main()

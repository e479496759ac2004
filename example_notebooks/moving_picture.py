"""Make the README's moving picture: a cell, its live view, the sidebar, the best model back; light and dark.

    python example_notebooks/moving_picture.py [--folder docs/pictures]

The cell really trains, in a JupyterLab and a home of their own. What takes time is shown three times as fast.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.browser.jupyter_lab import FLAGS, Server, chromium, running_lab  # noqa: E402
from tests.browser.lab_page import DARK, LIGHT, new_page, open_empty  # noqa: E402

SIZE = {"width": 1100, "height": 640}
FASTER = 3
LONGEST_S = 120
HEADER = [
    "%%autotrain digits -j 2",
    "objective: maximize val_acc",
    "search: {lr: 'loguniform(1e-5, 1e-1)', width: 'choice(16, 64, 256)'}",
    "trials: 8",
    "seed: 1",
    "returns: [model]",
    "---",
]
TRAINING = """\
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

X, y = load_digits(return_X_y=True)
model = MLPClassifier(width, learning_rate_init=lr, random_state=0)
for epoch in range(60):
    model.partial_fit(X[:1400], y[:1400], classes=range(10))
    report(step=epoch, val_acc=model.score(X[1400:], y[1400:]))
"""
BACK = "%autotrain load digits model\nmodel"
CELLS = ["%load_ext jupyter_autotrain", TRAINING, BACK]
_OPEN = """async () => {
    const { commands, shell } = window.jupyterapp;
    await commands.execute('docmanager:open', { path: 'digits.ipynb' });
    shell.collapseLeft();
    for (const widget of [...shell.widgets('main')]) if (widget.content?.hasClass('jp-Launcher')) widget.close();
}"""
_IS_IDLE = """() => window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"""
_RUN = """(index) => {
    window.jupyterapp.shell.currentWidget.content.activeCellIndex = index;
    window.jupyterapp.commands.execute('notebook:run-cell');
}"""
_WRITE = """([index, source]) => {
    window.jupyterapp.shell.currentWidget.content.widgets[index].model.sharedModel.setSource(source);
}"""
_SCROLL_TO = """(index) => { window.jupyterapp.shell.currentWidget.content.scrollToItem(index, 'start'); }"""
_HAS_ENDED = """() => /Succeeded|8 of 8|8\\/8/.test(document.querySelector('.at-status')?.innerText ?? '')"""


@dataclass
class Film:
    """Frames of a page, each with the time that it is shown; a frame like the one before lengthens that one."""

    page: Page
    frames: list[Image.Image] = field(default_factory=list)
    times_ms: list[int] = field(default_factory=list)

    def shoot(self, time_ms: int) -> None:
        """Take a frame that is shown so long."""
        frame = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        if self.frames and frame.tobytes() == self.frames[-1].tobytes():
            self.times_ms[-1] += time_ms
            return
        self.frames.append(frame)
        self.times_ms.append(time_ms)

    def follow(self, seconds: float, until: str = "false") -> None:
        """Take frames for so long, or until an expression of the page holds; they are shown faster."""
        begin_s = time.monotonic()
        while time.monotonic() - begin_s < seconds and not self.page.evaluate(until):
            before_s = time.monotonic()
            self.page.wait_for_timeout(600)
            self.shoot(round((time.monotonic() - before_s) * 1000 / FASTER))

    def save(self, path: Path) -> None:
        """Write the frames as an animated WebP that begins anew without end."""
        first, *others = self.frames
        first.save(
            path, save_all=True, append_images=others, duration=self.times_ms, loop=0, quality=60, method=6, kmin=9
        )


def open_notebook(page: Page, server: Server, theme: str) -> None:
    """Open a notebook with the cells, without the browser of files; the extension is loaded."""
    cells = [
        {"cell_type": "code", "metadata": {}, "source": text, "outputs": [], "execution_count": None} for text in CELLS
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    body = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 4}
    (server.notebooks / "digits.ipynb").write_text(json.dumps(body), encoding="utf-8")
    open_empty(page, server)
    page.evaluate("(theme) => { window.jupyterapp.commands.execute('apputils:change-theme', {theme}); }", theme)
    page.wait_for_selector(f"body[data-jp-theme-name='{theme}']", state="attached")
    page.evaluate(_OPEN)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell .cm-content")
    page.wait_for_function(_IS_IDLE)
    page.evaluate(_RUN, 0)
    page.wait_for_function(_IS_IDLE)
    page.mouse.move(5, 5)


def play(film: Film) -> None:
    """Write the header, run the cell, watch, open the sidebar, bring the best model back."""
    page = film.page
    film.shoot(1200)
    for count in range(1, len(HEADER) + 1):
        page.evaluate(_WRITE, [1, "\n".join([*HEADER[:count], TRAINING])])
        page.wait_for_timeout(300)
        film.shoot(450)
    film.shoot(900)
    page.evaluate(_RUN, 1)
    page.locator(".at-status").first.wait_for()
    page.locator(".autotrain canvas").first.scroll_into_view_if_needed()
    film.follow(6)
    page.evaluate("() => { window.jupyterapp.commands.execute('autotrain:show-experiments') }")
    film.follow(LONGEST_S, _HAS_ENDED)
    film.follow(3)
    film.shoot(1500)
    page.evaluate(_SCROLL_TO, 2)
    page.evaluate(_RUN, 2)
    page.locator(".jp-CodeCell").nth(2).locator(".jp-OutputArea-output").first.wait_for()
    page.wait_for_timeout(800)
    film.shoot(3500)


def main() -> None:
    """Make one film per theme, each in a JupyterLab of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=HERE.parent / "docs" / "pictures")
    folder = parser.parse_args().folder
    path = chromium()
    if path is None:
        raise SystemExit("no Chromium here: set CHROMIUM to its path, or install the package chromium")
    os.environ["OMP_NUM_THREADS"] = "1"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        for name, theme in {"light": LIGHT, "dark": DARK}.items():
            with tempfile.TemporaryDirectory(prefix="film-") as root, running_lab(Path(root)) as server:
                with new_page(browser, **SIZE) as page:
                    open_notebook(page, server, theme)
                    film = Film(page)
                    play(film)
                target = folder / f"cell_{name}.webp"
                film.save(target)
                print(f"made: {target}, {len(film.frames)} frames, {target.stat().st_size // 1000} kB")
        browser.close()


if __name__ == "__main__":
    main()

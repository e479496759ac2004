"""Make the site's pictures: JupyterLab with sidebar and panel, over experiments that really run, light and dark.

    python example_notebooks/pictures.py [--folder docs/pictures]

A JupyterLab of its own over folders of its own trains four small experiments; it needs Chromium (or the variable
CHROMIUM) and what `pip install -e '.[test]'` brings.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import jupyter_autotrain as at  # noqa: E402 - the folder above has the tests, whose server is used here
from jupyter_autotrain.core.home import Home  # noqa: E402
from tests.browser.jupyter_lab import FLAGS, Server, chromium, running_lab  # noqa: E402

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
LONGEST_S = 600
SIZE = {"width": 1440, "height": 900}
DIGITS = """
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

X, y = load_digits(return_X_y=True)
X = X / 16
model = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=lr, penalty=penalty, random_state=0)
for epoch in range(40):
    model.partial_fit(X[:1400], y[:1400], classes=range(10))
    report(step=epoch, train_acc=model.score(X[:1400], y[:1400]), val_acc=model.score(X[1400:], y[1400:]))
print("done:", model.score(X[1400:], y[1400:]))
"""
WINE = """
import time
from sklearn.datasets import load_wine
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
model = SGDClassifier(loss="log_loss", eta0=lr, learning_rate="constant", random_state=0)
for epoch in range(400):
    model.partial_fit(X[::2], y[::2], classes=range(3))
    report(step=epoch, val_acc=model.score(X[1::2], y[1::2]))
    time.sleep(0.5)
"""
TOO_LARGE = """
import numpy as np
report(step=0, loss=2.3)
np.zeros((10**9, 10**6))
"""


def train(home: Home) -> at.Experiment:
    """Two experiments that end well, one that fails, one that runs; gives the largest of those that have ended."""
    search = {"lr": "loguniform(1e-5, 1e-1)", "penalty": "choice(l1, l2)"}
    first = at.submit(
        DIGITS.replace("eta0=lr, penalty=penalty", "eta0=0.01"), home=home, name="digits", objective="maximize val_acc"
    )
    failed = at.submit(TOO_LARGE, home=home, name="digits-wide", objective="minimize loss")
    sweep = at.submit(
        DIGITS,
        home=home,
        name="digits-search",
        objective="maximize val_acc",
        search=search,
        trials=12,
        concurrency=2,
        seed=7,
    )
    for experiment in (first, failed, sweep):
        if not experiment.wait(LONGEST_S):
            raise SystemExit(f"{experiment.name} has not ended within {LONGEST_S} s")
    at.submit(
        WINE,
        home=home,
        name="wine-lr",
        objective="maximize val_acc",
        search={"lr": "loguniform(1e-5, 1e-3)"},
        trials=6,
        concurrency=2,
        seed=1,
    )
    time.sleep(12)  # some of its curve shall be seen
    return sweep


def take(page: Page, server: Server, experiment_id: str, folder: Path) -> None:
    """One picture per theme, of sidebar and panel together."""
    page.set_default_timeout(120_000)
    page.goto(f"{server.url}/lab?token={server.token}&reset")
    page.wait_for_selector(".jp-LauncherCard", timeout=120_000)
    page.evaluate("() => { window.jupyterapp.commands.execute('autotrain:show-experiments') }")
    page.locator("#jp-autotrain-experiments").get_by_text("digits-search").first.wait_for(timeout=60_000)
    page.evaluate("(id) => { window.jupyterapp.commands.execute('autotrain:open-experiment', {id}) }", experiment_id)
    page.locator(".jp-Autotrain-panel canvas:visible").first.wait_for(timeout=60_000)
    for name, theme in THEMES.items():
        page.evaluate("(theme) => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
        page.wait_for_selector(f"body[data-jp-theme-name='{theme}']", state="attached")
        page.mouse.move(5, 5)
        page.wait_for_timeout(1500)  # what moves with the theme comes to rest
        page.screenshot(path=folder / f"lab_{name}.png")


def main() -> None:
    """Train, open a page, take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=HERE.parent / "docs" / "pictures")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    path = chromium()
    if path is None:
        raise SystemExit("no Chromium here: set CHROMIUM to its path, or install the package chromium")
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory(prefix="pictures-") as root, running_lab(Path(root)) as server:
        sweep = train(Home(server.home))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
            take(browser.new_page(viewport=SIZE), server, sweep.id, folder)
            browser.close()
        for experiment in at.experiments(home=Home(server.home)):
            if not experiment.state.is_final:
                experiment.stop()
    print(f"made: {', '.join(sorted(str(path) for path in folder.glob('lab_*.png')))}")


if __name__ == "__main__":
    main()

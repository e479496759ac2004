"""A real JupyterLab in a real Chromium: one server, one browser per file of tests, one page and notebook per test."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.jupyter_lab import FLAGS, Server, chromium, end_manager, running_lab

__all__ = ["ARTIFACTS", "Lab", "Server", "end_manager"]

_NOT_OURS = "Canceled future for "  # JupyterLab's own questions that a restarted kernel leaves without an answer
_KERNEL = "window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel"
ARTIFACTS = Path(__file__).parents[2] / "artifacts" / "screenshots"


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Iterator[Server]:
    with running_lab(tmp_path_factory.mktemp("jupyter")) as server:
        yield server


@pytest.fixture(scope="module")  # ended with its tests: while it lives, this process has a running event loop
def browser() -> Iterator[Any]:
    path = chromium()
    if path is None:
        pytest.skip("no Chromium here: set CHROMIUM to its path, or install the package chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def lab(browser, server, request) -> Iterator[Lab]:
    name = request.node.name.removeprefix("test_")[:60]
    context = browser.new_context(viewport={"width": 1180, "height": 1000}, device_scale_factor=1)
    context.set_default_navigation_timeout(120_000)  # on a loaded machine a page takes a minute
    opened = Lab(server, context.new_page(), name)
    yield opened
    opened.shut_down()
    context.close()


class Lab:
    """A JupyterLab page with one notebook."""

    def __init__(self, server: Server, page: Any, name: str) -> None:
        self.server = server
        self.page = page
        self.name = name
        self.errors: list[str] = []
        page.on("pageerror", self._keep_error)

    @property
    def view(self) -> Any:
        """The live view that the page shows last."""
        return self.page.locator(".autotrain").last

    @property
    def status(self) -> Any:
        """The line that tells what happens."""
        return self.view.get_by_role("status")

    def open(self, *cells: str) -> None:
        """Write a notebook with these cells and open it; returns when its kernel is idle."""
        body = [
            {"cell_type": "code", "metadata": {}, "source": c, "outputs": [], "execution_count": None} for c in cells
        ]
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
        notebook = {"cells": body, "metadata": kernel, "nbformat": 4, "nbformat_minor": 4}
        (self.server.notebooks / f"{self.name}.ipynb").write_text(json.dumps(notebook))
        self.visit(self.page)

    def visit(self, page: Any) -> None:
        """Open the notebook, and nothing that was open before, in a page."""
        page.goto(f"{self.server.url}/lab/tree/{self.name}.ipynb?token={self.server.token}&reset")
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
        self.until_idle(page)

    def reload(self) -> None:
        """Reload the page, as a user does."""
        self.page.reload()
        self.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)

    def until_idle(self, page: Any = None) -> None:
        """Wait until the kernel is connected and idle."""
        (page or self.page).wait_for_function(f"() => {_KERNEL}?.status === 'idle'", timeout=90_000)

    def command(self, name: str, args: dict[str, Any] | None = None) -> None:
        """Run a command of JupyterLab without waiting for its end."""
        self.page.evaluate("([name, args]) => { window.jupyterapp.commands.execute(name, args) }", [name, args or {}])

    def run_all(self) -> None:
        """Run all cells; returns at once."""
        self.command("notebook:run-all-cells")

    def execute(self, code: str) -> None:
        """Run code in the notebook's kernel, beside the cells; returns at once."""
        self.page.evaluate(f"(code) => {{ {_KERNEL}.requestExecute({{code}}) }}", code)

    def until_busy(self) -> None:
        """Wait until the kernel runs something."""
        self.page.wait_for_function(f"() => {_KERNEL}?.status === 'busy'")

    def restart_kernel(self) -> None:
        """Restart the kernel without the question that JupyterLab asks."""
        self.page.evaluate(f"() => {_KERNEL}.restart()")
        self.until_idle()

    def reopen_without_kernel(self, marker: str) -> None:
        """Save, and open the notebook again as if its kernel were long gone."""
        self.saved(marker)
        self.restart_kernel()
        self.reload()

    def add_and_run(self, source: str) -> None:
        """Add a cell at the end and run it."""
        self.page.evaluate(
            """(source) => {
                const {commands, shell} = window.jupyterapp;
                const {content, model} = shell.currentWidget;
                content.activeCellIndex = content.widgets.length - 1;
                return commands.execute('notebook:insert-cell-below').then(() => {
                    content.activeCell.model.sharedModel.setSource(source);
                    commands.execute('notebook:run-cell');
                });
            }""",
            source,
        )

    def saved(self, marker: str, timeout_s: float = 30.0) -> str:
        """Save the notebook until its file holds `marker`; gives the file's text."""
        path = self.server.notebooks / f"{self.name}.ipynb"
        deadline_s = time.monotonic() + timeout_s
        while marker not in path.read_text():
            assert time.monotonic() < deadline_s, f"{marker!r} does not get into the notebook's file"
            self.command("docmanager:save")
            self.page.wait_for_timeout(300)
        return path.read_text()

    def screenshot(self, name: str, page: Any = None) -> None:
        """Keep a picture of the page, and one of the view alone."""
        ARTIFACTS.mkdir(parents=True, exist_ok=True)
        (page or self.page).screenshot(path=ARTIFACTS / f"{name}.png")
        view = (page or self.page).locator(".autotrain").last
        if view.count():
            view.screenshot(path=ARTIFACTS / f"{name}-view.png")

    def _keep_error(self, error: Any) -> None:
        if _NOT_OURS not in str(error):
            self.errors.append(str(error))

    def shut_down(self) -> None:
        """End the notebook's kernel."""
        self.page.evaluate("() => window.jupyterapp?.shell?.currentWidget?.sessionContext?.shutdown()")

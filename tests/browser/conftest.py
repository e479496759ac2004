"""A real JupyterLab in a real Chromium: one server, one browser per file of tests, one page and notebook per test."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect, sync_playwright

from jupyter_autotrain.store import Store
from tests.browser.console import Console
from tests.browser.jupyter_lab import FLAGS, Server, chromium, running_lab
from tests.browser.lab_page import ARTIFACTS, WAIT_MS, empty_page, picture, run_command
from tests.browser.notebook_page import Notebook, opened_notebook
from tests.browser.sidebar_page import empty_store, shown_sidebar

_NOT_OURS = "Canceled future for "  # JupyterLab's own questions that a restarted kernel leaves without an answer
_KERNEL = "window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel"


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Iterator[Server]:
    with running_lab(tmp_path_factory.mktemp("jupyter")) as server:
        yield server


@pytest.fixture(scope="session")
def console() -> Console:
    """What pages have written on their consoles."""
    return Console()


@pytest.fixture(autouse=True)
def _nothing_on_the_console(console) -> Iterator[None]:
    yield
    assert console.taken() == []


@pytest.fixture(scope="module")  # ended with its tests: while it lives, this process has a running event loop
def browser(console) -> Iterator[Any]:
    path = chromium()
    if path is None:
        pytest.skip("no Chromium here: set CHROMIUM to its path, or install the package chromium")
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=FLAGS)
        console.watch(opened)
        yield opened
        opened.close()


@pytest.fixture(autouse=True)
def _no_preferences(request) -> None:
    """Nothing that an earlier test has set in JupyterLab counts; `sidebar` does the same for its page."""
    if "server" in request.fixturenames and "sidebar" not in request.fixturenames:
        request.getfixturevalue("server").forget_preferences()


@pytest.fixture
def lab(browser, server, request) -> Iterator[Lab]:
    name = request.node.name.removeprefix("test_")[:60]
    context = browser.new_context(viewport={"width": 1180, "height": 1000}, device_scale_factor=1)
    context.set_default_timeout(WAIT_MS)
    opened = Lab(server, context.new_page(), name)
    yield opened
    opened.shut_down()
    context.close()


@pytest.fixture
def store(server) -> Iterator[Store]:
    """The store of the home, empty before and after; no manager runs."""
    with empty_store(server) as opened:
        yield opened


@pytest.fixture(scope="module")  # to load a page takes longer than to use it
def sidebar_page(browser, server) -> Iterator[Any]:
    with empty_page(browser, server, height=900) as page:
        yield page


@pytest.fixture
def sidebar(sidebar_page, store, server) -> Iterator[Any]:
    """The sidebar over an empty home, in a page that the tests of a file share."""
    with shown_sidebar(sidebar_page, server) as region:
        yield region


@pytest.fixture
def notebook(browser, server, store, request) -> Iterator[Notebook]:
    """A page for a notebook with no kernel."""
    with opened_notebook(browser, server, request.node.name.removeprefix("test_")[:40]) as opened:
        yield opened


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
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        self.until_idle(page)

    def reload(self) -> None:
        """Reload the page, as a user does."""
        self.page.reload()
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")

    def until_idle(self, page: Any = None) -> None:
        """Wait until the kernel is connected and idle."""
        (page or self.page).wait_for_function(f"() => {_KERNEL}?.status === 'idle'")

    def command(self, name: str, args: dict[str, Any] | None = None) -> None:
        """Run a command of JupyterLab without waiting for its end."""
        run_command(self.page, name, **(args or {}))

    def run_all(self) -> None:
        """Run all cells; returns at once."""
        self.command("notebook:run-all-cells")

    def execute(self, code: str) -> None:
        """Run code in the notebook's kernel, beside the cells; returns at once."""
        self.page.evaluate(f"(code) => {{ {_KERNEL}.requestExecute({{code}}) }}", code)

    def until_run(self) -> None:
        """Wait until each cell has been run to its end."""
        self.page.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget.content.model.sharedModel.cells"
            ".every((cell) => cell.execution_count !== null)"
        )
        self.until_idle()

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

    def saved(self, marker: str) -> str:
        """Save the notebook until its file holds `marker`; gives the file's text, which nothing writes meanwhile."""
        path = self.server.notebooks / f"{self.name}.ipynb"
        deadline_s = time.monotonic() + WAIT_MS / 1000
        while True:
            self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
            if marker in (text := path.read_text()):
                return text
            assert time.monotonic() < deadline_s, f"{marker!r} does not get into the notebook's file"
            self.page.wait_for_timeout(300)

    def screenshot(self, name: str) -> None:
        """Keep a picture of the page, and one of the view alone."""
        picture(self.page, name)
        view = self.page.locator(".autotrain").last
        if view.count():
            view.screenshot(path=ARTIFACTS / f"{name}-view.png")

    def _keep_error(self, error: Any) -> None:
        if _NOT_OURS not in str(error):
            self.errors.append(str(error))

    def shut_down(self) -> None:
        """End the notebook's kernel."""
        self.page.evaluate("() => window.jupyterapp?.shell?.currentWidget?.sessionContext?.shutdown()")

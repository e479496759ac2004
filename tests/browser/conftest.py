"""A real JupyterLab in a real Chromium: one server, browser, page and kernel for all tests of a process."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import expect, sync_playwright

from jupyter_autotrain.parallel import api
from jupyter_autotrain.parallel.plan import Plan
from jupyter_autotrain.store import Store
from tests import example_graphs
from tests.browser.console import Console
from tests.browser.jupyter_lab import FLAGS, Server, chromium, running_lab
from tests.browser.lab_page import (
    ARE_KEPT,
    ARTIFACTS,
    WAIT_MS,
    cleared,
    close_all,
    new_page,
    no_errors,
    open_empty,
    picture,
)
from tests.browser.lab_page import run_command as run
from tests.browser.notebook_page import OURS, Notebook
from tests.browser.sidebar_page import empty_store, shown_sidebar

_NOT_OURS = "Canceled future for "  # JupyterLab's own questions that a restarted kernel leaves without an answer
# The kernel of an earlier test is taken, where one is left.
_SHOW = """async (path) => {
    const { commands, serviceManager } = window.jupyterapp;
    await serviceManager.kernels.refreshRunning();
    const [model] = serviceManager.kernels.running();
    await commands.execute('docmanager:open', { path, factory: 'Notebook', kernel: model && { id: model.id } });
}"""
# A kernel that is at work, or does not answer, is of no use to the next test.
_LEAVE = """async () => {
    const { kernels } = window.jupyterapp.serviceManager;
    const code = "import ipywidgets\\nipywidgets.Widget.close_all()\\n%reset -f";
    await kernels.refreshRunning();
    for (const model of [...kernels.running()]) {
        const kernel = kernels.connectTo({ model });
        const answered = kernel.requestExecute({ code }).done.then(() => true, () => false);
        const tooLate = new Promise((resolve) => setTimeout(() => resolve(false), 10_000));
        if (!(await Promise.race([answered, tooLate]))) await kernels.shutdown(model.id);
        kernel.dispose();
    }
}"""
_END_KERNELS = "() => window.jupyterapp?.serviceManager.kernels.shutdownAll()"
_HAS_FOCUS = "() => document.activeElement.closest('.jp-Notebook') !== null"
_KERNEL = "window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel"


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Iterator[Server]:
    with running_lab(tmp_path_factory.mktemp("jupyter")) as server:
        yield server


@pytest.fixture(scope="session")
def plan() -> Plan:
    """Return a plan of a small model; to make one takes seconds."""
    graph = example_graphs.gpt(width=512, layers=4, heads=8, sequence=256, batch=8, vocabulary=1000)
    return api.plan(graph, None, "8xA100-80GB", search="recursive_programming")


@pytest.fixture(scope="session")
def console() -> Console:
    """Return what pages have written on their consoles."""
    return Console()


@pytest.fixture(autouse=True)
def _nothing_on_the_console(console) -> Iterator[None]:
    yield
    assert console.taken() == []


@pytest.fixture(scope="package")  # ended with its tests: while it lives, this process has a running event loop
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


@pytest.fixture(scope="package")  # to load a page takes longer than to use it
def tab(browser, server) -> Iterator[Any]:
    """Yield a page of JupyterLab that all tests share; what they leave in it the next one clears away."""
    server.forget_preferences()
    with new_page(browser, ours=OURS) as page:
        open_empty(page, server)
        yield page
        page.evaluate(_END_KERNELS)


@pytest.fixture
def size() -> tuple[int, int]:
    """Return how wide and high `page` is; a file may say something else."""
    return 1180, 1000


@pytest.fixture
def page(tab, server, store, size) -> Iterator[Any]:
    """Yield a page with nothing open over an empty home; no script may fail in it."""
    with no_errors(cleared(tab, server, *size)):
        yield tab


@pytest.fixture
def lab(tab, server, request) -> Iterator[Lab]:
    opened = Lab(server, cleared(tab, server), request.node.name.removeprefix("test_")[:60])
    yield opened
    opened.leave()


@pytest.fixture
def store(server) -> Iterator[Store]:
    """Yield the store of the home, empty before and after; no manager runs."""
    with empty_store(server) as opened:
        yield opened


@pytest.fixture
def sidebar(tab, server, store) -> Iterator[Any]:
    """Yield the sidebar over an empty home."""
    with no_errors(cleared(tab, server, height=900)):
        yield shown_sidebar(tab)


@pytest.fixture
def notebook(tab, server, store, request) -> Iterator[Notebook]:
    """Yield a page for a notebook with no kernel; no script of ours may fail in it."""
    with no_errors(cleared(tab, server, height=900), OURS):
        yield Notebook(server, tab, request.node.name.removeprefix("test_")[:40])


def keep_element(view: Any, name: str) -> None:
    """Keep a picture of a view; it is looked for again where it was drawn anew meanwhile."""
    for _ in range(3):
        try:
            view.screenshot(path=ARTIFACTS / f"{name}-view.png")
        except PlaywrightError as error:
            if "not attached" not in str(error):
                raise
        else:
            return


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
        """Write a notebook with these cells and open it alone; returns when its kernel is idle."""
        body = [
            {"cell_type": "code", "metadata": {}, "source": c, "outputs": [], "execution_count": None} for c in cells
        ]
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
        notebook = {"cells": body, "metadata": kernel, "nbformat": 4, "nbformat_minor": 4}
        (self.server.notebooks / f"{self.name}.ipynb").write_text(json.dumps(notebook))
        self.show()

    def show(self) -> None:
        """Open the notebook that is written."""
        close_all(self.page)
        self.page.evaluate(_SHOW, f"{self.name}.ipynb")
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")
        self.until_idle()
        self.page.wait_for_function(_HAS_FOCUS)  # else the first key goes elsewhere

    def visit(self, page: Any) -> None:
        """Load the page of the notebook."""
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
        run(self.page, name, **(args or {}))

    def run_all(self) -> None:
        """Run all cells; returns at once."""
        self.command("notebook:run-all-cells")

    def execute(self, code: str) -> None:
        """Run code in the notebook's kernel, beside the cells; returns at once."""
        self.page.evaluate(f"(code) => {{ {_KERNEL}.requestExecute({{code}}) }}", code)

    def agree_to_stop(self) -> None:
        """Answer what a view asks before it stops trials that have run for a minute, as they have on a slow machine."""
        question = self.page.locator(".at-ask")
        self.page.add_locator_handler(question, lambda asked: asked.get_by_role("button", name="Stop").click())

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
        if ARE_KEPT and view.count():
            keep_element(view, name)

    def _keep_error(self, error: Any) -> None:
        if _NOT_OURS not in str(error):
            self.errors.append(str(error))

    def shut_down(self) -> None:
        """End the notebook's kernel."""
        self.page.evaluate("() => window.jupyterapp?.shell?.currentWidget?.sessionContext?.shutdown()")

    def end_kernels(self) -> None:
        """Have a new kernel for the notebook that is opened next."""
        self.page.evaluate(_END_KERNELS)

    def leave(self) -> None:
        """Close the notebook; a kernel that is idle is left for the next test, without names and views of this one."""
        self.page.remove_listener("pageerror", self._keep_error)
        self.page.remove_locator_handler(self.page.locator(".at-ask"))
        close_all(self.page)
        self.page.evaluate(_LEAVE)

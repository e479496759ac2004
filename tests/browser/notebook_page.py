"""A notebook in a page of JupyterLab with no kernel, and experiments in the store that its cells show."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, Origin
from jupyter_autotrain.parallel.plan import Plan
from jupyter_autotrain.store import Ingest, Store
from jupyter_autotrain.views.card import card
from jupyter_autotrain.widgets.display import bundle
from tests.browser.jupyter_lab import Server
from tests.browser.lab_page import close_all, picture, run_command

OURS = "/jupyter-autotrain/"  # in the addresses of our scripts
SCRIPT = "for step in range(3):\n    report(step=step, val_acc=step / 3)\n"
OWN = f"%%autotrain digits\nobjective: maximize val_acc\n---\n{SCRIPT}"


class Notebook:
    """A page of JupyterLab with one notebook and no kernel."""

    def __init__(self, server: Server, page: Any, name: str) -> None:
        self.server = server
        self.page = page
        self.name = f"{name}.ipynb"

    @property
    def pictures(self) -> Any:
        """The pictures in cells of text."""
        return self.page.locator(".jp-Notebook .jp-MarkdownCell img")

    def open(self, *cells: dict[str, Any], language: str = "") -> None:
        """Write a notebook that nobody trusts, with these cells, and open it; "" is of no language yet."""
        metadata = {"language_info": {"name": language}} if language else {}
        body = {"cells": [*cells], "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}
        Path(self.server.notebooks, self.name).write_text(json.dumps(body))
        close_all(self.page)
        self.page.evaluate(
            """async (path) => {
                const kernelPreference = {shouldStart: false, canStart: true, autoStartDefault: false};
                const options = {path, factory: 'Notebook', kernelPreference};
                await window.jupyterapp.commands.execute('docmanager:open', options);
            }""",
            self.name,
        )
        shown = "(count) => window.jupyterapp.shell.currentWidget?.content?.widgets?.length === count"
        self.page.wait_for_function(shown, arg=max(len(cells), 1))  # for a moment it has one that is empty
        self.page.wait_for_selector(".jp-Notebook .jp-Cell .cm-content")

    def command(self, name: str, **args: object) -> None:
        """Run a command of JupyterLab without waiting for its end."""
        run_command(self.page, name, **args)

    def open_panel_beside(self, experiment_id: str) -> Any:
        """Open the experiment's panel to the right of the notebook."""
        return open_panel_beside(self.page, experiment_id)

    def screenshot(self, name: str) -> None:
        """Keep a picture of the page."""
        picture(self.page, name)


def open_panel_beside(page: Any, experiment_id: str) -> Any:
    """Open the panel of an experiment to the right of the notebook that is in front."""
    page.evaluate(
        """async (id) => {
            const { commands, shell } = window.jupyterapp;
            const notebook = shell.currentWidget;
            await commands.execute('autotrain:open-experiment', { id });
            shell.add(shell.currentWidget, 'main', { mode: 'split-right', ref: notebook.id });
        }""",
        experiment_id,
    )
    panel = page.locator(".jp-Autotrain-panel")
    expect(panel.locator("canvas").first).to_be_visible()
    return panel


def add(store: Store, server: Server, experiment_id: str, notebook: str) -> None:
    """Add a running experiment of two trials, submitted from a notebook; named as its id: a name is given once."""
    objective = Objective("val_acc")
    captured = Bundle(source_map=("this cell:4", "this cell:5"))
    origin = Origin(str(server.notebooks / notebook))
    spec = ExperimentSpec(experiment_id, captured, objective=objective, trials=2, origin=origin)
    folder = Home(server.home).bundle(experiment_id)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.py").write_text(SCRIPT)
    store.add_experiment(experiment_id, spec, time.time())
    store.add_trial(experiment_id, 1, {"lr": 0.1}, time.time())
    for state in (TrialState.PREPARING, TrialState.RUNNING):
        store.change_state(experiment_id, 1, state, time.time())
    report(store, experiment_id, [0.1, 0.4, 0.3, 0.6])


def report(store: Store, experiment_id: str, values: list[float], metric: str = "val_acc") -> None:
    """Add points to the curve of the trial."""
    begin = store.cursor(experiment_id, 1, 1, "metrics")
    points = [(metric, begin + step, time.time(), value) for step, value in enumerate(values)]
    after = begin + len(values)
    store.ingest([Ingest(experiment_id, 1, 1, "metrics", after, points=points, objective=Objective("val_acc"))])


def end(store: Store, experiment_id: str) -> None:
    """End the trial and the experiment."""
    store.change_state(experiment_id, 1, TrialState.SUCCEEDED, time.time())
    store.close_experiment(experiment_id, time.time())


def output(store: Store, experiment_id: str) -> dict[str, Any]:
    """Return the page that a notebook keeps of an experiment."""
    made = card(store, store.experiment(experiment_id))
    others = {key: value for key, value in made.mime_bundle().items() if key.startswith("application/")}
    data = {**others, **bundle(made.html, made.text)}
    return {"output_type": "display_data", "metadata": {}, "data": data}


def view_output() -> dict[str, Any]:
    """Return the output below it: the view of a kernel that is no more."""
    reference = {"version_major": 2, "version_minor": 0, "model_id": "0123456789abcdef"}
    own = {"version": 1, "view": "0123456789abcdef"}
    data = {
        "application/vnd.autotrain.view+json": own,
        "application/vnd.jupyter.widget-view+json": reference,
        "text/plain": "",
    }
    return {"output_type": "display_data", "metadata": {}, "data": data}


def plan_cell(plan: Plan, folder: Path) -> str:
    """Return the source of a cell that shows a plan, which is read: its kernel needs no torch and no search."""
    path = folder / "plan.json"
    path.write_text(plan.to_json())
    return f"""
from pathlib import Path
from jupyter_autotrain.parallel.plan import Plan

plan = Plan.from_json(Path({str(path)!r}).read_text())
plan
"""


def code_cell(source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    """Return a cell as notebooks keep it."""
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": [*outputs], "execution_count": None}

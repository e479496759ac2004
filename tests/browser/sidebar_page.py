"""The sidebar in a page with nothing else open, and the store that it shows, filled by hand."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.origin import Origin
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.store import Ingest, Store
from tests.browser.jupyter_lab import Server
from tests.browser.lab_page import open_empty
from tests.server.jupyter import end_manager


@contextmanager
def empty_store(server: Server) -> Iterator[Store]:
    """The store of the home, empty, whatever other tests have left there; no manager runs."""
    end_manager(Home(server.home))
    with Store.open(Home(server.home)) as opened:
        _empty(opened)
        yield opened
        end_manager(Home(server.home))
        _empty(opened)


# What a tab keeps of the sidebar: "" or an empty list or text of each is as it begins.
_IS_KEPT = """() => Object.values(JSON.parse(sessionStorage['jupyter-autotrain:experiments'] ?? '{}'))
    .some((value) => value.length > 0)"""


@contextmanager
def shown_sidebar(page: Any, server: Server) -> Iterator[Any]:
    """The sidebar over an empty home, as it begins, in a page that earlier tests may have used."""
    if server.forget_preferences() or page.evaluate(_IS_KEPT):
        page.evaluate("() => sessionStorage.clear()")
        open_empty(page, server)
    while page.get_by_role("dialog").count():
        page.keyboard.press("Escape")
        page.wait_for_timeout(100)
    page.evaluate("() => window.jupyterapp.commands.execute('application:close-all')")
    page.evaluate("() => window.jupyterapp.commands.execute('autotrain:show-experiments')")
    region = page.get_by_role("region", name="Experiments")
    region.get_by_text("No experiment yet").wait_for()
    yield region


def group(sidebar: Any, name: str) -> Any:
    """The part of the tree under a heading."""
    return sidebar.get_by_role("treeitem", name=re.compile(rf"^{re.escape(name)} \d+$"))


def item(sidebar: Any, name: str) -> Any:
    """The row of one experiment."""
    return sidebar.locator(".jp-Autotrain-item").filter(has_text=name)


def add(store: Store, experiment_id: str, name: str, values: Any = (), state: Any = None, notebook: str = "") -> None:
    """An experiment of two trials, of which one has begun; with a state, it has ended."""
    objective = Objective("acc")
    spec = ExperimentSpec(name, Bundle(), objective=objective, trials=2, origin=Origin(notebook))
    store.add_experiment(experiment_id, spec, time.time())
    if not values:
        return
    store.add_trial(experiment_id, 1, {}, time.time())
    for each in (TrialState.PREPARING, TrialState.RUNNING):
        store.change_state(experiment_id, 1, each, time.time())
    points = [("acc", step, time.time(), value) for step, value in enumerate(values)]
    store.ingest([Ingest(experiment_id, 1, 1, "metrics", 1, points=points, objective=objective)])
    if state is not None:
        end(store, experiment_id, state)


def end(store: Store, experiment_id: str, state: TrialState, reason: str = "") -> None:
    """End the trial and the experiment."""
    store.change_state(experiment_id, 1, state, time.time(), reason=reason)
    store.close_experiment(experiment_id, time.time(), reason)


def _empty(store: Store) -> None:
    for experiment_id in store.ids():
        store.delete_experiment(experiment_id)

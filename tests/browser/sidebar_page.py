"""The sidebar in a page with nothing else open, and the store that it shows, filled by hand."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, Origin
from jupyter_autotrain.store import Ingest, Store
from tests.browser.jupyter_lab import Server
from tests.browser.lab_page import run_command
from tests.server.jupyter import end_manager, play_manager


@contextmanager
def empty_store(server: Server) -> Iterator[Store]:
    """Yield the store of the home, empty, whatever other tests have left there; no manager runs."""
    end_manager(Home(server.home))
    play_manager(Home(server.home))
    with Store.open(Home(server.home)) as opened:
        _empty(opened)
        yield opened
        end_manager(Home(server.home))
        _empty(opened)


def shown_sidebar(page: Any) -> Any:
    """Return the sidebar over an empty home, in a page with nothing open."""
    run_command(page, "autotrain:show-experiments")
    region = page.get_by_role("region", name="Experiments")
    region.get_by_text("No experiments yet").wait_for()
    return region


def group(sidebar: Any, name: str) -> Any:
    """Return the part of the tree under a heading."""
    return sidebar.get_by_role("treeitem", name=re.compile(rf"^{re.escape(name)} \d+$"))


def item(sidebar: Any, name: str) -> Any:
    """Return the row of one experiment."""
    return sidebar.locator(".jp-Autotrain-item").filter(has_text=name)


def head_button(sidebar: Any, name: str) -> Any:
    """Return a button of the line above the list, whose name begins so."""
    return sidebar.get_by_role("toolbar", name="Filter and order").get_by_role("button", name=re.compile(f"^{name}"))


def choose(sidebar: Any, button: str, option: str) -> None:
    """Choose from the menu of a button above the list."""
    head_button(sidebar, button).click()
    menu_item(sidebar.page, option).click()


def menu_item(page: Any, text: str) -> Any:
    """Return what can be chosen in the menu that is open."""
    return page.locator(".lm-Menu-item").filter(has=page.get_by_text(text, exact=True))


def filter_by(sidebar: Any, text: str) -> None:
    """Type into the filter, which is opened where it is closed."""
    box = sidebar.get_by_label("Filter by name")
    if not box.count():
        head_button(sidebar, "Filter").click()
    box.fill(text)


def add(store: Store, experiment_id: str, name: str, values: Any = (), state: Any = None, notebook: str = "") -> None:
    """Add an experiment of two trials, of which one has begun; with a state, it has ended."""
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
    with store._database.write() as connection:
        connection.execute("DELETE FROM names")  # else a name that another test has given reads name@2

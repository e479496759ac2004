"""Showing a value in a cell: of an experiment the run card and, in its place, the live view; of a plan its preview."""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING

from IPython.core.getipython import get_ipython

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.views.card import Card, card
from jupyter_autotrain.widgets import marimo_page
from jupyter_autotrain.widgets.display import display_page, display_view, refresh_page

if TYPE_CHECKING:
    from jupyter_autotrain.widgets.live import LiveView


def show(value: object) -> object:
    """Show an experiment or a plan here; other values raise TypeError. See `show_experiment` and `plan.show_plan`."""
    if isinstance(value, Experiment):
        return show_experiment(value)
    from jupyter_autotrain.widgets.plan import Previewable, show_plan  # noqa: PLC0415 - only plans need it

    if not isinstance(value, Previewable):
        raise TypeError(f"no view shows a {type(value).__name__}")
    return show_plan(value)


def show_experiment(experiment: Experiment) -> object:
    """Show an experiment in the richest form that works here.

    In a notebook there are two outputs: the run card, for readers without a kernel, and the live view; a terminal gets
    the card's text.

    Returns:
        The handle of the card's output; None in a terminal. In marimo nothing is shown but what this returns.
    """
    shell = get_ipython()
    is_ended = experiment.state.is_final  # asked first: the end may come between all that follows
    page = _card(experiment)
    if marimo_page.is_running():
        return marimo_page.page(page.html, _live_view(experiment, lambda: None, is_ended=is_ended))
    if getattr(shell, "kernel", None) is None:
        sys.stdout.write(f"{page.text}\n")
        return None
    return _display_live(experiment, page, is_ended=is_ended)


def show_collapsed(experiment: Experiment) -> None:
    """Show an experiment as one line that unfolds to its live view; outside notebooks show nothing."""
    if getattr(get_ipython(), "kernel", None) is None:
        return
    command = f"%autotrain show {experiment.name}"
    display_page(f"<p>Show it live: <code>{escape(command)}</code></p>", f"Show it live: {command}")
    display_view(_live_view(experiment, lambda: None, is_ended=experiment.state.is_final, folded=True))


def _display_live(experiment: Experiment, page: Card, *, is_ended: bool) -> object:
    def refresh() -> None:
        newer = _card(experiment)
        refresh_page(handle, newer.html, newer.text, newer.mime_bundle())

    handle = display_page(page.html, page.text, page.mime_bundle())
    display_view(_live_view(experiment, refresh, is_ended=is_ended))
    return handle


def _live_view(experiment: Experiment, ended: Callable[[], None], *, is_ended: bool, folded: bool = False) -> LiveView:
    from jupyter_autotrain.widgets.live import LiveView  # noqa: PLC0415 - heavy, and of no use in a terminal

    return LiveView(experiment, ended=ended, is_ended=is_ended, folded=folded)


def _card(experiment: Experiment) -> Card:
    return card(experiment.store, experiment.record, home=experiment.home)

"""Showing an experiment in a cell: live view, HTML and text in one output, refreshed when the experiment ends."""

from __future__ import annotations

import sys
from typing import Any, Final, cast

from IPython.core.getipython import get_ipython
from IPython.display import DisplayHandle

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.widgets.card import Card, card

_VIEW: Final = "application/vnd.jupyter.widget-view+json"


def show(experiment: Experiment) -> DisplayHandle | None:
    """Show an experiment here, as richly as the place allows.

    In a notebook the output holds the live view and, for readers without a kernel, the run card; a terminal gets the
    card's text.

    Returns:
        The handle of the output; None in a terminal.
    """
    shell = get_ipython()
    page = _card(experiment)
    if getattr(shell, "kernel", None) is None:
        sys.stdout.write(f"{page.text}\n")
        return None
    return _display_live(experiment, page)


def _display_live(experiment: Experiment, page: Card) -> DisplayHandle:
    from jupyter_autotrain.widgets.live import LiveView  # noqa: PLC0415 - heavy, and of no use in a terminal

    handle: Any = DisplayHandle()  # type: ignore[no-untyped-call] # IPython gives it no types
    view = LiveView(experiment, ended=lambda: handle.update(_bundle(view, _card(experiment)), raw=True))
    handle.display(_bundle(view, page), raw=True)
    return cast("DisplayHandle", handle)


def _card(experiment: Experiment) -> Card:
    return card(experiment.store, experiment.record)


def _bundle(view: object, page: Card) -> dict[str, object]:
    reference = {"version_major": 2, "version_minor": 0, "model_id": getattr(view, "model_id", "")}
    return {_VIEW: reference, "text/html": page.html, "text/plain": page.text}

"""Showing an experiment in a cell: the run card, refreshed when the experiment ends, and in its place the live view.

JupyterLab draws the richest form of an output and no other, so a live view whose kernel is gone would leave nothing but
an error. Therefore the card has an output of its own. A style in it hides the card while the view stands below it, and
the place of the view while there is none: reopened without a kernel, a notebook shows the card.
"""

from __future__ import annotations

import sys
from typing import Any, Final, cast

from IPython.core.getipython import get_ipython
from IPython.display import DisplayHandle, display

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.widgets.card import Card, card

_VIEW: Final = "application/vnd.jupyter.widget-view+json"
_OUTPUT: Final = ".jp-OutputArea-child"
_STYLE: Final = (
    f"<style>{_OUTPUT}:has(.autotrain-card):has(+{_OUTPUT} .autotrain),"
    f"{_OUTPUT}:has(.autotrain-card)+{_OUTPUT}:has(>.lm-Panel.jp-OutputArea-output):not(:has(.autotrain))"
    "{display:none}</style>"
)


def show(experiment: Experiment) -> DisplayHandle | None:
    """Show an experiment here, as richly as the place allows.

    In a notebook there are two outputs: the run card, for readers without a kernel, and the live view; a terminal gets
    the card's text.

    Returns:
        The handle of the card's output; None in a terminal.
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
    handle.display(_bundle(page), raw=True)
    view = LiveView(experiment, ended=lambda: handle.update(_bundle(_card(experiment)), raw=True))
    reference = {"version_major": 2, "version_minor": 0, "model_id": getattr(view, "model_id", "")}
    display({_VIEW: reference, "text/plain": ""}, raw=True)  # type: ignore[no-untyped-call] # IPython gives it no types
    return cast("DisplayHandle", handle)


def _card(experiment: Experiment) -> Card:
    return card(experiment.store, experiment.record)


def _bundle(page: Card) -> dict[str, str]:
    return {"text/html": f'<div class="autotrain-card">{_STYLE}{page.html}</div>', "text/plain": page.text}

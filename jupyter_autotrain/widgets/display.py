"""Two outputs of one cell: a static page for readers without a kernel, and a live view that replaces it.

JupyterLab draws only the richest form of an output, so a view without a kernel would leave nothing but an error.
Therefore the page is an output of its own. A style in it hides the page while the view is below it, and the output of
the view while there is none: reopened without a kernel, a notebook shows the page.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol, cast

from IPython.display import DisplayHandle, display

NO_OTHERS: Final[Mapping[str, object]] = MappingProxyType({})
_VIEW: Final = "application/vnd.jupyter.widget-view+json"
_OWN_VIEW: Final = "application/vnd.autotrain.view+json"
_OUTPUT: Final = ".jp-OutputArea-child"
_STYLE: Final = (
    f"<style>{_OUTPUT}:has(.autotrain-card):has(+{_OUTPUT} .autotrain),"
    f"{_OUTPUT}:has(.autotrain-card)+{_OUTPUT}:has(>.lm-Panel.jp-OutputArea-output):not(:has(.autotrain))"
    "{display:none}</style>"
)


class KernelView(Protocol):
    """A widget of this kernel; `view_id` is a synchronized trait, by which it is known in the page."""

    @property
    def model_id(self) -> str | None:
        """Its id for the widget manager."""
        ...

    view_id: Any


def new_view_id() -> str:
    """Return an id that no other view has."""
    return uuid.uuid4().hex


def display_page(html: str, text: str, others: Mapping[str, object] = NO_OTHERS) -> DisplayHandle:
    """Show the page; `display_view` shows the view right below it.

    Args:
        html: The page as HTML.
        text: The page as text.
        others: Further forms of it, by MIME type.
    """
    handle: Any = DisplayHandle()  # type: ignore[no-untyped-call] # IPython gives it no types
    handle.display({**others, **bundle(html, text)}, raw=True)
    return cast("DisplayHandle", handle)


def refresh_page(handle: DisplayHandle, html: str, text: str, others: Mapping[str, object] = NO_OTHERS) -> None:
    """Replace the page that `display_page` has shown."""
    cast("Any", handle).update({**others, **bundle(html, text)}, raw=True)


def display_view(view: KernelView) -> None:
    """Show the view: a widget whose root element has the class `autotrain`.

    Where our extension runs in JupyterLab, it renders the output by its own type once the view has been opened in the
    page. JupyterLab's renderer of widgets, which all others use, reports an error on the console for a view of before.
    """
    reference = {"version_major": 2, "version_minor": 0, "model_id": view.model_id}
    data = {_OWN_VIEW: {"version": 1, "view": view.view_id}, _VIEW: reference, "text/plain": ""}
    display(data, raw=True)  # type: ignore[no-untyped-call] # IPython gives it no types


def bundle(html: str, text: str) -> dict[str, str]:
    """Return the page as a notebook stores it, as HTML and as text."""
    return {"text/html": f'<div class="autotrain-card">{_STYLE}{html}</div>', "text/plain": text}

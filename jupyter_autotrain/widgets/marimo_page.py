"""A value as marimo shows it: its widget, and below it the static page for a file that is read without a kernel."""

from __future__ import annotations

import sys
from typing import Any, Final

# Outside marimo nobody defines this element, so nothing is drawn of it, and the page stays.
_STYLE: Final = "<style>.autotrain-card:has(+* marimo-anywidget:defined){display:none}</style>"


def is_running() -> bool:
    """Return whether this is a kernel of marimo."""
    marimo: Any = sys.modules.get("marimo")
    return marimo is not None and bool(marimo.running_in_notebook())


def page(html: str, widget: object) -> object:
    """Return what marimo draws where it is the value of a cell.

    Args:
        html: The page.
        widget: An anywidget, which is drawn in the place of the page where marimo runs.
    """
    from marimo import Html, as_html  # noqa: PLC0415 - only its own kernel has it

    return Html(f'<div class="autotrain-card">{_STYLE}{html}</div>{as_html(widget).text}')

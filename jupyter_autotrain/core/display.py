"""Values of a lower layer, shown by views that only the package's top module may name; SVG as an image element."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from html import escape
from importlib import import_module
from typing import Final

_TOP = "jupyter_autotrain"


class Displayable:
    """A value that a notebook shows by its view where it is the value of a cell."""

    __slots__ = ()

    def _ipython_display_(self) -> None:
        show(self)


def show(value: object) -> object:
    """Show a value where the user is; return the handle of the view, None where there is none."""
    return import_module(_TOP).show_value(value)


def mime_bundle(value: object) -> Mapping[str, object]:
    """Return the static forms of a value, by MIME type."""
    bundle: Mapping[str, object] = import_module(_TOP).value_mime_bundle(value)
    return bundle


# An image knows nothing of the page around it: readable on white and on black, at 4:1 or better on both.
INK: Final = "#6e7781"


def svg_image(svg: str, label: str, width: float) -> str:
    """Return an SVG document as an image element that carries it.

    It serves HTML that untrusted notebooks show, too.

    Args:
        svg: The document, with its namespace, its own style and colours.
        label: The alternative text.
        width: Its width in pixels; it shrinks with the page.
    """
    data = base64.b64encode(svg.encode()).decode()
    source = f"data:image/svg+xml;base64,{data}"
    return f'<img alt="{escape(label, quote=True)}" width="{width:g}" style="max-width:100%" src="{source}"/>'

"""SVG as an image element: viewers of untrusted notebooks strip SVG elements but keep their texts."""

from __future__ import annotations

import base64
from html import escape
from typing import Final

# An image knows nothing of the page around it: readable on white and on black, at 4:1 or better on both.
INK: Final = "#6e7781"


def image(svg: str, label: str, width: float) -> str:
    """An SVG document as an image element that carries it, for HTML that untrusted notebooks show, too.

    Args:
        svg: The document, with its namespace, its own style and colours.
        label: The alternative text.
        width: Its width in pixels; it shrinks with the page.
    """
    data = base64.b64encode(svg.encode()).decode()
    source = f"data:image/svg+xml;base64,{data}"
    return f'<img alt="{escape(label, quote=True)}" width="{width:g}" style="max-width:100%" src="{source}"/>'

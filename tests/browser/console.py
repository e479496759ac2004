"""What pages write on their consoles: no errors and no warnings."""

from __future__ import annotations

from typing import Any

_KINDS = {"error", "warning"}
_EXPECTED = (
    "Failed to load resource",  # what a server refuses, a page tells; a server's own faults are in its log
    "WebSocket connection to",  # so writes the browser itself where a server is gone
    "Showing error: ",  # what a dialog of JupyterLab says
    "Canvas2D: Multiple readback",  # tests read pixels
)


class Console:
    """Keeps the errors and warnings of all pages of a browser."""

    def __init__(self) -> None:
        self._kept: list[str] = []

    def watch(self, browser: Any) -> None:
        """Keep what the pages of this browser write from now on."""
        new_context = browser.new_context

        def watched(**options: Any) -> Any:
            context = new_context(**options)
            context.on("console", self._keep)
            return context

        browser.new_context = watched

    def taken(self) -> list[str]:
        """What was kept since the last call."""
        kept, self._kept = self._kept, []
        return kept

    def _keep(self, message: Any) -> None:
        if message.type in _KINDS and not message.text.startswith(_EXPECTED):
            self._kept.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

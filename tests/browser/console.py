"""Messages on the consoles of pages: no errors and no warnings but JupyterLab's own."""

from __future__ import annotations

from typing import Any

_CORE = "/static/lab/jlab_core."  # JupyterLab's own code: of kernels that restart, lost connections, its dialogs
_KINDS = {"error", "warning"}
_EXPECTED = (
    "Failed to load resource",  # what a server refuses, a page tells; a server's own faults are in its log
    "WebSocket connection to",  # so writes the browser itself where a server is gone
    "Canvas2D: Multiple readback",  # tests read pixels
)
# JupyterLab names each plugin while and after a start that takes a busy machine long.
_SLOW_START = ("ms to activate", "is taking too long to activate")


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
        """Return what was kept since the last call."""
        kept, self._kept = self._kept, []
        return kept

    def _keep(self, message: Any) -> None:
        url = message.location.get("url", "")
        is_ours = _CORE not in url or "autotrain" in message.text
        is_expected = message.text.startswith(_EXPECTED) or any(words in message.text for words in _SLOW_START)
        if message.type in _KINDS and is_ours and not is_expected:
            self._kept.append(f"{message.type}: {message.text} ({url})")

"""The notice before a cell is sent: what travels with it, in one line that opens in a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final

from jupyter_autotrain import capture
from jupyter_autotrain.capture import Capture
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.core.table import Table
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.terminal import printable

_PROVIDED: Final = frozenset({"builtin", "parameter"})
_MAX_DIFFERENCES: Final = 8


@dataclass(frozen=True, slots=True)
class Notice:
    """What travels with a cell, and what differs from running it here.

    Attributes:
        line: Counts and sizes.
        table: Each name with how it travels.
        differences: The list as text; "" when nothing differs.
    """

    line: str
    table: Table
    differences: str

    def text(self) -> str:
        """Return the line, and what differs below it."""
        return "\n".join(filter(None, [f"{self.line} (all of it: --dry-run)", self.differences]))

    def html(self) -> str:
        """Return the line, which opens to the table and to what differs."""
        differences = f"<pre>{escape(printable(self.differences))}</pre>" if self.differences else ""
        return f"<details><summary>{escape(self.line)}</summary>{self.table.html()}{differences}</details>"


def notice(captured: Capture) -> Notice | None:
    """Return the notice of a capture; None for a cell that needs nothing of the notebook and runs as it does here."""
    names = [entry for entry in captured.captured if entry.how not in _PROVIDED]
    if not names and not captured.differences:
        return None
    size_bytes = sum(entry.size_bytes for entry in names)
    sized = f", {format_bytes(size_bytes)}" if size_bytes else ""
    differing = f"; {count(len(captured.differences), 'difference')}" if captured.differences else ""
    line = f"Travels: {count(len(names), 'name')}{sized}{differing}"
    listed = capture.format_differences(captured.differences, rows=_MAX_DIFFERENCES)
    return Notice(line, capture.table(captured), listed)

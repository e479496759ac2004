"""The progress of a submission in the output of its cell."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import clear_output, display

from jupyter_autotrain.client.progress import Progress, in_terminal

_ID = "autotrain-progress"


def progress(shell: InteractiveShell, shown_before: Sequence[Callable[[], None]]) -> Progress:
    """A line in the cell's output that leaves nothing in the notebook; in a terminal, a line that is overwritten.

    Args:
        shell: Where the cell runs.
        shown_before: Each shows a part of the cell's output again, which is removed together with the line.
    """
    if not hasattr(shell, "kernel"):
        return in_terminal(sys.stdout)
    shown: list[str] = []

    def show(text: str) -> None:
        content = {"text/plain": text}
        display(content, raw=True, display_id=_ID, update=bool(shown))  # type: ignore[no-untyped-call]  # IPython has no types here
        shown.append(text)

    def clear() -> None:
        clear_output()  # type: ignore[no-untyped-call]  # the same
        for show_again in shown_before:
            show_again()

    return Progress(show, clear)

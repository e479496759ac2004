"""The progress of a submission in the output of its cell."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import clear_output, display

from jupyter_autotrain.client.progress import Progress, in_terminal

_ID = "autotrain-progress"


def progress(shell: InteractiveShell, printed: Sequence[str]) -> Progress:
    """A line in the cell's output that leaves nothing in the notebook; in a terminal, a line that is overwritten.

    Args:
        shell: Where the cell runs.
        printed: What the cell has printed: it is printed again after the line is removed.
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
        sys.stdout.write("".join(printed))
        sys.stdout.flush()

    return Progress(show, clear)

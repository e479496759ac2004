"""What a notebook knows of itself: the executed cells, the namespace, the folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

from jupyter_autotrain.capture import Cell
from jupyter_autotrain.client.origin import of_notebook
from jupyter_autotrain.core.origin import Origin


def executed_cells(shell: InteractiveShell) -> list[Cell]:
    """All cells run so far in this kernel, in order of execution, the running one excepted."""
    history = shell.history_manager
    sources = history.input_hist_raw if history else []
    return [Cell(number, source) for number, source in enumerate(sources) if 0 < number < shell.execution_count]


def namespace(shell: InteractiveShell) -> Mapping[str, object]:
    """The user's names, without what IPython put there."""
    hidden = shell.user_ns_hidden
    return {name: value for name, value in shell.user_ns.items() if name not in hidden or hidden[name] is not value}


def origin(shell: InteractiveShell, environ: Mapping[str, str]) -> Origin:
    """Which notebook this is."""
    return of_notebook(shell.user_ns, environ, shell.starting_dir)


def name(where: Origin) -> str:
    """A default experiment name: the notebook's file name where the front end tells it, else `cell`."""
    stem = Path(where.notebook).stem
    return stem if stem and stem.count("-") != 4 else "cell"

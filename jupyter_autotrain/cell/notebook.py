"""The state of the notebook: its executed cells, its namespace, its path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

from jupyter_autotrain.capture import Cell
from jupyter_autotrain.client.lookup import of_notebook
from jupyter_autotrain.core.spec import Origin

_HISTORY_NAMES = re.compile(r"_{1,3}|_\d+|_i{1,3}|_i\d+|In|Out|_[iod]h")
_OUTPUTS = re.compile(r"\b(?:Out|_oh)\b(?:\s*\[\s*(?P<number>\d+)\s*\])?")


def executed_cells(shell: InteractiveShell) -> list[Cell]:
    """All cells run so far in this kernel, in order of execution, without the running one."""
    history = shell.history_manager
    sources = history.input_hist_raw if history else []
    return [Cell(number, source) for number, source in enumerate(sources) if 0 < number < shell.execution_count]


def namespace(shell: InteractiveShell, code: str) -> Mapping[str, object]:
    """Return the user's names, and of IPython's own `__name__` and those of earlier cells: `_`, `_3`, `Out`, `In`.

    A kernel hides every name that its shell starts with, `__name__` among them. Capture tells by it which functions
    and classes are the notebook's.

    Args:
        shell: The shell of the notebook.
        code: The code that reads the names; `Out` holds only the results that it or an earlier cell reads.
    """
    hidden = shell.user_ns_hidden
    users: dict[str, object] = {}
    history: dict[str, object] = {}
    for name, value in shell.user_ns.items():
        if name not in hidden or hidden[name] is not value:
            users[name] = value
        if _HISTORY_NAMES.fullmatch(name):
            history[name] = value
    if history.get("Out") is history.get("_oh"):
        history["Out"] = history["_oh"] = _read_outputs(shell, code)
    return {"__name__": shell.user_module.__name__, **history, **users}  # the user's value replaces IPython's


def _read_outputs(shell: InteractiveShell, code: str) -> dict[int, object]:
    """Get the results of earlier cells that code reads by constant numbers; all of them where it computes a number."""
    outputs: dict[int, object] = shell.user_ns["_oh"]
    sources = "\n".join([code, *(cell.source for cell in executed_cells(shell))])
    numbers = [int(found["number"] or -1) for found in _OUTPUTS.finditer(sources)]
    if -1 in numbers:
        return dict(outputs)
    return {number: outputs[number] for number in numbers if number in outputs}


def origin(shell: InteractiveShell, environ: Mapping[str, str]) -> Origin:
    """Which notebook this is."""
    return of_notebook(shell.user_ns, environ, shell.starting_dir)


def name(where: Origin) -> str:
    """Return a default experiment name: the notebook's file name where the front end gives it, else `cell`."""
    stem = Path(where.notebook).stem
    return stem if stem and stem.count("-") != 4 else "cell"

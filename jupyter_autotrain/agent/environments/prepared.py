"""The interpreter that a trial is started with, and its variables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

_OF_ANOTHER = ("PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "__PYVENV_LAUNCHER__")


class NotPreparedError(Exception):
    """The error that there is no such interpreter, or that it could not be made; the text says what to do next."""


class Prepared:
    """An interpreter and the variables that make its environment the active one.

    Args:
        python: The interpreter.
        variables: Set for it; PATH is completed by `folder`.
        folder: The folder of its programs.
    """

    def __init__(self, python: str, variables: Mapping[str, str], folder: str = "") -> None:
        self.python = python
        self.variables = variables
        self.folder = folder

    def environ(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return a trial's variables with those of this environment, without those of another one."""
        kept = {name: value for name, value in given.items() if name not in _OF_ANOTHER}
        path = os.pathsep.join(filter(None, [self.folder, given.get("PATH", os.defpath)]))
        return {**kept, "PATH": path, **self.variables}


def last_lines(lines: Sequence[str], most: int = 6) -> str:
    """Return the end of a program's output, in one line."""
    filled = [line.strip() for line in lines if line.strip()]
    return " | ".join(filled[-most:])[-1500:]

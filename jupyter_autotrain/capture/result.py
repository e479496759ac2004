"""The result of a capture, and the table of it that is shown before submit."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_autotrain.agent.environments.python_environment import PythonPackage
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.capture.differences import Difference
from jupyter_autotrain.capture.reports import Reports
from jupyter_autotrain.core.spec import Bundle, CapturedName
from jupyter_autotrain.core.table import Table


@dataclass(frozen=True, slots=True)
class Capture:
    """A cell as something that runs elsewhere.

    Attributes:
        script: The text of `main.py`.
        data: Pickles by name; the script reads them by `__autotrain_data__`.
        captured: One row per name or file, for the table.
        files: Shipped files: path relative to the working folder -> the file here.
        folders: Folders that are made in a trial's folder, empty where no file travels into them.
        written: Those of the files that the code may write to; a trial gets copies of its own.
        source_map: For each line of the script "cell label:line", or "".
        notes: What the user should know, such as a line that was left out.
        reports: The metrics that the code reports, by static analysis.
        differences: What a trial does not have as the notebook has it.
        packages: The installed distributions that code and data need.
    """

    script: str
    data: Mapping[str, bytes] = field(default_factory=dict)
    captured: tuple[CapturedName, ...] = ()
    files: Mapping[str, Path] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    written: frozenset[str] = frozenset()
    source_map: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reports: Reports = field(default_factory=Reports)
    differences: tuple[Difference, ...] = ()
    packages: tuple[PythonPackage, ...] = ()

    @property
    def bundle(self) -> Bundle:
        """The part of the bundle that is known before it is written."""
        return Bundle(python_packages=self.packages, python_version=platform.python_version())


# The table shown before submit: every captured name, from where, how it travels, how big, whether it is stale


_HEAD = ("name", "travels as", "from", "size", "stale")
_ORDER = ("parameter", "builtin", "import", "source", "data", "file")


def table(capture: Capture) -> Table:
    """Return the capture table: a row per name."""
    rows = list(map(_row, sorted(capture.captured, key=_place)))
    return Table(_HEAD, rows, right=("size",), more="" if rows else "The cell needs nothing of the notebook.")


def _place(entry: CapturedName) -> tuple[int, str]:
    return (_ORDER.index(entry.how) if entry.how in _ORDER else len(_ORDER)), entry.name


def _row(entry: CapturedName) -> tuple[str, str, str, str, str]:
    size = format_bytes(entry.size_bytes) if entry.how in {"data", "file"} else ""
    return entry.name, entry.how, entry.origin, size, entry.stale

"""What a capture yields."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_autotrain.capture.differences import Difference
from jupyter_autotrain.capture.reports import Reports
from jupyter_autotrain.core.python_environment import PythonPackage
from jupyter_autotrain.core.spec import Bundle, CapturedName


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
        """What is known of the bundle before it is written."""
        return Bundle(python_packages=self.packages, python_version=platform.python_version())

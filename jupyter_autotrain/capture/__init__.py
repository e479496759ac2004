"""Capture: from a notebook cell to the smallest script that runs elsewhere.

Data flow: `syntax` reads what the notebook executed and the names that the cell needs; `slice` follows each name to its
import or source (`definitions`) or to its value (`values`); `state` finds how earlier cells left the libraries, `files`
which files the code opens; `script` writes it all down; `bundle` puts the result on disk, `export` makes one script of
it. `capturing` runs these steps in order; `differences` lists what a trial does not have as the notebook has it.
"""

from __future__ import annotations

from jupyter_autotrain.capture.bundle import read_bundle, write_bundle
from jupyter_autotrain.capture.capturing import capture
from jupyter_autotrain.capture.differences import Difference, format_differences
from jupyter_autotrain.capture.export import export_script
from jupyter_autotrain.capture.function import from_function
from jupyter_autotrain.capture.refusals import CaptureLimits
from jupyter_autotrain.capture.reports import Reports
from jupyter_autotrain.capture.reports import check as check_reports
from jupyter_autotrain.capture.result import Capture, table
from jupyter_autotrain.capture.syntax.cells import Cell

__all__ = [
    "Capture",
    "CaptureLimits",
    "Cell",
    "Difference",
    "Reports",
    "capture",
    "check_reports",
    "export_script",
    "format_differences",
    "from_function",
    "read_bundle",
    "table",
    "write_bundle",
]

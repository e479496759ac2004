"""Capture: from a notebook cell to the smallest script that runs elsewhere.

The walk: `cells` reads what the notebook executed, `names` finds what the cell needs, `slice` follows each name to
its import (`imports`), its source (`definitions`) or its value (`values`, `data`, `stream`, `refuse`), `script` writes
it all down, `reports` finds the metrics in it; `modules`, `ship` and `ignore` find the files that travel; `bundle` puts
the result on disk, `export` turns it into one script, `table` shows it, `differences` tells what a trial does not have
as the notebook has it; `state` sets libraries as earlier cells left them.
"""

from __future__ import annotations

from jupyter_autotrain.capture.bundle import read_bundle, write_bundle
from jupyter_autotrain.capture.capturing import capture
from jupyter_autotrain.capture.cells import Cell
from jupyter_autotrain.capture.differences import Difference, told
from jupyter_autotrain.capture.export import export_script
from jupyter_autotrain.capture.function import from_function, from_source
from jupyter_autotrain.capture.reports import check as check_reports
from jupyter_autotrain.capture.result import Capture, Limits
from jupyter_autotrain.capture.table import table

__all__ = [
    "Capture",
    "Cell",
    "Difference",
    "Limits",
    "capture",
    "check_reports",
    "export_script",
    "from_function",
    "from_source",
    "read_bundle",
    "table",
    "told",
    "write_bundle",
]

"""Measure the kernel's wait at a submit: capture, and the whole way until the experiment is on disk.

    python benchmarks/capture_cell.py

Limits: a plain cell is on disk within 0.2 s in the median and 1 s at the 95th percentile; 50,000 small objects are
captured within 1 s of CPU time. A manager runs; the cell goes through the real header and a real shell.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from IPython.core.interactiveshell import InteractiveShell

from jupyter_autotrain import manager
from jupyter_autotrain.cell import submission
from jupyter_autotrain.cell.preview import progress
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.client.rerun import Dialogue
from jupyter_autotrain.client.submission import submit_draft
from jupyter_autotrain.core.home import Home

ROUNDS = 20
MEDIAN_LIMIT_S, P95_LIMIT_S, OBJECTS_LIMIT_S = 0.2, 1.0, 1.0
PLAIN = "scale, rows = 2, [1.0, 2.0]\ndef loss(step):\n    return scale / (step + 1) + sum(rows)"
CELL = "objective: minimize loss\n---\nfor step in range(3):\n    report(step=step, loss=loss(step))"
OBJECTS = """
class Row:
    def __init__(self, i): self.i, self.text = i, f"row {i}"
small = [Row(i) for i in range(50_000)]
"""


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return how long something takes."""
    started = clock()
    work()
    return clock() - started


def line(what: str, value_s: float, limit_s: float) -> None:
    """Print one figure with its limit."""
    print(f"{what:<36} {value_s * 1e3:7.1f} ms  (limit {limit_s * 1e3:.0f})   ratio {value_s / limit_s:.2f}")


def main() -> int:
    """Measure; the exit status says whether a limit was passed."""
    shell = InteractiveShell.instance()
    for cell in (PLAIN, OBJECTS):
        shell.run_cell(cell, store_history=True).raise_error()
    with tempfile.TemporaryDirectory(prefix="autotrain-") as folder:
        home, cwd = Home(Path(folder, "home")), Path(folder)
        environ = {"PATH": "/usr/bin:/bin", "HOME": folder}

        def read(cell: str) -> submission.CellDraft:
            return submission.read(shell, "", cell, cwd=cwd, environ=environ)

        def submit() -> Experiment:
            return submit_draft(read(CELL), home, Dialogue(str, str), progress(shell, ())).experiment

        submit().wait()  # starts the manager
        took_s = sorted(seconds(submit) for _ in range(ROUNDS))
        objects_s = min(seconds(lambda: read("print(len(small))"), time.process_time) for _ in range(3))
        submit().wait()
        process = psutil.Process(manager.status(home).pid)
        process.terminate()
        psutil.wait_procs([process], timeout=10)
    median_s, p95_s = statistics.median(took_s), took_s[int(0.95 * ROUNDS)]
    line("submit a plain cell, median", median_s, MEDIAN_LIMIT_S)
    line("submit a plain cell, 95th percentile", p95_s, P95_LIMIT_S)
    line("capture 50,000 small objects, CPU", objects_s, OBJECTS_LIMIT_S)
    return int(median_s > MEDIAN_LIMIT_S or p95_s > P95_LIMIT_S or objects_s > OBJECTS_LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())

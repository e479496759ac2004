"""Measure warm trials beside cold ones in the same run: submit to first metric, trials per minute at 2 slots.

    python benchmarks/warm_trials.py [--trials N] [--cells NAME ...]

A trial reports eleven metrics; its cell imports nothing, PyTorch, or PyTorch and pandas. Limits: first metric 20 ms,
and 300 ms with PyTorch and pandas; 3,000 trials a minute at 2 slots with PyTorch. Counts from the call to submit until
the metric can be read from the store.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

from jupyter_autotrain import manager
from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.pool import warm_list
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client.submitting import submit
from jupyter_autotrain.core.home import Home

REPORTS = "for step in range(11):\n    report(step=step, acc=0.5)\n"
CELLS = {"no import": "", "torch": "import torch\n", "torch, pandas": "import torch\nimport pandas\n"}
LIMITS_S = {"no import": 0.02, "torch": 0.3, "torch, pandas": 0.3}
LIMIT_PER_MIN = 3000.0
SINGLE = 11
IMPORTS_S = 120.0


def first_metric_s(home: Home, cell: str, *, reuse: bool) -> float:
    """One submit, until its first metric can be read."""
    begun = time.perf_counter()
    experiment = submit(cell, home=home, name="single", local={"reuse": reuse})
    while not experiment.store.points(experiment.id, limit=1):
        time.sleep(0.001)
    elapsed_s = time.perf_counter() - begun
    experiment.wait()
    return elapsed_s


def trials_per_min(home: Home, cell: str, trials: int, *, reuse: bool) -> float:
    """Many trials at 2 slots."""
    local = {"reuse": reuse}
    experiment = submit(cell, home=home, name="batch", trials=trials, concurrency=2, local=local)
    experiment.wait()
    records = experiment.trials
    assert all(trial.state is TrialState.SUCCEEDED for trial in records), records
    return 60 * trials / (max(t.ended_s or 0.0 for t in records) - min(t.created_s for t in records))


def warm_up(home: Home, cell: str, modules: list[str]) -> None:
    """Run trials until a process has made the imports."""
    first_metric_s(home, cell, reuse=True)
    end_s = time.monotonic() + IMPORTS_S
    while time.monotonic() < end_s:
        found = [entry.imports for entry in warm_list.living(home.root / "warm")]
        if any(set(modules) <= set(imports) for imports in found):
            return
        time.sleep(0.1)
    raise SystemExit(f"no process has imported {modules} within {IMPORTS_S:.0f} s")


def measure(home: Home, name: str, trials: int) -> None:
    """Measure one cell, and print."""
    cell = CELLS[name] + REPORTS
    modules = name.split(", ") if CELLS[name] else []
    warm_up(home, cell, modules)
    warm_s = statistics.median(first_metric_s(home, cell, reuse=True) for _ in range(SINGLE))
    cold_s = statistics.median(first_metric_s(home, cell, reuse=False) for _ in range(3))
    warm = trials_per_min(home, cell, trials, reuse=True)
    cold = trials_per_min(home, cell, 8 if modules else trials, reuse=False)
    limit_s = LIMITS_S[name]
    print(
        f"{name:<14} submit to first metric {warm_s * 1e3:7.1f} ms, cold {cold_s * 1e3:7.1f} ms, "
        f"{cold_s / warm_s:5.1f} x; limit {limit_s * 1e3:.0f} ms: {warm_s / limit_s:.2f}"
    )
    print(
        f"{name:<14} trials/min, 2 slots    {warm:7.0f},    cold {cold:7.0f},    {warm / cold:5.1f} x; "
        f"wanted {LIMIT_PER_MIN:.0f}: {warm / LIMIT_PER_MIN:.2f}",
        flush=True,
    )


def interrupt_at_sigterm() -> None:
    """End the program as Ctrl-C does: a handler of its own would be told with each cell that is captured."""
    signal.sigwait({signal.SIGTERM})
    os.kill(os.getpid(), signal.SIGINT)


def end(home: Home) -> None:
    """Leave no process behind: the manager first, which would start warm ones, then these, then trials."""
    with manager.stopped(home):
        warm_list.end_all(home.root / "warm")
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(wire.TRIAL_VARIABLE, "").startswith(str(home.root)):
                    process.kill()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="warm-") as folder:
        home = Home(Path(folder) / "home")
        manager.ensure(home)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # the manager, which is there, does not inherit it
        threading.Thread(target=interrupt_at_sigterm, daemon=True).start()
        try:
            for name in options.cells:
                measure(home, name, options.trials)
        finally:
            end(home)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    sys.exit(main())

"""Measure the idle manager: resident memory and CPU, at once and after many finished trials.

    python benchmarks/manager_footprint.py [--trials 1000] [--tuner NAME]

Limits: 80 MB resident idle and at 1,000 finished trials; 0.5 % of a core when idle.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import psutil

from jupyter_autotrain import manager
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.space import Uniform
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Store

LIMIT_BYTES, LIMIT_CPU_PERCENT = 80e6, 0.5
IDLE_LOOK_S = 20.0


def idle_cpu_percent(process: psutil.Process) -> float:
    """CPU used by a process over some quiet seconds, in percent of a core."""
    before = process.cpu_times()
    time.sleep(IDLE_LOOK_S)
    after = process.cpu_times()
    return 100 * (after.user + after.system - before.user - before.system) / IDLE_LOOK_S


def run_trials(home: Home, store: Store, trials: int, tuner: str) -> None:
    """Run trials that report ten values each, and wait for the end."""
    bundle = home.bundle("bench")
    bundle.mkdir(parents=True)
    (bundle / "main.py").write_text("for step in range(10):\n    report(step=step, acc=step / 10)\n")
    spec = ExperimentSpec("bench", Bundle(python=sys.executable), trials=trials, concurrency=os.cpu_count() or 2)
    if tuner:
        spec = ExperimentSpec(
            "bench",
            Bundle(python=sys.executable),
            objective=Objective("acc"),
            search={"x": Uniform(0.0, 1.0)},
            tuner=tuner,
            trials=trials,
            concurrency=os.cpu_count() or 2,
        )
    store.add_experiment("bench", spec, time.time())
    manager.notify(home)
    while not store.experiment("bench").state.is_final:
        time.sleep(0.1)


def line(what: str, value: float, unit: str, limit: float) -> None:
    """Print one figure beside its limit."""
    print(f"{what:<44}{value:8.2f} {unit}   limit {limit:g} {unit}   ratio {value / limit:.2f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--tuner", default="", help="search with this tuner; default: nothing is searched")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="footprint-") as folder:
        home = Home(Path(folder) / "home")
        process = psutil.Process(manager.ensure(home).pid)
        try:
            line("resident, idle", process.memory_info().rss / 1e6, "MB", LIMIT_BYTES / 1e6)
            line("CPU, idle", idle_cpu_percent(process), "%", LIMIT_CPU_PERCENT)
            with Store.open(home) as store:
                run_trials(home, store, options.trials, options.tuner)
            line(f"resident, {options.trials} trials later", process.memory_info().rss / 1e6, "MB", LIMIT_BYTES / 1e6)
            line("CPU, idle again", idle_cpu_percent(process), "%", LIMIT_CPU_PERCENT)
        finally:
            process.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    main()

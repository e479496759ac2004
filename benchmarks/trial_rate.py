"""Measure cold trials: submit to first metric, trials per minute at 1 and 2 slots, scheduling overhead per trial.

    python benchmarks/trial_rate.py [--trials N] [--nni-python PATH]

The trial reports eleven metrics and imports nothing. With an interpreter that has NNI 3.0 (also by the variable
AUTOTRAIN_PEER_PYTHON) the same load runs there in the same run; else its figures measured on a quiet machine are used.
Limits: first metric 0.1 s, ten times NNI's rate, 20 ms of scheduling per trial. Ours counts from the call to submit
until the metric can be read from the store; NNI's from its trial's first event to its database.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from jupyter_autotrain import manager
from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.client.submitting import submit
from jupyter_autotrain.core.home import Home

CELL = "for step in range(11):\n    report(step=step, acc=0.5)\n"
COLD = {"reuse": False}  # warm_trials.py measures the others
QUIET_NNI = {1: {"first_metric_s": 0.71, "trials_per_min": 39.6}, 2: {"first_metric_s": 0.85, "trials_per_min": 61.3}}
LIMIT_FIRST_S, LIMIT_RATIO, LIMIT_OVERHEAD_MS = 0.1, 10.0, 20.0
SINGLE = 15


def first_metric_s(home: Home) -> float:
    """One submit, until its first metric can be read."""
    begun = time.perf_counter()
    experiment = submit(CELL, home=home, name="single", local=COLD)
    while not experiment.store.points(experiment.id, limit=1):
        time.sleep(0.001)
    elapsed = time.perf_counter() - begun
    experiment.wait()
    return elapsed


def batch(home: Home, trials: int, slots: int) -> tuple[Experiment, float]:
    """Many trials; gives the experiment and its trials per minute."""
    experiment = submit(CELL, home=home, name=f"batch{slots}", trials=trials, concurrency=slots, local=COLD)
    experiment.wait()
    records = experiment.trials
    assert all(trial.state is TrialState.SUCCEEDED for trial in records), records
    span = max(t.ended_s or 0.0 for t in records) - min(t.created_s for t in records)
    return experiment, 60 * len(records) / span


def overhead_ms(experiment: Experiment) -> float:
    """At one slot: from the last word of a trial's supervisor until the next trial goes to its place (median)."""
    handed = {
        m.number: m.time_s for m in experiment.store.state_changes(experiment.id) if m.state is TrialState.PREPARING
    }
    ended = {n: json.loads((experiment.directory(n) / wire.STATUS_FILE).read_text())["ended_s"] for n in handed}
    return 1e3 * statistics.median(handed[n + 1] - ended[n] for n in handed if n + 1 in handed)


def cpu_s(pid: int) -> float:
    """CPU time of a process."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def peer(python: str, slots: int, trials: int) -> dict[str, float]:
    """NNI's figures for the same load."""
    if not python:
        return QUIET_NNI[slots]
    script = Path(__file__).parent / "_nni_peer.py"
    done = subprocess.run([python, script, str(slots), str(trials)], stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--nni-python", default=os.environ.get("AUTOTRAIN_PEER_PYTHON", ""))
    options = parser.parse_args()
    theirs = {slots: peer(options.nni_python, slots, min(options.trials, 20)) for slots in (1, 2)}
    with tempfile.TemporaryDirectory(prefix="rate-") as folder:
        home = Home(Path(folder) / "home")
        pid = manager.ensure(home).pid
        try:
            first_metric_s(home)  # the manager and the page cache are warm from here on
            first = statistics.median(first_metric_s(home) for _ in range(SINGLE))
            before = cpu_s(pid)
            ours = {slots: batch(home, options.trials, slots) for slots in (1, 2)}
            cpu_ms = 1e3 * (cpu_s(pid) - before) / (2 * options.trials)
            overhead = overhead_ms(ours[1][0])
        finally:
            os.kill(pid, signal.SIGTERM)
    print(f"NNI 3.0: {'the same run' if options.nni_python else 'measured on a quiet machine'}")
    peer_first = theirs[1]["first_metric_s"]
    print(
        f"submit to first metric   {first * 1e3:7.1f} ms  {peer_first / first:5.1f} x NNI ({peer_first * 1e3:.0f} ms), "
        f"limit {LIMIT_FIRST_S * 1e3:.0f} ms: {first / LIMIT_FIRST_S:.2f}"
    )
    for slots, (_, rate) in ours.items():
        base = theirs[slots]["trials_per_min"]
        print(
            f"trials/min, {slots} slot{'s' * (slots > 1):<9}{rate:7.1f}     {rate / base:5.1f} x NNI ({base:.1f}), "
            f"wanted {LIMIT_RATIO:.0f} x"
        )
    share = overhead / LIMIT_OVERHEAD_MS
    print(f"scheduling per trial     {overhead:7.1f} ms  limit {LIMIT_OVERHEAD_MS:.0f} ms: {share:.2f}")
    print(f"manager's CPU per trial  {cpu_ms:7.1f} ms  (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)")


if __name__ == "__main__":
    sys.exit(main())

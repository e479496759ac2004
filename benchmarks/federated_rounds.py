"""Measure what a federated round costs beside training, on this machine.

    python benchmarks/federated_rounds.py [--rounds N] [--clients N]

Clients train nothing: what a round takes is orders, weights, answers and the mean. Limit: 100 ms a round.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from jupyter_autotrain import manager
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client.submitting import submit
from jupyter_autotrain.core.home import Home

CELL = """
import numpy as np
weights = {{"w": np.zeros({numbers}, np.float32)}}
for round in trial.rounds(weights):
    report(done=round.number)
"""
NUMBERS = {"1 kB": 250, "1 MB": 250_000, "20 MB": 5_000_000}
LIMIT_MS = 100.0


def rounds_ms(home: Home, numbers: int, rounds: int, clients: int, *, secure: bool) -> list[float]:
    """Return the time of each round but the first."""
    settings = {"rounds": rounds, "secure": secure}
    cell = CELL.format(numbers=numbers)
    experiment = submit(
        cell, home=home, name="rounds", mode="federated", clients=["local"] * clients, federated=settings
    )
    experiment.wait()
    assert {trial.state for trial in experiment.trials} == {TrialState.SUCCEEDED}, experiment.trials
    ended = [point.time_s for point in experiment.store.points(experiment.id) if point.name == "global_done"]
    assert len(ended) == rounds
    return [1000 * (after - before) for before, after in pairwise(ended)]


def main() -> int:
    """Print the figures; the exit status is the number of limits that were missed."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=40)
    arguments.add_argument("--clients", type=int, default=3)
    asked = arguments.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        for label, numbers in NUMBERS.items():
            for secure in (False, True)[: 1 + (asked.clients >= 3)]:  # masks need three
                rounds = asked.rounds if numbers < 1_000_000 else max(asked.rounds // 8, 3)
                took = statistics.median(rounds_ms(home, numbers, rounds, asked.clients, secure=secure))
                has_limit = numbers < 1_000_000 and not secure
                limit = f"limit {LIMIT_MS:g} ms   ratio {took / LIMIT_MS:.2f}" if has_limit else ""
                kind = "masked" if secure else "plain"
                print(
                    f"{asked.clients} clients, {label} of weights, {kind:6} {took:10.1f} ms a round   {limit}".rstrip()
                )
                missed += has_limit and took > LIMIT_MS
        status = manager.status(home)
        if status.alive:
            os.kill(status.pid, signal.SIGTERM)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return missed


if __name__ == "__main__":
    sys.exit(main())

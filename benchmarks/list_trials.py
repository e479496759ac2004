"""Measure what a look at a large experiment costs: `ls` and `show` as commands of a shell, at 5,000 trials.

    python benchmarks/list_trials.py [--trials 5000]

Limit: 0.2 s of CPU for a whole command, the start of Python included.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Ingest, Store

LIMIT_S, REPEATS = 0.2, 7
_STATES = (TrialState.PREPARING, TrialState.RUNNING, TrialState.SUCCEEDED)


def fill(home: Home, trials: int) -> None:
    """Keep one finished experiment whose trials reported forty values each."""
    objective = Objective("acc")
    with Store.open(home) as store:
        store.add_experiment("wide", ExperimentSpec("wide", Bundle(), objective=objective, trials=trials), time.time())
        for number in range(1, trials + 1):
            store.add_trial("wide", number, {"lr": random.random(), "width": number}, time.time())
            for state in _STATES:
                store.change_state("wide", number, state, time.time())
        store.ingest([_ingest(number, objective) for number in range(1, trials + 1)])
        store.close_experiment("wide", time.time())


def _ingest(number: int, objective: Objective) -> Ingest:
    points = [(name, step, time.time(), random.random()) for step in range(20) for name in ("acc", "loss")]
    return Ingest("wide", number, 1, "metrics", 1, points, objective=objective)


def command_cpu_s(home: Home, verb: str) -> float:
    """Return the least CPU time of several runs of a whole command, in seconds."""
    environ = {**os.environ, "JUPYTER_AUTOTRAIN_HOME": str(home.root)}
    argv = [sys.executable, "-c", "import sys; from jupyter_autotrain.cli import main; sys.exit(main())", verb]
    times = []
    for _ in range(REPEATS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(argv, env=environ, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=5000)
    trials = parser.parse_args().trials
    with tempfile.TemporaryDirectory(prefix="list-") as folder:
        home = Home(Path(folder) / "home")
        fill(home, trials)
        for verb in ("ls", "show"):
            spent_s = command_cpu_s(home, verb)
            print(
                f"{verb:<5} at {trials} trials: {spent_s:.2f} CPU s (limit {LIMIT_S})   ratio {spent_s / LIMIT_S:.2f}"
            )


if __name__ == "__main__":
    main()

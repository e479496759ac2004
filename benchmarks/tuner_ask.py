"""Measure how long a tuner computes to suggest one trial when it knows many, and to take them up after a restart.

python benchmarks/tuner_ask.py [--trials 5000] [--tuner tpe]
"""

from __future__ import annotations

import argparse
import random
import statistics
import time

from jupyter_autotrain import tuners
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.space import Choice, RandInt, SearchSpace, Uniform
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.core.tuner import Observation

SPACE: SearchSpace = {
    "lr": Uniform(1e-5, 1e-1, log=True),
    "decay": Uniform(1e-6, 1e-2, log=True),
    "dropout": Uniform(0, 0.6),
    "momentum": Uniform(0.5, 0.99),
    "warmup": Uniform(0, 0.3),
    "width": Choice((32, 64, 128, 256)),
    "depth": RandInt(1, 9),
    "norm": Choice(("batch", "layer", None)),
}
_ASKS = 25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=5000)
    parser.add_argument("--tuner", default="tpe")
    options = parser.parse_args()
    objective = Objective("loss", Direction.MINIMIZE)
    spec = ExperimentSpec("x", Bundle(), search=SPACE, objective=objective, tuner=options.tuner, seed=1)
    guesses = tuners.create(ExperimentSpec("x", Bundle(), search=SPACE, tuner="random", seed=2))
    rng = random.Random(1)
    tuner = tuners.create(spec)
    for number in range(1, options.trials + 1):
        tuner.tell(Observation(number, guesses.ask(number) or {}, TrialState.SUCCEEDED, rng.random()))
    begun_s = time.process_time()
    tuner.ask(options.trials + 1)
    resumed_s = time.process_time() - begun_s
    asks_s = [_ask_s(tuner, number, rng.random()) for number in range(options.trials + 1, options.trials + 1 + _ASKS)]
    print(f"{options.tuner}, {options.trials} trials, {len(SPACE)} parameters:")
    print(f"  first suggestion after a restart: {resumed_s:.2f} s")
    print(f"  a suggestion and its result: median {statistics.median(asks_s) * 1e3:.1f} ms,", end=" ")
    print(f"longest {max(asks_s) * 1e3:.1f} ms")


def _ask_s(tuner: tuners.Tuner, number: int, value: float) -> float:
    begun_s = time.process_time()
    params = tuner.ask(number)
    tuner.tell(Observation(number, params or {}, TrialState.SUCCEEDED, value))
    return time.process_time() - begun_s


if __name__ == "__main__":
    main()

"""A search that has ended, in a store: what tests of results read."""

from __future__ import annotations

import math
import random

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.space import Choice, Uniform
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Ingest, Store

ACCURACY = Objective("acc")
SPACE = {"lr": Uniform(1e-4, 1e-1, log=True), "width": Choice((16, 32)), "seed": Choice((0, 1, 2))}


def searched(home: Home, store: Store, trials: int = 24) -> Experiment:
    """Add a search over lr, width and seed, with an accuracy that lr decides, at 3 steps, and a latency by width."""
    spec = ExperimentSpec(
        "digits",
        Bundle(),
        objective=ACCURACY,
        more_objectives=(Objective("latency", Direction.MINIMIZE),),
        search=SPACE,
        trials=trials,
        header="search: {lr: 'loguniform(1e-4, 1e-1)'}  # <all>",
    )
    store.add_experiment("abc", spec, 1.0)
    draw = random.Random(0)
    for number in range(1, trials + 1):
        lr = 10 ** draw.uniform(-4, -1)
        width = (16, 32)[number % 2]
        seed = number % 3
        store.add_trial("abc", number, {"lr": lr, "width": width, "seed": seed}, 1.0)
        for time_s, state in enumerate(("PREPARING", "RUNNING", "SUCCEEDED"), 2):
            store.change_state("abc", number, TrialState(state), float(time_s))
        height = 1 - (math.log10(lr) + 2.5) ** 2 / 4 + seed / 1000
        points = [("acc", step, 3.0, height - 0.1 * (2 - step)) for step in range(3)]
        points.append(("latency", 0, 3.0, width / 16 + lr))
        store.ingest([Ingest("abc", number, 1, "metrics", 9, points, objective=ACCURACY)])
    store.close_experiment("abc", 9.0)
    return Experiment(home, store, "abc", {})

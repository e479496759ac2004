"""Imported by notebooks: experiments whose trials are moved by hand, for tests that need an exact picture."""

import math
import os
import random
import time
from pathlib import Path

from jupyter_autotrain import client
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import Bundle, CapturedName, ExperimentSpec, Resources
from jupyter_autotrain.manager.contact import ManagerIdentity
from jupyter_autotrain.store import Ingest, Store


class Place:
    """One experiment in a home of its own, with no manager."""

    def __init__(self, trials=12, name="digits", objective="val_acc", ranks=1):
        self.home = Home(Path.cwd() / "homes" / f"{name}-{time.time_ns()}")
        self.store = Store.open(self.home)
        with self.home.manager_lock.open("w") as lock:  # where another machine serves a home, no reader does
            ManagerIdentity(ProcessIdentity.of(os.getpid()), "another machine").write(lock.fileno())
        captured = (CapturedName("train_one_epoch", "source", "cell 2"), CapturedName("np", "import"))
        spec = ExperimentSpec(
            name, Bundle(captured=captured), objective=Objective(objective) if objective else None, trials=trials,
            resources=Resources(workers_per_node=ranks),
        )  # fmt: skip
        self.id = self.store.add_experiment(f"{name}-1", spec, time.time()).id
        self.cursor = 0
        self.experiment = client.Experiment(self.home, self.store, self.id, {})

    def begin(self, number, placement=None, **params):
        self.store.add_trial(self.id, number, params, time.time())
        self.store.change_state(self.id, number, TrialState.PREPARING, time.time(), placement=placement)
        self.store.change_state(self.id, number, TrialState.RUNNING, time.time())

    def report(self, number, points, every_s=0.0):
        self.cursor += 1
        now_s = time.time()
        points = [(name, step, now_s + step * every_s, value) for name, step, value in points]
        objective = Objective("val_acc")
        self.store.ingest([Ingest(self.id, number, 1, "metrics", self.cursor, points=points, objective=objective)])

    def end(self, number, state="SUCCEEDED", reason=""):
        self.store.change_state(self.id, number, TrialState(state), time.time(), reason=reason)

    def close(self):
        self.store.close_experiment(self.id, time.time())

    def log(self, number, text, stream="stdout"):
        path = self.experiment.directory(number) / stream
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def curve(self, number, steps):
        rng = random.Random(number)
        top = 0.75 + 0.2 * rng.random()
        speed = 4 + 12 * rng.random()
        points = []
        for step in steps:
            noise = rng.gauss(0, 0.006)
            accuracy = top * (1 - math.exp(-step / speed)) + noise
            loss = 2.3 * math.exp(-step / speed) + 0.1 + abs(noise)
            norm = 3 * math.exp(-step / 30) + abs(noise) * 40
            points += [("val_acc", step, accuracy), ("loss", step, loss), ("train/grad_norm", step, norm)]
        self.report(number, points, every_s=1e-4)

    def fill(self, ended, running=2):
        for number in range(1, ended + running + 1):
            rng = random.Random(number * 7)
            self.begin(number, lr=10 ** rng.uniform(-4, -1), width=rng.choice([32, 64, 128]), dropout=rng.random() / 2)
            self.log(number, "".join(f"epoch {i}: loss {2.3 / (i + 1):.4f}\n" for i in range(60)))
            failed = number == 4
            steps = 60 if number <= ended else 25
            self.curve(number, range(12 if failed else steps))
            if failed:
                self.end(number, "FAILED", "ran out of memory: 2.1 GB of 2.0 GB; lower width or batch size")
            elif number <= ended:
                self.end(number)

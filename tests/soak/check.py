"""Checks after the soak: everything acknowledged has run, point by point, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import psutil

from jupyter_autotrain.client import orphans
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.store import Store


@dataclass(frozen=True, slots=True)
class Kept:
    """One acknowledged submit."""

    seed: int
    trials: int


class Findings:
    """Faults, and how much was looked at."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.points = self.trials = 0

    def expect(self, good: object, fault: str) -> None:
        """Note a fault unless all is well."""
        if not good:
            self.faults.append(fault)


def check(home: Home, kept: Mapping[str, Kept], steps: int) -> Findings:
    """Compare everything in the store with what was acknowledged."""
    found = Findings()
    with Store.open(home) as store:
        found.expect(not store.damage(), f"the store is damaged: {store.damage()}")
        records = {record.id: record for record in store.experiments(limit=10**9)}
        for experiment_id, wanted in kept.items():
            if experiment_id in records:
                _check_experiment(found, store, records[experiment_id], wanted, steps)
            else:
                found.expect(False, f"{experiment_id} was acknowledged and is not in the store")
        orphans.remove(home, store)
        found.expect(not orphans.find(home, store), "something is left after cleaning")
        found.expect(not orphans.without_row(home, store), "the store has lost an experiment that ran")
    return found


def _check_experiment(found: Findings, store: Store, record: ExperimentRecord, wanted: Kept, steps: int) -> None:
    trials = store.trials(record.id)
    states = [f"{trial.number}: {trial.state} {trial.reason}" for trial in trials if trial.state != "SUCCEEDED"]
    found.expect(not states, f"{record.label} ({record.id}): {states}")
    numbers = [trial.number for trial in trials]
    found.expect(numbers == list(range(1, wanted.trials + 1)), f"{record.label}: trials {numbers}")
    points = store.points(record.id, limit=1 << 40)
    seen = sorted((p.number, p.attempt, p.name, p.step, p.value) for p in points)
    due = [
        (trial.number, trial.attempt, name, step, value)
        for trial in trials
        for step in range(steps)
        for name, value in (("value", wanted.seed * 1000.0 + step), ("copy", trial.params["lr"]))
    ]
    found.expect(seen == sorted(due), f"{record.label}: {len(seen)} points, {len(due)} were reported")
    found.points += len(seen)
    found.trials += len(trials)


def processes_of(home: Home) -> list[int]:
    """Every process whose command names the home."""
    pids = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if str(home.root) in " ".join(process.cmdline()[1:]):
                pids.append(process.pid)
    return pids

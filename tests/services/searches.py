"""A search from a cell whose manager is killed in the middle, at any service."""

from __future__ import annotations

from pathlib import Path

from jupyter_autotrain import manager
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import wait_until
from tests.services.notebook import Notebook, kill_manager

CELL = """%%autotrain
name: digits
backend: lab
search: {lr: [1, 2]}
trials: 2
objective: max loss
---
import pathlib, time
for step in range(3):
    report(step=step, loss=factor * lr + step)
while not pathlib.Path(way).exists():
    time.sleep(0.05)
report(step=3, loss=lr)
"""


def search_with_a_killed_manager(made: Notebook, folder: Path) -> None:
    """Run the search, kill its manager once a metric has come, and see that nothing is lost or doubled.

    Args:
        made: The notebook.
        folder: With its home; the trials see it, too.
    """
    way = folder / "way"
    made.run(f"factor = 2\nway = {str(way)!r}")
    shown = made.run(CELL)
    found = made.value("__import__('jupyter_autotrain').attach('digits')")
    assert isinstance(found, Experiment)
    wait_until(lambda: found.store.points(found.id), f"a first metric; the cell showed {shown}", within_s=180)
    kill_manager(Home(folder / "home"))
    manager.ensure(Home(folder / "home"))
    way.touch()
    wait_until(lambda: found.store.experiment(found.id).state.is_final, "the end", within_s=240)
    assert [trial.state for trial in found.trials] == [TrialState.SUCCEEDED] * 2
    seen = [(point.number, point.attempt, point.step) for point in found.store.points(found.id)]
    assert sorted(seen) == [(number, 1, step) for number in (1, 2) for step in range(4)]

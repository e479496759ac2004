"""From a cell to a real Ray head: a search, a killed manager, what is shown and what is proved."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import wait_until
from tests.labs.ray_lab import RayLab
from tests.services.notebook import Notebook, kill_manager, notebook

pytestmark = pytest.mark.long


@pytest.fixture
def on_ray(ray: RayLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    options = {"type": "ray", "address": ray.address, "python": sys.executable}
    with notebook(tmp_path, monkeypatch, options) as made:
        yield made


def experiment(made: Notebook, name: str) -> Experiment:
    found = made.value(f"__import__('jupyter_autotrain').attach({name!r})")
    assert isinstance(found, Experiment)
    return found


def test_a_search_from_a_cell_runs_as_jobs_of_ray_and_a_killed_manager_loses_nothing(
    on_ray: Notebook, ray: RayLab, tmp_path: Path
) -> None:
    way = tmp_path / "way"
    on_ray.run(f"factor = 2\nway = {str(way)!r}")
    shown = on_ray.run(
        "%%autotrain\nname: digits\nbackend: lab\nsearch: {lr: [1, 2]}\ntrials: 2\nobjective: max loss\n---\n"
        "import pathlib, time\nfor step in range(3):\n    report(step=step, loss=factor * lr + step)\n"
        "while not pathlib.Path(way).exists():\n    time.sleep(0.05)\nreport(step=3, loss=lr)\n"
    )
    found = experiment(on_ray, "digits")
    points = lambda: found.store.points(found.id)  # noqa: E731 - short
    wait_until(points, f"a first metric; the cell showed {shown}", within_s=180)
    kill_manager(Home(tmp_path / "home"))
    manager.ensure(Home(tmp_path / "home"))
    way.touch()
    wait_until(lambda: found.store.experiment(found.id).state.is_final, "the end", within_s=240)
    assert [trial.state for trial in found.trials] == [TrialState.SUCCEEDED] * 2
    seen = [(point.number, point.attempt, point.step) for point in points()]
    assert sorted(seen) == [(number, 1, step) for number in (1, 2) for step in range(4)]

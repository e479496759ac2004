"""A hundred trials at each service, on its double, while managers are killed: none lost, none twice, nothing left."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.testing import wait_until
from tests.services.notebook import kill_manager
from tests.services.on_a_double import OnADouble
from tests.services.test_aml import OnAml
from tests.services.test_dlc import OnDlc, with_sdk
from tests.services.test_dlts import OnDlts
from tests.services.test_openpai import OnOpenpai
from tests.services.test_ray import OnRay

CELL = """%%autotrain
name: many
backend: lab
search: {{lr: "uniform(0, 1)"}}
trials: {trials}
concurrency: 4
objective: max loss
---
for step in range(3):
    report(step=step, loss=lr + step)
"""
_TRIAL_S = 60.0  # at most, of each, on a busy machine


class _Soak(OnADouble):
    """A search whose manager is killed again and again."""

    def soak(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: int, kills: int) -> None:
        home = Home(tmp_path / "home")
        with self.notebook(tmp_path, monkeypatch) as made:
            made.run(CELL.format(trials=trials))
            found = made.value("__import__('jupyter_autotrain').attach('many')")
            assert isinstance(found, Experiment)
            for number in range(kills):
                self._wait_for_end_of(found, (number + 1) * trials // (kills + 1))
                kill_manager(home)
                manager.ensure(home)
            self._wait_for_end_of(found, trials)
            wait_until(lambda: found.store.experiment(found.id).state.is_final, "the end")
            self._check(found, trials)
            self.wait_for_nothing()
            made.run("%autotrain clean many --yes")
            assert not self.stored("")
        self.wait_for_ends()
        wait_until(lambda: not processes_of(tmp_path), "the end of all processes")

    def _wait_for_end_of(self, found: Experiment, many: int) -> None:
        wait_until(
            lambda: sum(trial.state.is_final for trial in found.store.trials(found.id)) >= many,
            f"the end of {many} trials", within_s=240.0 + _TRIAL_S * many,
        )  # fmt: skip

    def _check(self, found: Experiment, trials: int) -> None:
        ended = found.store.trials(found.id)
        lost = [trial for trial in ended if trial.state is not TrialState.SUCCEEDED]
        points = found.store.points(found.id, limit=1 << 20)
        seen = sorted((point.number, point.attempt, point.step) for point in points)
        doubled = len(self.double.begun) - len(set(self.double.begun))
        print(f"{self.kind}: {trials} trials, {len(lost)} lost, {len(self.double.begun)} jobs, {len(seen)} points")  # noqa: T201 - the figures of the soak
        assert not lost, [(trial.number, trial.state, trial.reason) for trial in lost]
        self.check_jobs(len(self.double.begun), trials)
        assert doubled == 0
        assert seen == [(number, 1, step) for number in range(1, trials + 1) for step in range(3)]

    def wait_for_nothing(self) -> None:
        """Wait until nothing of a trial is in the storage."""
        wait_until(lambda: not self.stored("jobs"), "an empty folder of jobs")

    def wait_for_ends(self) -> None:
        """Wait for the end of all jobs."""
        running = self.double.runner.jobs.values
        wait_until(lambda: not [job for job in running() if job.state == "RUNNING"], "all ends")

    def check_jobs(self, jobs: int, trials: int) -> None:
        """See that there were as many jobs as there had to be."""
        assert jobs == trials

    @pytest.mark.soak
    def test_a_hundred_trials_survive_killed_managers(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.soak(tmp_path, monkeypatch, 100, 6)


class _Reuse(_Soak):
    """The same in long jobs."""

    def options(self) -> JsonObject:
        return {**super().options(), "reuse": 4, "reuse_idle": 20.0}

    def check_jobs(self, jobs: int, trials: int) -> None:
        assert jobs < trials // 2

    def wait_for_nothing(self) -> None:
        """Wait for the long jobs: who deletes the experiment removes their folders, too."""
        self.wait_for_ends()
        wait_until(lambda: not self._of_trials(), "folders of long jobs alone")

    def _of_trials(self) -> list[str]:
        return [str(path) for path in self.stored("jobs") if "autotrain-pilot-" not in str(path)]


def processes_of(folder: Path) -> list[str]:
    """Return the commands of all processes that name a folder."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            command = " ".join(process.cmdline())
            if str(folder) in command:
                found.append(command)
    return found


class TestOpenpai(OnOpenpai, _Soak):
    """On the double of OpenPAI."""

    @pytest.mark.long  # by default the searches of test_openpai.py and test_reuse.py lose a manager
    def test_eight_trials_survive_killed_managers(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.soak(tmp_path, monkeypatch, 8, 2)


class TestDlts(OnDlts, _Soak):
    """On the double of DLTS."""


@with_sdk
class TestDlc(OnDlc, _Soak):
    """On the double of PAI-DLC."""


class TestAml(OnAml, _Soak):
    """On the double of Azure Machine Learning."""


class TestRay(OnRay, _Soak):
    """On the double of a Ray head."""


class TestOpenpaiReuse(_Reuse, OnOpenpai):
    """On the double of OpenPAI, in long jobs."""


class TestDltsReuse(_Reuse, OnDlts):
    """On the double of DLTS, in long jobs."""


@with_sdk
class TestDlcReuse(_Reuse, OnDlc):
    """On the double of PAI-DLC, in long jobs."""


class TestAmlReuse(_Reuse, OnAml):
    """On the double of Azure Machine Learning, in long jobs."""


class TestRayReuse(_Reuse, OnRay):
    """On the double of a Ray head, in long jobs."""

    def options(self) -> JsonObject:
        return {**super().options(), "storage": self.shared_storage}


del OnADouble

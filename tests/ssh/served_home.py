"""A home whose manager is a real process inside the lab's network."""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from pathlib import Path

from jupyter_autotrain import manager
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.manager.contact import ManagerIdentity
from jupyter_autotrain.store import Store
from jupyter_autotrain.testing import wait_until, write_bundle
from tests.labs.ssh_lab import SshLab

COUNTS = """
import os, time
step = 0
while not should_stop() and not os.path.exists({enough!r}):
    report(step=step, count=step)
    step += 1
    time.sleep(0.05)
print(step)
"""
until = wait_until


class ServedHome:
    """A home with a real manager inside the lab's network.

    Attributes:
        enough: A file that trials wait for, on all hosts.
    """

    def __init__(self, root: Path, lab: SshLab) -> None:
        self.home = Home(root)
        self.store = Store.open(self.home)
        self._lab = lab
        self.enough = f"/tmp/enough-{secrets.token_hex(8)}"

    def submit(self, hosts: tuple[str, ...], **spec: object) -> Experiment:
        """Trials that report until `end` is called."""
        bundle = write_bundle(self.home.bundle("e1"), COUNTS.format(enough=self.enough))
        choice = self.lab(hosts)
        self.store.add_experiment("e1", ExperimentSpec("exp", bundle, backends=(choice,), **spec), time.time())  # type: ignore[arg-type]  # by name
        self.begin()
        return Experiment(self.home, self.store, "e1", {})

    def lab(self, hosts: tuple[str, ...]) -> BackendChoice:
        options = {"hosts": list(hosts), "config_file": str(self._lab.config), "python": sys.executable}
        return BackendChoice(Profile("lab", "ssh", options))  # type: ignore[arg-type]  # the options are JSON

    def values(self, experiment_id: str, *backends: BackendChoice, trials: int) -> dict[int, float | None]:
        """Return what each trial of an experiment with a seed reports, once all have succeeded."""
        code = "import random\nreport(value=random.random())"
        bundle = write_bundle(self.home.bundle(experiment_id), code)
        spec = ExperimentSpec("seeded", bundle, backends=backends, trials=trials, concurrency=2, seed=7)
        self.store.add_experiment(experiment_id, spec, time.time())
        self.begin()
        until(lambda: self.store.experiment(experiment_id).state.is_final, "the end")
        assert {trial.state for trial in self.store.trials(experiment_id)} == {TrialState.SUCCEEDED}
        return {point.number: point.value for point in self.store.points(experiment_id)}

    def begin(self) -> None:
        manager.ensure(self.home)
        manager.notify(self.home)

    def kill(self) -> None:
        identity = ManagerIdentity.read(self.home.manager_lock)
        if identity is not None and identity.alive:
            os.kill(identity.pid, signal.SIGKILL)
            until(lambda: not identity.alive, "the manager's end")

    def states(self) -> list[TrialState]:
        return [trial.state for trial in self.store.trials("e1")]

    def nodes(self) -> dict[int, str]:
        return {trial.number: trial.nodes[0] for trial in self.store.trials("e1") if trial.nodes}

    def steps(self) -> dict[tuple[int, int], list[int]]:
        found: dict[tuple[int, int], list[int]] = {}
        for point in self.store.points("e1"):
            found.setdefault((point.number, point.attempt), []).append(point.step)
        return found

    def all_run(self, count: int) -> None:
        until(lambda: self.states() == [TrialState.RUNNING] * count and len(self.steps()) == count, "all trials")

    def end(self) -> None:
        """Let all trials end."""
        for host in self._lab.hosts:
            host.path(self.enough).touch()
        until(lambda: self.store.experiment("e1").state.is_final, "the end")

    def assert_whole(self, experiment: Experiment) -> None:
        """Each report of each trial is stored, once."""
        for (number, _), steps in self.steps().items():
            assert steps == list(range(int(experiment.logs(number))))

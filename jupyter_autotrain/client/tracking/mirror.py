"""The mirror of one experiment at a tracking server: what the store has is delivered in its order, by a durable cursor.

A server that is away loses nothing: the cursor moves only over what it has taken, and the store keeps the rest.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Final

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.lookup import find
from jupyter_autotrain.client.tracking.exporter import Exporter, TrackedTrial, exporter
from jupyter_autotrain.core.home import Home, make_private
from jupyter_autotrain.core.records import MetricPoint, TrialRecord
from jupyter_autotrain.errors import AutotrainError, MissingExtraError

_BATCH: Final = 1000
_MOST_FILE_BYTES: Final = 1_000_000_000


@dataclass(slots=True)
class Cursor:
    """The part of an experiment that a server has taken.

    Attributes:
        point: The id of the last point.
        runs: Of each trial the id of its run there, by the trial's number.
        ended: The trials whose end it knows, as `NUMBER.ATTEMPT`.
    """

    point: int = 0
    runs: dict[str, str] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)


class Mirror:
    """An experiment and a server that it is delivered to.

    Args:
        experiment: The experiment.
        name: The kind of server, such as mlflow.
        exporter: The server.
    """

    def __init__(self, experiment: Experiment, name: str, exporter: Exporter) -> None:
        self.experiment = experiment
        self._exporter = exporter
        self._folder = experiment.home.experiment(experiment.id) / "tracking"
        self._path = self._folder / f"{name}.json"
        self._cursor = Cursor()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Deliver in this process alone.

        Raises:
            AutotrainError: Another process delivers to this server now.
        """
        make_private(self.experiment.home)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._path.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                found = f"{self.experiment.name} is being delivered by another process."
                raise AutotrainError(found, "One process for each server.", "Nothing is to be done.") from None
            self._cursor = self._read()
            yield

    def _read(self) -> Cursor:
        try:
            found = files.read_json(self._folder, self._path.name)
        except OSError as error:
            if files.is_absent(error):
                return Cursor()
            raise
        return Cursor(**found) if isinstance(found, dict) else Cursor()

    def _save(self) -> None:
        content = {"point": self._cursor.point, "runs": self._cursor.runs, "ended": self._cursor.ended}
        wire.write_atomically(str(self._path), json.dumps(content).encode())

    @property
    def waiting(self) -> int:
        """The number of points that the server has not taken."""
        return len(self.experiment.store.points(self.experiment.id, self._cursor.point, 1 << 62))

    def deliver(self) -> bool:
        """Deliver all that the store has now; raises what the server's library raises.

        Returns:
            Whether the experiment has ended and the server has all of it.
        """
        is_over = self.experiment.state.is_final  # before the points are read, so that none comes after them
        trials = {trial.number: trial for trial in self.experiment.trials}
        while points := self.experiment.store.points(self.experiment.id, self._cursor.point, _BATCH):
            for number, of_trial in groupby(sorted(points, key=attrgetter("number")), attrgetter("number")):
                self._log(trials.get(number) or self.experiment.store.trial(self.experiment.id, number), [*of_trial])
            self._cursor.point = points[-1].id
            self._save()
        for trial in trials.values():
            if trial.state.is_final:
                self._end(trial)
        return is_over

    def _log(self, trial: TrialRecord, points: Sequence[MetricPoint]) -> None:
        self._exporter.log(self._run(trial), points)

    def _run(self, trial: TrialRecord) -> str:
        number = str(trial.number)
        if number not in self._cursor.runs:
            self._cursor.runs[number] = self._exporter.run_of(self._tracked(trial))
            self._save()
        return self._cursor.runs[number]

    def _tracked(self, trial: TrialRecord) -> TrackedTrial:
        record = self.experiment.record
        tags = {
            "autotrain.experiment": record.id,
            "autotrain.backend": trial.backend,
            "autotrain.notebook": Path(record.spec.origin.notebook).name,
        }
        name = f"{record.label}-{trial.number}"
        started_s = trial.started_s or trial.created_s
        return TrackedTrial(f"{record.id}-{trial.number}", record.name, name, trial.params, tags, started_s)

    def _end(self, trial: TrialRecord) -> None:
        key = f"{trial.number}.{trial.attempt}"
        if key in self._cursor.ended:
            return
        directory = self.experiment.directory(trial)
        found: dict[str, Path] = {}
        for output in self.experiment.outputs(trial):
            if not output.is_elsewhere and output.size_bytes <= _MOST_FILE_BYTES:
                found[output.name] = directory / output.source
        ended_s = trial.ended_s or trial.created_s
        self._exporter.end(self._run(trial), trial.state.value, ended_s, found)
        self._cursor.ended.append(key)
        self._save()


# The program that delivers while an experiment runs, and on until the server has all of it. It is started with a
# submission whose header has `track:`, as `python -m jupyter_autotrain.client.tracking.mirror HOME ID NAME`; it goes on
# where one before it has ended, and tries again while the server is away.


_POLL_S: Final = 2.0
_LONGEST_PAUSE_S: Final = 60.0
_GIVES_UP_S: Final = 86_400.0  # after the last delivery; `%autotrain track` goes on


def check(names: Sequence[str]) -> None:
    """Make sure that the libraries of these servers are installed.

    Raises:
        MissingExtraError: One is not.
    """
    for name in names:
        if find_spec(name) is None:
            raise MissingExtraError(name, name, f"track: {name}")


def start(experiment: Experiment, environ: Mapping[str, str]) -> None:
    """Start the program for each server that the experiment's header names; it outlives this process."""
    home = experiment.home.root
    for name in experiment.record.spec.track:
        folder = experiment.home.experiment(experiment.id) / "tracking"
        folder.mkdir(mode=0o700, exist_ok=True)
        with (folder / f"{name}.log").open("ab") as log:
            subprocess.run(
                [sys.executable, "-m", "jupyter_autotrain.client.tracking.mirror", str(home), experiment.id, name],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(environ), start_new_session=True,
                check=False,
            )  # fmt: skip


def follow(mirror: Mirror, pause_s: float = _POLL_S, gives_up_s: float = _GIVES_UP_S) -> bool:
    """Deliver until the experiment has ended and the server has all of it.

    Returns:
        True then; False where the server has taken nothing for so long.
    """
    taken_s = time.monotonic()
    wait_s = pause_s
    while time.monotonic() - taken_s < gives_up_s:
        try:
            if mirror.deliver():
                return True
            taken_s = time.monotonic()
            wait_s = pause_s
        except AutotrainError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the server's library raises: it is asked again
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            wait_s = min(2 * wait_s, _LONGEST_PAUSE_S)
        time.sleep(wait_s)
    return False


def main(home: str, experiment_id: str, name: str) -> None:
    """Deliver one experiment to one server, in a process that nobody waits for."""
    if os.fork():
        os._exit(0)
    mirror = Mirror(find(experiment_id, Home(Path(home)), None), name, exporter(name))
    with mirror.alone():
        follow(mirror)


if __name__ == "__main__":
    os.umask(0o077)
    main(*sys.argv[1:])

"""The files of an experiment: what its trials printed, returned and wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import logs, outputs
from jupyter_autotrain.client.orphans import folder_bytes
from jupyter_autotrain.client.outputs import Output
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import ranked
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Store

if TYPE_CHECKING:
    from jupyter_autotrain.agent.ranks.federated.weights import Weights


def trial_or_best(store: Store, record: ExperimentRecord, number: int | None) -> TrialRecord:
    """Return the trial of that number; without one the best, else the newest that has begun.

    Raises:
        AutotrainError: There is no such trial.
    """
    if number is not None:
        return store.trial(record.id, number)
    return store.best_trial(record.id, record.spec.objective) or _newest(store, record)


def trial_or_newest(store: Store, record: ExperimentRecord, number: int | None) -> TrialRecord:
    """Return the trial of that number; without one the newest that has begun.

    Raises:
        AutotrainError: There is no such trial.
    """
    return _newest(store, record) if number is None else store.trial(record.id, number)


def _newest(store: Store, record: ExperimentRecord) -> TrialRecord:
    trials = store.trials(record.id)
    if not trials:
        raise AutotrainError(
            f"{record.label} has no trial yet.",
            "A trial that has begun.",
            f"Wait a moment, or ask why: %autotrain why {record.label}",
        )
    begun = [trial for trial in trials if trial.state is not TrialState.WAITING]
    return (begun or trials)[-1]


_NAMED: Final = 8


class ExperimentFiles:
    """Reads the trial directories of one experiment.

    Attributes:
        id: The experiment's id.
        home: The home that holds it.
        store: The store that it is read from.
    """

    def __init__(self, home: Home, store: Store, experiment_id: str) -> None:
        self.id = experiment_id
        self.home = home
        self.store = store

    @property
    def record(self) -> ExperimentRecord:
        """Everything the store knows of the experiment now, except its trials."""
        return self.store.experiment(self.id)

    @property
    def name(self) -> str:
        """Its name; `name@1`, `name@2` ... where there are several of one name."""
        return self.record.label

    def logs(
        self,
        trial: int | TrialRecord | None = None,
        stream: str = "stdout",
        *,
        rank: int = 0,
        limit_bytes: int | None = logs.LIMIT_BYTES,
    ) -> str:
        """Return what a trial has printed so far; without `trial` the best, else the newest that has begun.

        Args:
            trial: The trial, or its number.
            stream: `stdout` or `stderr`; `launcher` is what torchrun or mpiexec itself has printed.
            rank: Which worker's, where the trial has several; each has a log of its own.
            limit_bytes: Of a longer stream its end, below a line that says how much was left out; None gives all.
        """
        self.check_rank(rank)
        return logs.read_text(self.directory(trial), wire.stream_of_rank(stream, rank), limit_bytes)

    def check_rank(self, rank: int) -> None:
        """Make sure that the trials have such a rank.

        Raises:
            AutotrainError: They have not.
        """
        ranks = self.record.spec.resources.ranks
        if not 0 <= rank < ranks:
            found = "one worker" if ranks == 1 else f"{ranks} workers (ranks 0 to {ranks - 1})"
            raise AutotrainError(
                f"{self.name} has no rank {rank}.", f"Its trials have {found}.", "Choose one of these."
            )

    def load(self, name: str, trial: int | TrialRecord | None = None) -> object:
        """Return an object that the cell returned (`returns:`); without `trial` that of the best, else of the newest.

        It is a pickle: loading one runs code that its writer chose, so load what your own trials returned.

        Raises:
            AutotrainError: It is not there, or cannot be rebuilt here.
        """
        record = self._trial(trial)
        directory = self.directory(record)
        self._check_here(record, directory, name)
        if not outputs.has_returned(directory, name) and (others := self._returned_by(name)):
            numbers = ", ".join(map(str, others[:_NAMED]))
            more = " ..." if len(others) > _NAMED else ""
            raise AutotrainError(
                f"Trial {record.number} ({record.state}) has not returned {name!r}.",
                f"Trials that have, best first: {numbers}{more}.",
                f"Choose one: %autotrain load {self.name} {name} --trial {others[0]}",
            )
        return outputs.unpickle(directory, name)

    def _check_here(self, trial: TrialRecord, directory: Path, name: str) -> None:
        size_bytes = outputs.sizes(directory).get(f"{wire.OUTPUTS}/{name}.pkl")
        if size_bytes is not None:
            raise AutotrainError(
                f"{name!r} of trial {trial.number} has {format_bytes(size_bytes)} and is still where the trial ran.",
                f"At a trial's end {format_bytes(self.record.spec.fetch_limit_bytes)} come here (`fetch_limit:`).",
                f"Bring it: %autotrain pull {self.name} --trial {trial.number}, then load it.",
            )

    def outputs(self, trial: int | TrialRecord | None = None, *, written_only: bool = False) -> list[Output]:
        """Get the files a trial has left: what it wrote where it ran and, unless `written_only`, returned or showed."""
        return outputs.find(self.directory(trial), self.home.bundle(self.id) / "files", written_only=written_only)

    def pull(
        self,
        directory: str | Path,
        trial: int | TrialRecord | None = None,
        *,
        overwrite: bool = False,
        written_only: bool = False,
        show: Callable[[str], object] = lambda _: None,
    ) -> list[str]:
        """Copy the `outputs` of a trial into a folder here, each to the place the cell gave it; gives their names.

        What is still where the trial ran is brought first; `show` is called with lines about its progress.

        Raises:
            AutotrainError: Without `overwrite`: other files lie there. They are too many, or cannot be written. Or they
                are of a client of a federated training.
        """
        if self.record.spec.federated is not None:
            raise AutotrainError(
                f"{self.name} is a federated training: what its clients write stays at their places.",
                "Weights and metrics alone leave a client.",
                f"`at.attach({self.name!r}).global_weights()` is the model.",
            )
        record = self._trial(trial)
        outputs.bring(self.home, self.record.spec, record, self.directory(record), show)
        found = self.outputs(record, written_only=written_only)
        return outputs.copy(self.directory(trial), Path(directory), found, overwrite=overwrite)

    def global_weights(self) -> Weights:
        """Return the newest global model of a federated training: NumPy arrays by name.

        Raises:
            AutotrainError: There is none.
        """
        from jupyter_autotrain.agent.ranks.federated import flower, weights  # noqa: PLC0415 - NumPy is slow to import

        by_flower = self.home.trial(self.id, 1, self.store.trial(self.id, 1).attempt) / flower.GLOBAL_FILE
        if by_flower.exists():
            return weights.load(str(by_flower), weights.digest(str(by_flower)))
        files = self.home.federated(self.id).glob("global-*.npz")
        rounds = [int(file.stem.partition("-")[2]) for file in files]
        if not rounds:
            raise AutotrainError(
                f"{self.name} has no global model.",
                "A header with `mode: federated`, and a first round that has begun.",
                "Wait for its first round, or name another experiment.",
            )
        newest = str(self.home.federated(self.id) / f"global-{max(rounds)}.npz")
        return weights.load(newest, weights.digest(newest))

    def directory(self, trial: int | TrialRecord | None = None) -> Path:
        """Return the directory of a trial's newest attempt.

        Without `trial` of the best, else of the newest that has begun.

        Raises:
            AutotrainError: There is no such trial.
        """
        record = self._trial(trial)
        return self.home.trial(self.id, record.number, record.attempt)

    def size_bytes(self) -> int:
        """Return the bytes of its files in the home."""
        return folder_bytes(self.home.experiment(self.id))

    def elsewhere_bytes(self) -> int:
        """Return the bytes of files that its trials have left on other machines, and that were not pulled."""
        directories = list(map(self.directory, self.store.trials(self.id)))
        return sum(sum(outputs.sizes(directory).values()) for directory in directories)

    def _trial(self, trial: int | TrialRecord | None) -> TrialRecord:
        number = trial.number if isinstance(trial, TrialRecord) else trial
        return trial_or_best(self.store, self.record, number)

    def _returned_by(self, name: str) -> list[int]:
        trials = ranked(self.record.spec.objective, self.store.trials(self.id))
        return [trial.number for trial in trials if outputs.has_returned(self.directory(trial), name)]

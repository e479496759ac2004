"""The live handle of one experiment. It keeps nothing itself: every answer is read from the store."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from jupyter_autotrain import manager
from jupyter_autotrain.client import files, logs, manager_client, outputs
from jupyter_autotrain.client.drafts import discard
from jupyter_autotrain.client.outputs import Output
from jupyter_autotrain.client.receipt import Receipt
from jupyter_autotrain.client.waiting import wait_until
from jupyter_autotrain.core import display, ranking
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.core.noted import warned
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord, Trials
from jupyter_autotrain.core.states import ExperimentState, TrialState
from jupyter_autotrain.core.wording import number
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Columns, Store
from jupyter_autotrain.terminal import printable

_ALL = 1 << 62


class Experiment(display.Displayable):
    """One experiment, running or ended.

    Attributes:
        id: Its id, unique for ever.
        home: The home it lies in.
        store: The store it is read from.
    """

    def __init__(self, home: Home, store: Store, experiment_id: str, variables: Mapping[str, str]) -> None:
        self.id = experiment_id
        self.home = home
        self.store = store
        # Where secrets are looked up again when the manager had to be started anew; their values are not kept.
        self._variables = variables

    @property
    def record(self) -> ExperimentRecord:
        """Everything the store knows of the experiment now, except its trials."""
        return self.store.experiment(self.id)

    @property
    def name(self) -> str:
        """Its name; `name@1`, `name@2` ... where there are several of one name."""
        return self.record.label

    @property
    def state(self) -> ExperimentState:
        """Where it stands now."""
        return self.record.state

    @property
    def trials(self) -> Trials:
        """Its trials so far, by number; a record has `number`, `state`, `params`, `value`, `reason` ..."""
        return Trials(self.store.trials(self.id))

    @property
    def best(self) -> TrialRecord | None:
        """The trial with the best objective so far, whatever its state; None without an objective or any value."""
        return self.store.best_trial(self.id, self.record.spec.objective)

    def metrics(self, names: Collection[str] | None = None) -> list[dict[str, str | int | float | None]]:
        """All reported values, one row each, in order of arrival: `pandas.DataFrame(experiment.metrics())`.

        Args:
            names: The metrics wanted; None means all.

        Returns:
            Rows with the keys number (of the trial), attempt, name, step, time_s (since the epoch) and value (None for
            NaN).
        """
        columns = ("number", "attempt", "name", "step", "time_s", "value")
        points = self.store.points(self.id, limit=_ALL, names=names)
        return [{column: getattr(point, column) for column in columns} for point in points]

    def series(self, name: str) -> dict[int, Columns]:
        """One metric as columns (steps, values) by trial number: the fast way to long curves."""
        return self.store.series(self.id, name)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; an interrupt ends the waiting only.

        Args:
            timeout_s: The longest wait; None waits for ever.

        Returns:
            True when it has ended, False when the time was over first.
        """
        return wait_until(self.store, lambda: self.state.is_final, timeout_s=timeout_s, nudge=self.ensure_manager)

    def stop(self, trials: Collection[int] | None = None, *, grace_s: float = 5.0, timeout_s: float = 60.0) -> Receipt:
        """End its trials with their whole process trees, and wait until they are gone.

        Args:
            trials: The numbers of the trials to end, while the experiment goes on with others; None ends all of it.
            grace_s: How long a trial may take to end itself before it is ended by force.
            timeout_s: The longest wait for the answer.

        Raises:
            StoreError: There is no trial of such a number.
            ManagerError: The manager did not answer in time; the request stays.
        """
        chosen = None if trials is None else [self.store.trial(self.id, number) for number in sorted(trials)]
        name = self.name if chosen is None else f"{self.name}, {_named([trial.number for trial in chosen])}"
        if self.state.is_final or (chosen is not None and all(trial.state.is_final for trial in chosen)):
            return Receipt(name=name, note="it had ended before")
        args: dict[str, JsonValue] = {"grace_s": grace_s}
        if chosen is not None:
            args["trials"] = [trial.number for trial in chosen]
        return Receipt.of(name, self._ask("stop", args, timeout_s), self.warnings(most=3))

    def retry(self, timeout_s: float = 30.0) -> list[int]:
        """Run its failed, cancelled, preempted and lost trials again, each as a new attempt; gives their numbers.

        Raises:
            ManagerError: The manager did not answer in time; the request stays.
        """
        trials = self._ask("retry", {}, timeout_s).get("trials")
        return [number for number in trials if isinstance(number, int)] if isinstance(trials, list) else []

    def why(self) -> list[str]:
        """One sentence per trial that waits or has failed."""
        return [printable(sentence) for sentence in manager.why(self.store, self.home, self.record)]

    def warnings(self, most: int = 10) -> list[str]:
        """What its trials warned of, such as reports that were refused: one sentence for each distinct text."""
        return [printable(text) for text in warned(self.store.notes(self.id), most)]

    def logs(
        self,
        trial: int | TrialRecord | None = None,
        stream: str = "stdout",
        *,
        limit_bytes: int | None = logs.LIMIT_BYTES,
    ) -> str:
        """What a trial has printed so far; without `trial` the best, else the newest that has begun.

        Args:
            trial: The trial, or its number.
            stream: `stdout` or `stderr`.
            limit_bytes: Of a longer stream its end, below a line that says how much was left out; None gives all.
        """
        return logs.read_text(self.directory(trial), stream, limit_bytes)

    def load(self, name: str, trial: int | TrialRecord | None = None) -> object:
        """An object that the cell returned (`returns:`); without `trial` that of the best, else of the newest.

        It is a pickle: loading one runs code that its writer chose, so load what your own trials returned.

        Raises:
            AutotrainError: It is not there, or cannot be rebuilt here.
        """
        record = self._trial(trial)
        directory = self.directory(record)
        if not files.has_returned(directory, name) and (others := self._returned_by(name)):
            raise AutotrainError(
                f"Trial {record.number} ({record.state}) has not returned {name!r}.",
                f"Trials that have, best first: {', '.join(map(str, others[:8]))}{' ...' if len(others) > 8 else ''}.",
                f"Choose one: %autotrain load {self.name} {name} --trial {others[0]}",
            )
        return files.unpickle(directory, name)

    def outputs(self, trial: int | TrialRecord | None = None, *, written_only: bool = False) -> list[Output]:
        """The files a trial has left: what it wrote where it ran and, unless `written_only`, returned or showed."""
        return outputs.find(self.directory(trial), self.home.bundle(self.id) / "files", written_only=written_only)

    def pull(
        self,
        directory: str | Path,
        trial: int | TrialRecord | None = None,
        *,
        overwrite: bool = False,
        written_only: bool = False,
    ) -> list[str]:
        """Copy the `outputs` of a trial into a folder here, each to the place the cell gave it; gives their names.

        Raises:
            AutotrainError: Without `overwrite`: other files lie there. They are too many, or cannot be written.
        """
        found = self.outputs(trial, written_only=written_only)
        return outputs.copy(self.directory(trial), Path(directory), found, overwrite=overwrite)

    def directory(self, trial: int | TrialRecord | None = None) -> Path:
        """The directory of a trial's newest attempt; without `trial` of the best, else of the newest that has begun.

        Raises:
            AutotrainError: There is no such trial.
        """
        record = self._trial(trial)
        return self.home.trial(self.id, record.number, record.attempt)

    def show(self) -> object:
        """Show it live in this cell, in a terminal as the run card's text; gives the handle of the view, if any."""
        return display.show(self)

    def ensure_manager(self) -> None:
        """Make sure that a manager serves it and knows its secrets, as far as they are set here.

        Raises:
            ManagerError: It cannot be started, or cannot be told.
        """
        spec = self.record.spec
        values = {name: self._variables[name] for name in spec.secrets if name in self._variables}
        manager_client.ensure_manager(self.home, self.id, values)

    def size_bytes(self) -> int:
        """The bytes of its files in the home."""
        return files.size_bytes(self.home.experiment(self.id))

    def delete(self) -> None:
        """Delete it with all its files.

        Raises:
            AutotrainError: It has not ended.
        """
        if not self.state.is_final:
            raise AutotrainError(
                f"{self.name} is {self.state}.", "Only an experiment that has ended can be deleted.", "Stop it first."
            )
        discard(self.home, self.id)
        self.store.delete_experiment(self.id)
        shutil.rmtree(self.home.drafts / self.id, ignore_errors=True)

    def _trial(self, trial: int | TrialRecord | None) -> TrialRecord:
        if trial is None:
            return self._chosen()
        return self.store.trial(self.id, trial.number if isinstance(trial, TrialRecord) else trial)

    def _returned_by(self, name: str) -> list[int]:
        trials = ranking.ranked(self.record.spec.objective, self.trials)
        return [trial.number for trial in trials if files.has_returned(self.directory(trial), name)]

    def _chosen(self) -> TrialRecord:
        trials = self.trials
        begun = [trial for trial in trials if trial.state is not TrialState.WAITING] or trials
        if not begun:
            raise AutotrainError(
                f"{self.name} has no trial yet.", "A trial that has begun.", "Wait a moment, or ask '%autotrain why'."
            )
        return self.best or begun[-1]

    def _ask(self, kind: str, args: JsonObject, timeout_s: float) -> JsonObject:
        self.ensure_manager()
        return manager_client.ask(self.store, self.home, (kind, self.id, args), timeout_s)

    def __repr__(self) -> str:
        record = self.record
        best = self.best
        objective = record.spec.objective
        ended = sum(count for state, count in record.counts.items() if state.is_final)
        text = f"<Experiment {printable(self.name)} {record.state}: {ended} of {record.spec.trials} trials ended"
        if objective is not None and best is not None:
            text += f", best {objective.label} {number(best.value)} (trial {best.number}, {best.state})"
        return f"{text}>"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """The run card, for a caller that keeps what it gets."""
        return display.mime_bundle(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Experiment) and (self.home, self.id) == (other.home, other.id)

    def __hash__(self) -> int:
        return hash((self.home, self.id))


def _named(numbers: Sequence[int]) -> str:
    return f"trial{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"

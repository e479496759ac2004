"""The live handle of one experiment. It holds no state: every answer is read from the store."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

from jupyter_autotrain import manager
from jupyter_autotrain.backends import trial_files
from jupyter_autotrain.client import manager_client, place_leftovers, stop_leftovers
from jupyter_autotrain.client.drafts import discard
from jupyter_autotrain.client.experiment_files import ExperimentFiles
from jupyter_autotrain.client.manager_guard import ManagerGuard
from jupyter_autotrain.client.patience import Patience
from jupyter_autotrain.client.stop_receipt import StopReceipt
from jupyter_autotrain.client.waiting import wait_until
from jupyter_autotrain.core import display
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.json import JsonObject, JsonValue, from_json
from jupyter_autotrain.core.records import ExperimentRecord, MetricPoint, TrialRecord, Trials
from jupyter_autotrain.core.states import ExperimentState
from jupyter_autotrain.core.text_format import number, trial_numbers
from jupyter_autotrain.core.trial_warnings import summarize_warnings
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Columns, Store
from jupyter_autotrain.terminal import printable

_ANSWERED_IN: Final = 0.8  # of the time that a client waits for the answer to a stop
_ALL: Final = 1 << 62
_METRIC_COLUMNS: Final = ("number", "attempt", "name", "step", "time_s", "value")


class Experiment(ExperimentFiles, display.Displayable):
    """One experiment, running or ended. Reading it brings its manager back where that was killed.

    Attributes:
        id: Its unique id.
        home: The home that holds it.
        store: The store that it is read from.
    """

    def __init__(self, home: Home, store: Store, experiment_id: str, variables: Mapping[str, str]) -> None:
        super().__init__(home, store, experiment_id)
        # Where secrets are looked up again after a restart of the manager; their values are not kept.
        self._variables = variables
        self._guard = ManagerGuard(home, lambda: not self.state.is_final, self.ensure_manager)

    @property
    def record(self) -> ExperimentRecord:
        """Everything the store knows of the experiment now, except its trials."""
        self._guard.look()
        return super().record

    @property
    def state(self) -> ExperimentState:
        """Its present state."""
        return self.record.state

    @property
    def trials(self) -> Trials:
        """Its trials so far, by number; a record has `number`, `state`, `params`, `value`, `reason` ..."""
        self._guard.look()
        return Trials(self.store.trials(self.id))

    @property
    def best(self) -> TrialRecord | None:
        """The trial with the best objective so far, whatever its state; None without an objective or any value."""
        return self.store.best_trial(self.id, self.record.spec.objective)

    def metrics(self, names: Collection[str] | None = None) -> list[dict[str, str | int | float | None]]:
        """All reported values, one row each, in order of arrival: `pandas.DataFrame(experiment.metrics())`.

        A trial that was resumed has rows of each attempt; `series` joins them to one curve.

        Args:
            names: The metrics wanted; None means all.

        Returns:
            Rows with the keys number (of the trial), attempt, name, step, time_s (since the epoch) and value (None for
            NaN).
        """
        self._guard.look()
        points = self.store.points(self.id, limit=_ALL, names=names)
        return [_row(point) for point in points]

    def series(self, name: str) -> dict[int, Columns]:
        """Return one metric as columns (steps, values) by trial number: the fast way to long curves.

        The attempts of a trial are one curve: a later attempt replaces it from its first step on.
        """
        self._guard.look()
        return self.store.series(self.id, name)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; an interrupt ends only the waiting.

        Args:
            timeout_s: The longest wait; None waits without limit.

        Returns:
            True when it has ended, False at the end of the time.
        """
        return wait_until(self.store, lambda: self.state.is_final, timeout_s=timeout_s, nudge=self.ensure_manager)

    def stop(
        self, trials: Collection[int] | None = None, *, grace_s: float = 5.0, timeout_s: float = 60.0
    ) -> StopReceipt:
        """End its trials with their whole process trees, and wait until they are gone.

        Args:
            trials: The numbers of the trials to end, while the experiment continues with others; None ends all of it.
            grace_s: How long a trial may take to end itself before it is ended by force.
            timeout_s: The longest wait; what has not ended by then is named, and ended later.

        Raises:
            StoreError: There is no trial of such a number.
            ManagerError: The manager did not answer in time; the request stays.
        """
        chosen = None if trials is None else [self.store.trial(self.id, number) for number in sorted(trials)]
        name = self.name if chosen is None else f"{self.name}, {trial_numbers([trial.number for trial in chosen])}"
        if self.state.is_final or (chosen is not None and all(trial.state.is_final for trial in chosen)):
            return StopReceipt(name=name, note="it had ended before")
        args: dict[str, JsonValue] = {"grace_s": grace_s, "within_s": timeout_s * _ANSWERED_IN}
        if chosen is not None:
            args["trials"] = [trial.number for trial in chosen]
        result = self._ask("stop", args, timeout_s)
        ended = [self.store.trial(self.id, number) for number in from_json(tuple[int, ...], result.get("trials", []))]
        left_there = stop_leftovers.sentences(self.name, ended, self.directory)
        return StopReceipt.of(name, result, self.warnings(most=3), left_there)

    def retry(self, timeout_s: float = 30.0) -> list[int]:
        """Run its failed, cancelled, preempted and lost trials again, each as a new attempt; gives their numbers.

        Raises:
            ManagerError: The manager did not answer in time; the request stays.
        """
        trials = self._ask("retry", {}, timeout_s).get("trials")
        return [number for number in trials if isinstance(number, int)] if isinstance(trials, list) else []

    def request(self, kind: str, args: JsonObject) -> int:
        """Keep a request for the manager without waiting for its answer; gives its id, for `store.request`.

        Args:
            kind: stop, retry, concurrency or clean.
            args: Its arguments, such as `trials`.

        Raises:
            ManagerError: It is kept, and no manager can be started to answer it.
        """
        secrets = self._secret_values()  # first: a manager may have deleted it when `post` returns
        request_id = manager_client.post(self.store, self.home, (kind, self.id, args))
        manager_client.ensure_manager(self.home, self.id, secrets)
        return request_id

    def why(self) -> list[str]:
        """One sentence per trial that waits or has failed."""
        return [printable(sentence) for sentence in manager.explain(self.store, self.home, self.record)]

    def warnings(self, most: int = 10) -> list[str]:
        """What its trials warned of, such as refused reports: one sentence for each distinct text."""
        return [printable(text) for text in summarize_warnings(self.store.notes(self.id), most)]

    def manager_fault(self) -> str:
        """Return why its manager does nothing now, "" where it works; one that is missing is started."""
        self._guard.look()
        return manager.stopped_by_signal(self.home)

    def show(self) -> object:
        """Show it live in this cell, in a terminal as the run card's text; gives the handle of the view, if any."""
        return display.show(self)

    def ensure_manager(self) -> None:
        """Make sure that a manager serves it and knows its secrets, as far as they are set here.

        Raises:
            ManagerError: It cannot be started, or does not take the secrets.
        """
        manager_client.ensure_manager(self.home, self.id, self._secret_values())

    def delete(self) -> None:
        """Delete it with all its files, those on other machines too.

        What a machine that does not answer now still has, `clean` removes later.

        Raises:
            AutotrainError: It has not ended.
        """
        if not self.state.is_final:
            raise AutotrainError(
                f"{self.name} is {self.state}.", "Only an experiment that has ended can be deleted.", "Stop it first."
            )
        places = trial_files.places_of(self.store, self.id)
        discard(self.home, self.id)
        self.store.delete_experiment(self.id)
        shutil.rmtree(self.home.drafts / self.id, ignore_errors=True)
        Patience().ask([partial(place_leftovers.remove_trials, self.home, places, self.id)])

    def _secret_values(self) -> dict[str, str]:
        spec = self.record.spec
        names = (*spec.secrets, *(name for hook in spec.hooks for name in hook.variables))
        return {name: self._variables[name] for name in names if name in self._variables}

    def _ask(self, kind: str, args: JsonObject, timeout_s: float) -> JsonObject:
        self.ensure_manager()
        return manager_client.ask(self.store, self.home, (kind, self.id, args), timeout_s)

    def __repr__(self) -> str:
        record = self.record
        best = self.best
        objective = record.spec.objective
        ended = sum(count for state, count in record.counts.items() if state.is_final)
        remark = f" ({printable(record.remark)})" if record.remark else ""
        text = (
            f"<Experiment {printable(self.name)} {record.state}{remark}: {ended} of {record.spec.trials} trials ended"
        )
        if objective is not None and best is not None:
            text += f", best {objective.label} {number(best.value)} (trial {best.number}, {best.state})"
        return f"{text}>"

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, object]:
        """The run card, for a caller that keeps what it gets."""
        return display.mime_bundle(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Experiment) and (self.home, self.id) == (other.home, other.id)

    def __hash__(self) -> int:
        return hash((self.home, self.id))


def _row(point: MetricPoint) -> dict[str, str | int | float | None]:
    return {column: getattr(point, column) for column in _METRIC_COLUMNS}

"""The live handle of one experiment. It holds no state: every answer is read from the store."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

from jupyter_autotrain import manager
from jupyter_autotrain.agent.json import JsonValue, from_json
from jupyter_autotrain.agent.states import ExperimentState
from jupyter_autotrain.agent.terminal import printable
from jupyter_autotrain.backends import trial_content
from jupyter_autotrain.client import leftovers
from jupyter_autotrain.client.experiment_changes import ExperimentChanges, StopReceipt
from jupyter_autotrain.client.manager_client import ManagerGuard
from jupyter_autotrain.client.orphans import discard
from jupyter_autotrain.client.results.experiment_results import ExperimentResults
from jupyter_autotrain.client.waiting import Patience, wait_until
from jupyter_autotrain.core import table
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.notes import summarize_warnings
from jupyter_autotrain.core.records import ExperimentRecord, MetricPoint, TrialRecord, Trials
from jupyter_autotrain.core.text_format import number, trial_numbers
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Columns, Store

_ANSWERED_IN: Final = 0.8  # of the time that a client waits for the answer to a stop
_ALL: Final = 1 << 62
_METRIC_COLUMNS: Final = ("number", "attempt", "name", "step", "time_s", "value")


class Experiment(ExperimentChanges, ExperimentResults, table.Displayable):
    """One experiment, running or ended. Reading it brings its manager back where that was killed.

    Attributes:
        id: Its unique id.
        home: The home that holds it.
        store: The store that it is read from.
    """

    def __init__(self, home: Home, store: Store, experiment_id: str, variables: Mapping[str, str]) -> None:
        super().__init__(home, store, experiment_id, variables)
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
        return list(map(_row, points))

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
        args: dict[str, JsonValue] = {"grace_s": grace_s, "within_s": timeout_s * _ANSWERED_IN}
        name = self.name
        if trials is not None:
            args["trials"] = sorted(trials)
            name = f"{name}, {trial_numbers(sorted(trials))}"
        if self._has_ended(trials):
            return StopReceipt(name=name, note="it had ended before")
        result = self._ask("stop", args, timeout_s)
        ended = [self.store.trial(self.id, number) for number in from_json(tuple[int, ...], result.get("trials", []))]
        left_there = leftovers.sentences(self.name, ended, self.directory)
        return StopReceipt.of(name, result, self.warnings(most=3), left_there)

    def _has_ended(self, trials: Collection[int] | None) -> bool:
        """Tell whether it has ended, or these of its trials.

        Raises:
            StoreError: There is no trial of such a number.
        """
        if trials is None:
            return self.state.is_final
        states = [self.store.trial(self.id, number).state for number in sorted(trials)]
        return self.state.is_final or all(state.is_final for state in states)

    def why(self) -> list[str]:
        """One sentence per trial that waits or has failed."""
        return [*map(printable, manager.explain(self.store, self.home, self.record))]

    def warnings(self, most: int = 10) -> list[str]:
        """Return what its trials warned of, such as refused reports: one sentence for each distinct text."""
        return [*map(printable, summarize_warnings(self.store.notes(self.id), most))]

    def manager_fault(self) -> str:
        """Return why its manager does nothing now, "" where it works; one that is missing is started."""
        self._guard.look()
        return manager.stopped_by_signal(self.home)

    def show(self) -> object:
        """Show it live in this cell, in a terminal as the run card's text; gives the handle of the view, if any."""
        return table.show(self)

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
        places = trial_content.places_of(self.store, self.id)
        discard(self.home, self.id)
        self.store.delete_experiment(self.id)
        shutil.rmtree(self.home.drafts / self.id, ignore_errors=True)
        Patience().ask([partial(leftovers.remove_trials, self.home, places, self.id)])

    def __repr__(self) -> str:
        record = self.record
        best = self.best
        objective = record.spec.objective
        remark = f" ({printable(record.remark)})" if record.remark else ""
        ended = f"{record.ended} of {record.spec.trials} trials ended"
        text = f"<Experiment {printable(self.name)} {record.state}{remark}: {ended}"
        if objective is not None and best is not None:
            text += f", best {objective.label} {number(best.value)} (trial {best.number}, {best.state})"
        return f"{text}>"

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, object]:
        """Return the run card, for a caller that keeps what it gets."""
        return table.mime_bundle(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Experiment) and (self.home, self.id) == (other.home, other.id)

    def __hash__(self) -> int:
        return hash((self.home, self.id))


def _row(point: MetricPoint) -> dict[str, str | int | float | None]:
    return {column: getattr(point, column) for column in _METRIC_COLUMNS}

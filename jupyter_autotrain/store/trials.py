"""Trials and the changes of their states; only legal ones, each kept with its time and reason."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

from jupyter_autotrain.agent.json import JsonValue, from_json
from jupyter_autotrain.agent.states import ACTIVE_STATES, TrialState
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.hooks import Delivery
from jupyter_autotrain.core.objective import Objective, best_of
from jupyter_autotrain.core.records import StateChange, TrialRecord
from jupyter_autotrain.core.spec import ExperimentSpec, Placement, TrialSource
from jupyter_autotrain.store.experiments import set_spec
from jupyter_autotrain.store.mixin import StoreMixin, check_types, key_of, plain, undamaged
from jupyter_autotrain.store.requests import add_deliveries
from jupyter_autotrain.store.row_files import keep_experiment, keep_trial, sync_trial
from jupyter_autotrain.store.trial_rows import (
    COLUMNS,
    check_legal,
    columns_of_place,
    columns_of_state,
    insert_state_change,
    insert_trial,
    trial_of,
    trial_of_row,
    update_trial,
)

Clone: TypeAlias = tuple[Mapping[str, JsonValue], TrialSource]
"""The parameters of a new trial, and the trial that it goes on from."""

_CHANGE_COLUMNS: Final = "id, number, attempt, state, time_s, reason, placement"


class StateChangeTable(StoreMixin):
    """State changes of trials; `TrialTable` adds them."""

    def state_changes(self, experiment_id: str) -> list[StateChange]:
        """Return the log of state changes of an experiment's trials, oldest first."""
        query = f"SELECT {_CHANGE_COLUMNS} FROM moves WHERE experiment = ? ORDER BY id"  # noqa: S608 - own text
        with self._database.read() as connection:
            rows = connection.execute(query, (key_of(connection, experiment_id),)).fetchall()
        return [_state_change(experiment_id, row) for row in rows]

    def last_state_change_id(self, experiment_id: str) -> int:
        """Return the id of the newest state change of an experiment's trials; 0 where there is none."""
        query = "SELECT coalesce(max(id), 0) FROM moves WHERE experiment = ?"
        with self._database.read() as connection:
            return int(connection.execute(query, (key_of(connection, experiment_id),)).fetchone()[0])


def _state_change(experiment_id: str, row: tuple[Any, ...]) -> StateChange:
    change_id, number, attempt, state, time_s, reason, text = row
    with undamaged(f"state change {change_id} of trial {number} of experiment {experiment_id}"):
        check_types((reason, str), (number, int), (attempt, int), (time_s, float | int))
        placement = None if text is None else from_json(Placement, json.loads(text))
        return StateChange(change_id, experiment_id, number, attempt, TrialState(state), time_s, reason, placement)


_PAGE = f"SELECT {COLUMNS} FROM trials WHERE experiment = ? ORDER BY number LIMIT ? OFFSET ?"  # noqa: S608 - own text
_EXTREMES = """
SELECT number, value FROM trials WHERE experiment = :key AND value IN (
  (SELECT min(value) FROM trials WHERE experiment = :key), (SELECT max(value) FROM trials WHERE experiment = :key)
)
"""
_FIRST = f"SELECT {COLUMNS} FROM trials WHERE experiment = ? AND state = ? ORDER BY number LIMIT 1"  # noqa: S608 - as above
_SINCE = f"""
SELECT {COLUMNS} FROM trials WHERE experiment = :key AND (
  state IN ({", ".join(f"'{state}'" for state in sorted(ACTIVE_STATES))})
  OR number IN (SELECT number FROM moves WHERE experiment = :key AND id > :change)
) ORDER BY number
"""  # noqa: S608 - own text


class _TrialValue(NamedTuple):
    number: int
    value: float


class TrialTable(StoreMixin):
    """Trials of experiments."""

    def add_trial(
        self,
        experiment_id: str,
        number: int,
        params: Mapping[str, JsonValue],
        now_s: float,
        source: TrialSource | None = None,
    ) -> TrialRecord:
        """Add a WAITING trial.

        Args:
            experiment_id: The experiment.
            number: The trial's number.
            params: Its parameters.
            now_s: The time, seconds since the epoch.
            source: The trial that it goes on from.

        Raises:
            StoreError: The trial exists, or the store cannot be written.
        """
        with self._database.write() as connection:
            key = key_of(connection, experiment_id)
            insert_trial(connection, key, (number, params, now_s), source)
            keep_trial(connection, self._home, experiment_id, key, number)
            return trial_of(connection, experiment_id, key, number)

    def add_clones(
        self, experiment_id: str, spec: ExperimentSpec, clones: Sequence[Clone], now_s: float
    ) -> list[TrialRecord]:
        """Add WAITING trials that go on from others, all or none; the experiment is to have so many trials more.

        Args:
            experiment_id: The experiment.
            spec: Its spec.
            clones: Parameters and sources, in the order of the new numbers.
            now_s: The time, seconds since the epoch.
        """
        with self._database.write(durable=True) as connection:
            key = key_of(connection, experiment_id)
            query = "SELECT coalesce(max(number), 0) FROM trials WHERE experiment = ?"
            (last,) = connection.execute(query, (key,)).fetchone()
            set_spec(connection, key, replace(spec, trials=spec.trials + len(clones)))
            keep_experiment(connection, self._home, key)
            numbers = range(last + 1, last + 1 + len(clones))
            for number, (params, source) in zip(numbers, clones, strict=True):
                insert_trial(connection, key, (number, params, now_s), source)
                keep_trial(connection, self._home, experiment_id, key, number)
            return [trial_of(connection, experiment_id, key, number) for number in numbers]

    def change_state(  # noqa: PLR0913 - one keyword per thing that may change together with the state
        self,
        experiment_id: str,
        number: int,
        state: TrialState,
        now_s: float,
        *,
        reason: str = "",
        attempt: int | None = None,
        ref: JobRef | None = None,
        placement: Placement | None = None,
        at_s: float | None = None,
        deliveries: Sequence[Delivery] = (),
    ) -> TrialRecord:
        """Change a trial's state; from a final state to WAITING a new attempt begins, which has no times yet.

        Its value is that of its curve so far. A trial that waits again is nowhere.

        Args:
            experiment_id: The experiment.
            number: The trial.
            state: Where it goes.
            now_s: The time, seconds since the epoch.
            reason: Why, in plain words.
            attempt: The attempt; None keeps it, or counts it up where a new one begins.
            ref: The place's name for the job; None keeps it.
            placement: Where it runs; None keeps it. Of a trial that waits: where it was refused.
            at_s: When it began to run or ended, where that was before `now_s`.
            deliveries: What hooks are told of it, kept in the same transaction.

        Raises:
            StoreError: The change is not legal (it names both states), or there is no such trial.
        """
        with self._database.write() as connection:
            key, reason = key_of(connection, experiment_id), plain(reason)
            trial = trial_of(connection, experiment_id, key, number)
            check_legal(trial, state)
            begins = trial.state.is_final
            attempt = attempt if attempt is not None else trial.attempt + begins
            where = None if state is TrialState.WAITING else placement
            columns = {"state": state, "reason": reason, "attempt": attempt}
            columns.update(columns_of_state(state, at_s or now_s, begins=begins), **columns_of_place(ref, where))
            update_trial(connection, key, number, columns)
            insert_state_change(connection, key, (number, attempt, state, at_s or now_s, reason), placement)
            add_deliveries(connection, key, deliveries, now_s)
            keep_trial(connection, self._home, experiment_id, key, number)
            return trial_of(connection, experiment_id, key, number)

    def sync_trial(self, experiment_id: str, number: int) -> None:
        """Have a power cut not lose what is known of a trial, before it is started."""
        sync_trial(self._home, experiment_id, number)

    def annotate(
        self,
        experiment_id: str,
        number: int,
        *,
        ref: JobRef | None = None,
        placement: Placement | None = None,
    ) -> None:
        """Note something about a trial that stays in its state; None keeps what is there."""
        with self._database.write() as connection:
            key = key_of(connection, experiment_id)
            update_trial(connection, key, number, columns_of_place(ref, placement))
            keep_trial(connection, self._home, experiment_id, key, number)

    def trials(self, experiment_id: str, *, offset: int = 0, limit: int | None = None) -> list[TrialRecord]:
        """Return the trials of an experiment, by number, without the first `offset`; with `limit` at most so many."""
        with self._database.read() as connection:
            key = key_of(connection, experiment_id)
            asked = (key, -1 if limit is None else limit, offset)
            rows = connection.execute(_PAGE, asked)
            return [trial_of_row(experiment_id, row) for row in rows]

    def trials_since(self, experiment_id: str, change_id: int) -> list[TrialRecord]:
        """Get the trials that can have changed since that state change, by number: they have a newer one, or go on."""
        with self._database.read() as connection:
            rows = connection.execute(_SINCE, {"key": key_of(connection, experiment_id), "change": change_id})
            return [trial_of_row(experiment_id, row) for row in rows]

    def best_trial(self, experiment_id: str, objective: Objective | None) -> TrialRecord | None:
        """Return `core.objective.best_of` all its trials, without reading them all: it is at an extreme value."""
        if objective is None:
            return None
        with self._database.read() as connection:
            key = key_of(connection, experiment_id)
            values = map(_TrialValue._make, connection.execute(_EXTREMES, {"key": key}))
            with undamaged(f"a value of experiment {experiment_id}"):
                best = best_of(objective, values)
            return None if best is None else trial_of(connection, experiment_id, key, best.number)

    def first_trial(self, experiment_id: str, state: TrialState) -> TrialRecord | None:
        """Return the trial with the lowest number that is in a state."""
        with self._database.read() as connection:
            row = connection.execute(_FIRST, (key_of(connection, experiment_id), state)).fetchone()
            return None if row is None else trial_of_row(experiment_id, row)

    def trial(self, experiment_id: str, number: int) -> TrialRecord:
        """One trial.

        Raises:
            StoreError: There is no such trial.
        """
        with self._database.read() as connection:
            return trial_of(connection, experiment_id, key_of(connection, experiment_id), number)

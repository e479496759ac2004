"""What a list of experiments shows of each, without reading its trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.store.curves import TimedColumns, curves
from jupyter_autotrain.store.experiment_records import records
from jupyter_autotrain.store.listed import ListedExperiment, listed
from jupyter_autotrain.store.mixin import StoreMixin, check_types, key_of, undamaged

_REPORTED: Final = "SELECT id FROM experiments WHERE EXISTS (SELECT 1 FROM series WHERE experiment = key AND name = ?)"
_VALUES: Final = """
SELECT number, value FROM trials WHERE experiment = (SELECT key FROM experiments WHERE id = ?) AND value IS NOT NULL
ORDER BY number
"""
_TIMES: Final = "SELECT state, started_s, ended_s FROM trials WHERE experiment = ? ORDER BY number"
_RANGES: Final = """
SELECT id, min(value), max(value) FROM trials JOIN experiments ON key = experiment WHERE value IS NOT NULL
GROUP BY experiment
"""


class TrialValue(NamedTuple):
    """The objective's value of one trial; it can be ranked."""

    number: int
    value: float


class TrialTimes(NamedTuple):
    """The state of one trial, and when it began and ended: seconds since the epoch, None where it has not."""

    state: TrialState
    started_s: float | None
    ended_s: float | None


class ListingTables(StoreMixin):
    """Experiments as lists have them, values and times of trials, and curves with their times."""

    def listed(self) -> list[ListedExperiment]:
        """All experiments, the newest first; costs microseconds each."""
        with self._database.read() as connection:
            return listed(connection)

    def records_of(self, experiment_ids: Iterable[str]) -> list[ExperimentRecord]:
        """The experiments with these ids, in this order; those that are gone are left out."""
        with self._database.read() as connection:
            return [record for each in experiment_ids for record in records(connection, "WHERE id = ?", (each,))]

    def reported(self, metric: str) -> set[str]:
        """The ids of the experiments of which a trial has reported this metric."""
        with self._database.read() as connection:
            return {row[0] for row in connection.execute(_REPORTED, (metric,))}

    def trial_values(self, experiment_ids: Iterable[str]) -> dict[str, list[TrialValue]]:
        """The objective's value of each trial that has one, by experiment, by number; none of one that was deleted."""
        found: dict[str, list[TrialValue]] = {}
        with self._database.read() as connection:
            for experiment_id in experiment_ids:
                rows = connection.execute(_VALUES, (experiment_id,)).fetchall()
                with undamaged(f"a value of experiment {experiment_id}"):
                    found[experiment_id] = [TrialValue(int(number), float(value)) for number, value in rows]
        return found

    def trial_times(self, experiment_id: str) -> list[TrialTimes]:
        """The state and the times of each trial, by number."""
        with self._database.read() as connection:
            rows = connection.execute(_TIMES, (key_of(connection, experiment_id),)).fetchall()
        with undamaged(f"a time of experiment {experiment_id}"):
            check_types(*((time_s, float | int | None) for row in rows for time_s in row[1:]))
            return [TrialTimes(TrialState(state), started_s, ended_s) for state, started_s, ended_s in rows]

    def value_ranges(self) -> dict[str, tuple[float, float]]:
        """The least and the greatest value of each experiment that has one, by id; one query for all of them."""
        with self._database.read() as connection:
            rows = connection.execute(_RANGES).fetchall()
        found: dict[str, tuple[float, float]] = {}
        for experiment_id, least, greatest in rows:
            with undamaged(f"a value of experiment {experiment_id}"):
                found[str(experiment_id)] = (float(least), float(greatest))
        return found

    def trials_with(self, experiment_id: str, name: str) -> list[int]:
        """The numbers of the trials that have reported a metric, in order."""
        query = "SELECT DISTINCT number FROM series WHERE experiment = ? AND name = ? ORDER BY number"
        with self._database.read() as connection:
            rows = connection.execute(query, (key_of(connection, experiment_id), name)).fetchall()
        return [int(number) for (number,) in rows]

    def timed_series(self, experiment_id: str, name: str, trials: Sequence[int]) -> dict[int, list[TimedColumns]]:
        """Return one metric as pieces of columns, by trial number, attempts joined as `curves` says."""
        found: dict[int, list[TimedColumns]] = {}
        with self._database.read() as connection:
            key = key_of(connection, experiment_id)
            for number in trials:
                found.update(curves(connection, key, name, number))
        return found

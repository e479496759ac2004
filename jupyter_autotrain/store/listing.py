"""Facts that a list of experiments shows, finds and orders by, without reading trials or decoding specs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from jupyter_autotrain.agent.states import ExperimentState, TrialState, experiment_state
from jupyter_autotrain.core.objective import Direction
from jupyter_autotrain.core.records import ExperimentRecord, experiment_label
from jupyter_autotrain.store.experiment_records import NEWER, records
from jupyter_autotrain.store.metrics import TimedColumns, curves
from jupyter_autotrain.store.mixin import StoreMixin, check_types, key_of, undamaged

_EXPERIMENTS: Final = f"""
SELECT key, id, name, version, {NEWER}, created_s, closed, closed_s, stop_requested, retried_s, notebook,
  CASE WHEN json_valid(spec) THEN json_extract(spec, '$.objective', '$.trials', '$.backends') END
FROM experiments AS e ORDER BY key DESC
"""  # noqa: S608 - own text
_TALLIES: Final = "SELECT experiment, state, count(*), max(ended_s) FROM trials GROUP BY experiment, state"

_Tally: TypeAlias = list[tuple[str, int, float | None]]
"""Of each state that trials of an experiment are in: the state, how many are in it, and when the last of them ended."""


@dataclass(frozen=True, slots=True)
class ListedExperiment:
    """One experiment of a list. Times are seconds since the epoch.

    Attributes:
        label: What people call it.
        begun_s: When its present round began: its submission, or the last retry after its end.
        trials: How many it wants, or has where that is more.
        metric: Its objective's; "" where it has none.
        places: The names of the backends that it may use.
    """

    id: str
    label: str
    state: ExperimentState
    created_s: float
    begun_s: float
    ended_s: float | None
    notebook: str
    trials: int
    metric: str
    direction: Direction
    places: tuple[str, ...]


def listed(connection: sqlite3.Connection) -> list[ListedExperiment]:
    """Return all experiments, the newest first.

    Raises:
        DamagedRowError: One is not what was written.
    """
    rows = connection.execute(_EXPERIMENTS).fetchall()
    tallies: dict[int, _Tally] = {}
    for key, state, many, ended_s in connection.execute(_TALLIES):
        tallies.setdefault(key, []).append((state, many, ended_s))
    return [_checked(row, tallies.get(row[0], [])) for row in rows]


def _checked(row: tuple[object, ...], tally: _Tally) -> ListedExperiment:
    with undamaged(f"experiment {row[1]}"):
        return _listed(row, tally)


def _listed(row: tuple[object, ...], tally: _Tally) -> ListedExperiment:
    _, experiment_id, name, version, superseded, created_s, closed, closed_s, stop_requested = row[:9]
    retried_s, notebook, spec = row[9:]
    objective, trials, backends = json.loads(str(spec))
    state, reached, last_end_s = _summed(tally, closed=bool(closed), stop_requested=bool(stop_requested))
    if isinstance(closed_s, float):
        last_end_s = closed_s if last_end_s is None else max(last_end_s, closed_s)
    return ListedExperiment(
        id=str(experiment_id),
        label=experiment_label(str(name), int(str(version)), superseded=bool(superseded)),
        state=state,
        created_s=float(str(created_s)),
        begun_s=retried_s if isinstance(retried_s, float) else float(str(created_s)),
        ended_s=last_end_s if state.is_final else None,
        notebook=str(notebook),
        trials=max(int(trials), reached),
        metric=str(objective["metric"]) if objective else "",
        direction=Direction(objective["direction"]) if objective else Direction.MAXIMIZE,
        places=tuple(str(choice["profile"]["name"]) for choice in backends),
    )


def _summed(tally: _Tally, *, closed: bool, stop_requested: bool) -> tuple[ExperimentState, int, float | None]:
    """Return the state of an experiment, the number of its trials, and when the last of them ended."""
    states: list[TrialState] = []
    trials = 0
    last_end_s: float | None = None
    for state, many, end_s in tally:
        states.append(TrialState(state))
        trials += many
        if end_s is not None:
            last_end_s = end_s if last_end_s is None else max(last_end_s, end_s)
    return experiment_state(states, closed=closed, stop_requested=stop_requested), trials, last_end_s


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
        """Return the experiments with these ids, in this order; those that are gone are left out."""
        with self._database.read() as connection:
            return [record for each in experiment_ids for record in records(connection, "WHERE id = ?", (each,))]

    def reported(self, metric: str) -> set[str]:
        """Return the ids of the experiments of which a trial has reported this metric."""
        with self._database.read() as connection:
            return {row[0] for row in connection.execute(_REPORTED, (metric,))}

    def trial_values(self, experiment_ids: Iterable[str]) -> dict[str, list[TrialValue]]:
        """Return the objective's value of each trial that has one, by experiment, by number.

        None of one that was deleted.
        """
        found: dict[str, list[TrialValue]] = {}
        with self._database.read() as connection:
            for experiment_id in experiment_ids:
                rows = connection.execute(_VALUES, (experiment_id,)).fetchall()
                with undamaged(f"a value of experiment {experiment_id}"):
                    found[experiment_id] = [TrialValue(int(number), float(value)) for number, value in rows]
        return found

    def trial_times(self, experiment_id: str) -> list[TrialTimes]:
        """Return the state and the times of each trial, by number."""
        with self._database.read() as connection:
            rows = connection.execute(_TIMES, (key_of(connection, experiment_id),)).fetchall()
        with undamaged(f"a time of experiment {experiment_id}"):
            check_types(*((time_s, float | int | None) for row in rows for time_s in row[1:]))
            return [TrialTimes(TrialState(state), started_s, ended_s) for state, started_s, ended_s in rows]

    def value_ranges(self) -> dict[str, tuple[float, float]]:
        """Return the least and the greatest value of each experiment that has one, by id; one query for all of them."""
        with self._database.read() as connection:
            rows = connection.execute(_RANGES).fetchall()
        found: dict[str, tuple[float, float]] = {}
        for experiment_id, least, greatest in rows:
            with undamaged(f"a value of experiment {experiment_id}"):
                found[str(experiment_id)] = (float(least), float(greatest))
        return found

    def trials_with(self, experiment_id: str, name: str) -> list[int]:
        """Return the numbers of the trials that have reported a metric, in order."""
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

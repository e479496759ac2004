"""What a list finds and orders experiments by, read without decoding their specs."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Final, TypeAlias

from jupyter_autotrain.core.objective import Direction
from jupyter_autotrain.core.records import experiment_label
from jupyter_autotrain.core.states import ExperimentState, TrialState, experiment_state
from jupyter_autotrain.store.experiment_records import NEWER
from jupyter_autotrain.store.mixin import undamaged

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
    states = [TrialState(state) for state, _, _ in tally]
    state = experiment_state(states, closed=bool(closed), stop_requested=bool(stop_requested))
    ends = [end_s for _, _, end_s in tally if end_s is not None]
    ends += [closed_s] if isinstance(closed_s, float) else []
    return ListedExperiment(
        id=str(experiment_id),
        label=experiment_label(str(name), int(str(version)), superseded=bool(superseded)),
        state=state,
        created_s=float(str(created_s)),
        begun_s=retried_s if isinstance(retried_s, float) else float(str(created_s)),
        ended_s=max(ends, default=None) if state.is_final else None,
        notebook=str(notebook),
        trials=max(int(trials), sum(many for _, many, _ in tally)),
        metric=str(objective["metric"]) if objective else "",
        direction=Direction(objective["direction"]) if objective else Direction.MAXIMIZE,
        places=tuple(str(choice["profile"]["name"]) for choice in backends),
    )

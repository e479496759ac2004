"""The log of state changes: each with its time and reason, under an id that only grows."""

from __future__ import annotations

import json
from typing import Any, Final

from jupyter_autotrain.core.json import from_json
from jupyter_autotrain.core.records import StateChange
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.store.mixin import StoreMixin, check_types, key_of, undamaged

_COLUMNS: Final = "id, number, attempt, state, time_s, reason, placement"


class StateChangeTable(StoreMixin):
    """State changes of trials; `TrialTable` adds them."""

    def state_changes(self, experiment_id: str, after_id: int = 0) -> list[StateChange]:
        """The log of state changes of an experiment's trials, oldest first, with ids above `after_id`."""
        query = f"SELECT {_COLUMNS} FROM moves WHERE experiment = ? AND id > ? ORDER BY id"  # noqa: S608 - own text
        with self._database.read() as connection:
            rows = connection.execute(query, (key_of(connection, experiment_id), after_id)).fetchall()
        return [_state_change(experiment_id, row) for row in rows]

    def last_state_change_id(self, experiment_id: str) -> int:
        """The id of the newest state change of an experiment's trials; 0 where there is none."""
        query = "SELECT coalesce(max(id), 0) FROM moves WHERE experiment = ?"
        with self._database.read() as connection:
            return int(connection.execute(query, (key_of(connection, experiment_id),)).fetchone()[0])


def _state_change(experiment_id: str, row: tuple[Any, ...]) -> StateChange:
    change_id, number, attempt, state, time_s, reason, text = row
    with undamaged(f"state change {change_id} of trial {number} of experiment {experiment_id}"):
        check_types((reason, str), (number, int), (attempt, int), (time_s, float | int))
        placement = None if text is None else from_json(Placement, json.loads(text))
        return StateChange(change_id, experiment_id, number, attempt, TrialState(state), time_s, reason, placement)

"""What hooks have to be told: kept with the change that it is about, until it is delivered or given up."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Final, Literal

from jupyter_autotrain.core.hooks import Delivery
from jupyter_autotrain.core.json import to_json
from jupyter_autotrain.core.trial_warnings import WHOLE_EXPERIMENT
from jupyter_autotrain.store.mixin import StoreMixin, key_of, plain, undamaged

_ADD: Final = "INSERT INTO hook_deliveries (id, experiment, hook, payload, created_s) VALUES (?, ?, ?, ?, ?)"
_PENDING: Final = (
    "SELECT d.id, e.id, d.hook, d.payload, d.tries FROM hook_deliveries AS d "
    "JOIN experiments AS e ON e.key = d.experiment WHERE d.state = 'pending' ORDER BY d.created_s, d.rowid LIMIT ?"
)
_TRIED: Final = "UPDATE hook_deliveries SET tries = tries + 1, state = ?, error = ? WHERE id = ?"
_NOTE: Final = (
    "INSERT INTO notes (experiment, number, attempt, time_s, level, text) "
    "SELECT experiment, ?, 0, ?, 'warning', ? FROM hook_deliveries WHERE id = ?"
)

DeliveryState = Literal["pending", "delivered", "given up"]


class HookDeliveryTable(StoreMixin):
    """Messages to hooks."""

    def pending_deliveries(self, limit: int = 100) -> list[Delivery]:
        """What is not delivered yet, oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(_PENDING, (limit,)).fetchall()
        found = []
        for delivery_id, experiment_id, hook, payload, tries in rows:
            with undamaged(f"a message to the hook {hook} of experiment {experiment_id}"):
                found.append(Delivery(delivery_id, experiment_id, hook, json.loads(payload), int(tries)))
        return found

    def note_try(self, delivery_id: str, state: DeliveryState, now_s: float, error: str = "") -> None:
        """Keep how a try has ended; one that is given up becomes a warning of the experiment."""
        with self._database.write() as connection:
            connection.execute(_TRIED, (state, plain(error), delivery_id))
            if state == "given up":
                connection.execute(_NOTE, (WHOLE_EXPERIMENT, now_s, plain(error), delivery_id))

    def delivery_states(self, experiment_id: str) -> list[tuple[str, str, int]]:
        """The hook, the state and the number of tries of each message of an experiment, in order."""
        query = "SELECT hook, state, tries FROM hook_deliveries WHERE experiment = ? ORDER BY rowid"
        with self._database.read() as connection:
            return list(connection.execute(query, (key_of(connection, experiment_id),)))


def add_deliveries(connection: sqlite3.Connection, key: int, deliveries: Sequence[Delivery], now_s: float) -> None:
    """Keep messages in the transaction of the change that they are about."""
    for one in deliveries:
        connection.execute(_ADD, (one.id, key, one.hook, plain(json.dumps(to_json(one.payload))), now_s))

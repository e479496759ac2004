"""Debts of the manager: answers to requests, deliveries of hooks, and the lease by which one manager writes.

The lease of the one manager: only its last holder may write; earlier holders are fenced off. A lock in the file
system can be deleted or copied away; the lease lies in the store itself, and each write of a manager checks it in its
own transaction (a fencing token: a number that only grows).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, Final, Literal

from jupyter_autotrain.agent.json import JsonObject, to_json
from jupyter_autotrain.core.hooks import Delivery
from jupyter_autotrain.core.notes import WHOLE_EXPERIMENT
from jupyter_autotrain.core.records import Request
from jupyter_autotrain.errors import StoreError
from jupyter_autotrain.store.mixin import StoreMixin, plain, undamaged

_COLUMNS = "id, kind, experiment_id, args, created_s, done, result"


class RequestTable(StoreMixin):
    """Requests and their answers."""

    def add_request(self, kind: str, experiment_id: str, args: JsonObject, now_s: float) -> int:
        """Store a request durably; gives its id."""
        query = "INSERT INTO requests (kind, experiment_id, args, created_s) VALUES (?, ?, ?, ?)"
        with self._database.write(durable=True) as connection:
            cursor = connection.execute(query, (kind, experiment_id, json.dumps(to_json(args)), now_s))
            return int(cursor.lastrowid or 0)

    def pending_requests(self) -> list[Request]:
        """Return the unanswered requests, oldest first."""
        query = f"SELECT {_COLUMNS} FROM requests WHERE done = 0 ORDER BY id"  # noqa: S608 - own text
        with self._database.read() as connection:
            return list(map(_record, connection.execute(query)))

    def finish_request(self, request_id: int, result: JsonObject) -> None:
        """Answer a request; the first answer stays."""
        query = "UPDATE requests SET done = 1, result = ? WHERE id = ? AND done = 0"
        with self._database.write() as connection:
            connection.execute(query, (json.dumps(to_json(result)), request_id))

    def request(self, request_id: int) -> Request:
        """One request, answered or not.

        Raises:
            StoreError: There is none with that id.
        """
        query = f"SELECT {_COLUMNS} FROM requests WHERE id = ?"  # noqa: S608 - own text
        with self._database.read() as connection:
            row = connection.execute(query, (request_id,)).fetchone()
        if row is None:
            raise StoreError(f"There is no request {request_id}.", "The id of a request kept before was expected.")
        return _record(row)


def _record(row: tuple[Any, ...]) -> Request:
    request_id, kind, experiment_id, args, created_s, done, result = row
    return Request(request_id, kind, experiment_id, json.loads(args), created_s, bool(done), json.loads(result))


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
        """Return what is not delivered yet, oldest first."""
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


def add_deliveries(connection: sqlite3.Connection, key: int, deliveries: Sequence[Delivery], now_s: float) -> None:
    """Keep messages in the transaction of the change that they are about."""
    for one in deliveries:
        connection.execute(_ADD, (one.id, key, one.hook, plain(json.dumps(to_json(one.payload))), now_s))


_TAKE = (
    "INSERT INTO lease (id, generation, owner) VALUES (1, 1, ?) "
    "ON CONFLICT (id) DO UPDATE SET generation = generation + 1, owner = excluded.owner RETURNING generation"
)


class LeaseTable(StoreMixin):
    """Who may write as the manager."""

    def take_lease(self, owner: str) -> int:
        """Take the lease from its present holder; from now on this handle writes under it.

        Args:
            owner: Who takes it, for people.

        Returns:
            The generation: one more than that of the owner before.
        """
        self._database.generation = None
        with self._database.write(durable=True) as connection:
            generation = int(connection.execute(_TAKE, (owner,)).fetchall()[0][0])
        self._database.generation = generation
        return generation

    def confirm_lease(self) -> None:
        """Check that this handle still has the lease.

        Raises:
            LeaseLostError: Another manager has taken it.
        """
        with self._database.write():
            pass

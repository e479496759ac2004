"""Requests of clients to the manager, kept until they are answered."""

from __future__ import annotations

import json
from typing import Any

from jupyter_autotrain.core.json import JsonObject, to_json
from jupyter_autotrain.core.records import Request
from jupyter_autotrain.errors import StoreError
from jupyter_autotrain.store.mixin import StoreMixin

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
        """The unanswered requests, oldest first."""
        query = f"SELECT {_COLUMNS} FROM requests WHERE done = 0 ORDER BY id"  # noqa: S608 - own text
        with self._database.read() as connection:
            return [_record(row) for row in connection.execute(query)]

    def finish_request(self, request_id: int, result: JsonObject) -> None:
        """Answer a request; the first answer stays."""
        query = "UPDATE requests SET done = 1, result = ? WHERE id = ? AND done = 0"
        with self._database.write() as connection:
            connection.execute(query, (json.dumps(to_json(result)), request_id))

    def last_granted(self, kind: str, experiment_id: str) -> Request | None:
        """The newest request of a kind that was answered without an error: it holds until another one is."""
        query = (
            f"SELECT {_COLUMNS} FROM requests WHERE kind = ? AND experiment_id = ? AND done = 1 "  # noqa: S608 - own text
            "AND json_extract(result, '$.error') IS NULL ORDER BY id DESC LIMIT 1"
        )
        with self._database.read() as connection:
            row = connection.execute(query, (kind, experiment_id)).fetchone()
        return None if row is None else _record(row)

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

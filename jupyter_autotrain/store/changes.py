"""What has changed in a home, for views that follow it: triggers of the schema keep the rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from dataclasses import dataclass

from jupyter_autotrain.store.mixin import StoreMixin


@dataclass(frozen=True, slots=True)
class Change:
    """The newest change of a kind in an experiment: `state`, `metrics` or `notes`; one that was deleted has `state`.

    `id` only grows: whoever has seen all changes up to an id misses none and sees none twice.
    """

    id: int
    experiment_id: str
    kind: str


class ChangeTable(StoreMixin):
    """The newest changes, one per experiment and kind, whoever made them."""

    def changes(self, after_id: int = 0, limit: int = 1000) -> list[Change]:
        """The changes whose id is above `after_id`, oldest first, at most `limit`."""
        query = "SELECT id, experiment_id, kind FROM changes WHERE id > ? ORDER BY id LIMIT ?"
        with self._database.read() as connection:
            return [Change(*row) for row in connection.execute(query, (after_id, limit))]

    def last_change_id(self) -> int:
        """The id of the newest change; 0 where there is none."""
        with self._database.read() as connection:
            return int(connection.execute("SELECT coalesce(max(id), 0) FROM changes").fetchone()[0])


def note_changes(connection: sqlite3.Connection, experiment_ids: Collection[str], kind: str) -> None:
    """Give the changes of a kind new ids, inside the transaction that makes them."""
    rows = [(experiment_id, kind) for experiment_id in sorted(experiment_ids)]
    connection.executemany("DELETE FROM changes WHERE experiment_id = ? AND kind = ?", rows)
    connection.executemany("INSERT INTO changes (experiment_id, kind) VALUES (?, ?)", rows)

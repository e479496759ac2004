"""The migration that keeps what changed last, for views that follow a home, and what people write at an experiment.

One row per experiment and kind, under an id that only grows. Triggers keep them, so that no writer can forget to. Only
what trials report is noted by its one writer (`ingest`), once for all rows of a transaction: that is the hot path.
"""

from __future__ import annotations

from typing import Final

_TABLES: Final = """
CREATE TABLE changes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  experiment_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  UNIQUE (experiment_id, kind)
);
CREATE TABLE annotations (
  experiment INTEGER PRIMARY KEY REFERENCES experiments (key) ON DELETE CASCADE,
  tags TEXT NOT NULL DEFAULT '[]',
  note TEXT NOT NULL DEFAULT ''
)"""
_DELETED: Final = """
CREATE TRIGGER experiment_deleted AFTER DELETE ON experiments BEGIN
  DELETE FROM changes WHERE experiment_id = old.id;
  INSERT INTO changes (experiment_id, kind) VALUES (old.id, 'state');
END"""
_PRESENT: Final = "INSERT INTO changes (experiment_id, kind) SELECT id, 'state' FROM experiments ORDER BY key"
_OWNER: Final = "(SELECT id FROM experiments WHERE key = new.experiment)"


def _trigger(name: str, event: str, kind: str, experiment_id: str = _OWNER) -> str:
    """A trigger that gives the experiment's change of a kind a new id. It is no `REPLACE`: statements override that."""
    return f"""
CREATE TRIGGER {name} AFTER {event} BEGIN
  DELETE FROM changes WHERE experiment_id = {experiment_id} AND kind = '{kind}';
  INSERT INTO changes (experiment_id, kind) VALUES ({experiment_id}, '{kind}');
END"""  # noqa: S608 - own names


CHANGES: Final = ";".join(
    [
        _TABLES,
        _DELETED,
        _trigger("experiment_added", "INSERT ON experiments", "state", "new.id"),
        _trigger("experiment_changed", "UPDATE ON experiments", "state", "new.id"),
        _trigger("trial_added", "INSERT ON trials", "state"),
        _trigger("trial_changed", "UPDATE OF state, attempt, placement, backend, reason ON trials", "state"),
        _trigger("annotation_added", "INSERT ON annotations", "state"),
        _PRESENT,
    ]
)

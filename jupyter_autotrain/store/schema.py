"""The tables, as a list of forward migrations, which `store.migration` applies.

The migration that keeps what changed last, for views that follow a home, and what people write at an experiment. One
row per experiment and kind, under an id that only grows. Triggers keep them, so that no writer can forget to. Only
what trials report is noted by its one writer (`ingest`), once for all rows of a transaction: that is the hot path.

Ids grow with arrival and give the order of everything; times are for people only, so a clock that jumps
backwards changes no order.

Metric points lie in chunks: one row per series and ingest, holding the columns step, time and value as
arrays of 8-byte numbers one after another. A chunk's points own the ids `first_id` ... `last_id`.
`source_offset` is the byte of the stream from which on they were read: no byte becomes a point twice.
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
    """Return a trigger that gives the experiment's change of a kind a new id.

    It is no `REPLACE`: statements override that.
    """
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


_FIRST: Final = """
CREATE TABLE names (
  name TEXT PRIMARY KEY,
  version INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE experiments (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  spec TEXT NOT NULL,
  created_s REAL NOT NULL,
  closed INTEGER NOT NULL DEFAULT 0,
  closed_s REAL,
  reason TEXT NOT NULL DEFAULT '',
  stop_requested INTEGER NOT NULL DEFAULT 0,
  UNIQUE (name, version)
);
CREATE TABLE trials (
  experiment INTEGER NOT NULL REFERENCES experiments (key) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  state TEXT NOT NULL,
  params TEXT NOT NULL,
  reason TEXT NOT NULL DEFAULT '',
  attempt INTEGER NOT NULL DEFAULT 1,
  value REAL,
  created_s REAL NOT NULL,
  started_s REAL,
  ended_s REAL,
  ref TEXT,
  gpus TEXT NOT NULL DEFAULT '[]',
  PRIMARY KEY (experiment, number)
) WITHOUT ROWID;
CREATE INDEX trials_by_state ON trials (experiment, state);
CREATE TABLE moves (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  experiment INTEGER NOT NULL REFERENCES experiments (key) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  state TEXT NOT NULL,
  time_s REAL NOT NULL,
  reason TEXT NOT NULL
);
CREATE INDEX moves_by_experiment ON moves (experiment, id);
CREATE TABLE cursors (
  experiment INTEGER NOT NULL REFERENCES experiments (key) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  stream TEXT NOT NULL,
  offset INTEGER NOT NULL,
  PRIMARY KEY (experiment, number, attempt, stream)
) WITHOUT ROWID;
CREATE TABLE series (
  id INTEGER PRIMARY KEY,
  experiment INTEGER NOT NULL REFERENCES experiments (key) ON DELETE CASCADE,
  name TEXT NOT NULL,
  number INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  UNIQUE (experiment, name, number, attempt)
);
CREATE TABLE chunks (
  first_id INTEGER PRIMARY KEY,
  last_id INTEGER NOT NULL,
  experiment INTEGER NOT NULL REFERENCES experiments (key) ON DELETE CASCADE,
  series INTEGER NOT NULL REFERENCES series (id) ON DELETE CASCADE,
  columns BLOB NOT NULL
);
CREATE INDEX chunks_by_experiment ON chunks (experiment, last_id);
CREATE INDEX chunks_by_series ON chunks (series);
CREATE TABLE notes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  experiment INTEGER NOT NULL REFERENCES experiments (key) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  time_s REAL NOT NULL,
  level TEXT NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX notes_by_experiment ON notes (experiment, id);
CREATE TABLE requests (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  experiment_id TEXT NOT NULL,
  args TEXT NOT NULL,
  created_s REAL NOT NULL,
  done INTEGER NOT NULL DEFAULT 0,
  result TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX requests_pending ON requests (id) WHERE done = 0;
CREATE INDEX requests_by_experiment ON requests (experiment_id, kind, id);
"""

# One writer at a time; each byte of a stream ingested once; durations from a monotonic clock.
_LEASE: Final = """
CREATE TABLE lease (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  generation INTEGER NOT NULL,
  owner TEXT NOT NULL
);
ALTER TABLE chunks ADD COLUMN source_offset INTEGER;
CREATE UNIQUE INDEX chunks_by_source ON chunks (series, source_offset);
ALTER TABLE experiments ADD COLUMN boot TEXT;
ALTER TABLE experiments ADD COLUMN boot_s REAL;
"""

_NOTE_COUNTS: Final = """
ALTER TABLE notes ADD COLUMN count INTEGER NOT NULL DEFAULT 1;
"""

# How many values a mean is made of.
_VALUE_COUNT: Final = """
ALTER TABLE trials ADD COLUMN value_count INTEGER NOT NULL DEFAULT 0
"""

# Which notebook an experiment is of, without reading its spec.
_ORIGINS: Final = """
ALTER TABLE experiments ADD COLUMN notebook TEXT NOT NULL DEFAULT '';
ALTER TABLE experiments ADD COLUMN session TEXT NOT NULL DEFAULT '';
CREATE INDEX experiments_by_notebook ON experiments (notebook);
CREATE INDEX experiments_by_session ON experiments (session)
"""
# When an ended experiment was last begun again.
_RETRIES: Final = """
ALTER TABLE experiments ADD COLUMN retried_s REAL
"""

# What the manager has decided and not carried out yet, and what blocks each trial.
_DECISIONS: Final = """
CREATE TABLE end_decisions (
  experiment INTEGER NOT NULL REFERENCES experiments (key) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (experiment, number, attempt)
) WITHOUT ROWID;
CREATE TABLE experiment_decisions (
  experiment INTEGER NOT NULL REFERENCES experiments (key) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (experiment, kind)
) WITHOUT ROWID;
CREATE TABLE block_reasons (
  experiment INTEGER NOT NULL REFERENCES experiments (key) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  reason TEXT NOT NULL,
  PRIMARY KEY (experiment, number)
) WITHOUT ROWID
"""

# The node of each device that a trial holds.
_PLACEMENTS: Final = """
ALTER TABLE trials RENAME COLUMN gpus TO placement;
UPDATE trials SET placement = json_array(json_object('node', '', 'accelerators', json(placement)))
  WHERE placement != '[]' AND json_valid(placement)
"""

# An experiment may use several backends; each trial has the one it was put on.
_BACKENDS: Final = """
ALTER TABLE trials ADD COLUMN backend TEXT NOT NULL DEFAULT '';
UPDATE trials SET backend = (
  SELECT coalesce(json_extract(spec, '$.backend'), 'local') FROM experiments WHERE experiments.key = trials.experiment
) WHERE state NOT IN ('CREATED', 'WAITING')
  AND (SELECT json_valid(spec) FROM experiments WHERE experiments.key = trials.experiment);
UPDATE experiments SET spec = json_set(
  json_remove(spec, '$.backend', '$.backend_options'),
  '$.backends', json_array(json_object(
    'profile', json_object(
      'name', coalesce(json_extract(spec, '$.backend'), 'local'),
      'type', coalesce(json_extract(spec, '$.backend'), 'local'),
      'options', json('{}')
    ),
    'options', json(coalesce(json_extract(spec, '$.backend_options'), '{}'))
  ))
) WHERE json_valid(spec)
"""

# Where each attempt was put and why, also of attempts before the present one; and which nodes do not answer now.
_ATTEMPT_PLACEMENTS: Final = """
ALTER TABLE moves ADD COLUMN placement TEXT;
CREATE TABLE unreachable_nodes (
  experiment INTEGER NOT NULL REFERENCES experiments (key) ON DELETE CASCADE,
  node TEXT NOT NULL,
  since_s REAL NOT NULL,
  trials INTEGER NOT NULL,
  PRIMARY KEY (experiment, node)
) WITHOUT ROWID
"""

# What hooks have to be told, until it is delivered or given up; `id` is told at each try.
_HOOK_DELIVERIES: Final = """
CREATE TABLE hook_deliveries (
  id TEXT PRIMARY KEY,
  experiment INTEGER NOT NULL REFERENCES experiments (key) ON DELETE CASCADE,
  hook TEXT NOT NULL,
  payload TEXT NOT NULL,
  created_s REAL NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL DEFAULT 'pending',
  error TEXT NOT NULL DEFAULT ''
);
CREATE INDEX hook_deliveries_pending ON hook_deliveries (created_s) WHERE state = 'pending';
CREATE INDEX hook_deliveries_by_experiment ON hook_deliveries (experiment)
"""

# Plans that were measured, in the order of arrival; they outlive their experiments. A trial tells one by a note.
_MEASUREMENTS: Final = """
CREATE TABLE measurements (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  experiment_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  place TEXT NOT NULL,
  time_s REAL NOT NULL,
  measured TEXT NOT NULL,
  UNIQUE (experiment_id, number, attempt, measured) ON CONFLICT IGNORE
);
CREATE TRIGGER plan_measured AFTER INSERT ON notes WHEN new.level = 'plan' BEGIN
  INSERT INTO measurements (experiment_id, number, attempt, place, time_s, measured)
  SELECT experiments.id, new.number, new.attempt, trials.backend, new.time_s, new.text
  FROM experiments JOIN trials ON trials.experiment = experiments.key AND trials.number = new.number
  WHERE experiments.key = new.experiment;
END
"""

# The trial whose checkpoint and curve a trial goes on from.
_SOURCES: Final = """
ALTER TABLE trials ADD COLUMN source TEXT
"""

# The changes of one trial, without going through those of all trials of its experiment.
_CHANGES_OF_TRIALS: Final = """
CREATE INDEX moves_by_trial ON moves (experiment, number, id)
"""

MIGRATIONS: Final[tuple[str, ...]] = (
    _FIRST,
    _LEASE,
    _NOTE_COUNTS,
    _VALUE_COUNT,
    _ORIGINS,
    _RETRIES,
    _DECISIONS,
    _PLACEMENTS,
    _BACKENDS,
    _ATTEMPT_PLACEMENTS,
    CHANGES,
    _HOOK_DELIVERIES,
    _MEASUREMENTS,
    _SOURCES,
    _CHANGES_OF_TRIALS,
)

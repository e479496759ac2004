"""Experiments: adding, finding and closing them. Their state is always derived from their trials."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress

from jupyter_autotrain.agent.json import to_json
from jupyter_autotrain.agent.states import ACTIVE_STATES
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.hooks import Delivery
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.core.spec import ExperimentSpec, Origin
from jupyter_autotrain.errors import DamagedRowError, UnknownExperimentError
from jupyter_autotrain.store.experiment_records import look_up, not_found, of_origin, records
from jupyter_autotrain.store.mixin import StoreMixin, key_of, plain
from jupyter_autotrain.store.requests import add_deliveries
from jupyter_autotrain.store.row_files import keep_experiment, keep_new_experiment

_BEGIN = "UPDATE experiments SET boot = ?, boot_s = ? WHERE id = ?"
_NEXT_VERSION = (
    "INSERT INTO names (name, version) VALUES (?, 1) "
    "ON CONFLICT (name) DO UPDATE SET version = version + 1 RETURNING version"
)
_ACTIVE = ", ".join(f"'{state.value}'" for state in sorted(ACTIVE_STATES))
_UNFINISHED = f"(closed = 0 OR EXISTS (SELECT 1 FROM trials WHERE experiment = key AND state IN ({_ACTIVE})))"  # noqa: S608 - own text


_REOPEN = (
    "UPDATE experiments SET closed = 0, closed_s = NULL, reason = '', stop_requested = 0, retried_s = ? WHERE key = ?"
)


def set_spec(connection: sqlite3.Connection, key: int, spec: ExperimentSpec) -> None:
    """Replace an experiment's spec, in the transaction of what it is changed with."""
    connection.execute("UPDATE experiments SET spec = ? WHERE key = ?", (json.dumps(to_json(spec)), key))


def _tell_nobody(_: ExperimentRecord) -> Sequence[Delivery]:
    return ()


class ExperimentTable(StoreMixin):
    """Submissions."""

    def add_experiment(
        self, experiment_id: str, spec: ExperimentSpec, now_s: float, begun: BootTime | None = None
    ) -> ExperimentRecord:
        """Store a submission durably: when this returns, it is on disk.

        Args:
            experiment_id: Its id.
            spec: What was requested.
            now_s: The time, seconds since the epoch, for people.
            begun: The same instant on the boot-time clock, from which durations are counted.

        Raises:
            StoreError: It is not kept, and nothing was changed.
        """
        text = json.dumps(to_json(spec))
        name = plain(spec.name)
        with self._database.write(durable=True) as connection:
            version = connection.execute(_NEXT_VERSION, (name,)).fetchall()[0][0]
            connection.execute(
                "INSERT INTO experiments (id, name, version, spec, created_s, notebook, session) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (experiment_id, name, version, text, now_s, plain(spec.origin.notebook), spec.origin.session),
            )
            if begun is not None:
                connection.execute(_BEGIN, (begun.boot, begun.at_s, experiment_id))
            keep_new_experiment(connection, self._home, key_of(connection, experiment_id))
        return self.experiment(experiment_id)

    def begin_experiment(self, experiment_id: str, begun: BootTime) -> None:
        """Count durations from another instant: the machine was booted, so the one before is void."""
        with self._database.write() as connection:
            connection.execute(_BEGIN, (begun.boot, begun.at_s, experiment_id))

    def experiment(self, experiment_id: str) -> ExperimentRecord:
        """Return the experiment with exactly this id.

        Raises:
            UnknownExperimentError: There is none.
        """
        with self._database.read() as connection:
            return records(connection, "WHERE key = ?", (key_of(connection, experiment_id),))[0]

    def ids(self) -> set[str]:
        """Return the ids of all experiments."""
        with self._database.read() as connection:
            return {row[0] for row in connection.execute("SELECT id FROM experiments")}

    def experiments(self, limit: int = 100) -> list[ExperimentRecord]:
        """Return the newest experiments, newest first."""
        with self._database.read() as connection:
            return records(connection, "ORDER BY key DESC LIMIT ?", (limit,))

    def unfinished(self) -> list[ExperimentRecord]:
        """Experiments that are not closed or have a trial that is not final; oldest first.

        One that cannot be read is left out, so that it keeps no other from running; `experiments` says what is wrong.
        """
        with self._database.read() as connection:
            keys = connection.execute(f"SELECT key FROM experiments WHERE {_UNFINISHED} ORDER BY key").fetchall()  # noqa: S608 - own text
            found: list[ExperimentRecord] = []
            for (key,) in keys:
                with suppress(DamagedRowError):
                    found += records(connection, "WHERE key = ?", (key,))
            return found

    def unfinished_of(self, name: str, origin: Origin) -> list[ExperimentRecord]:
        """Return the unfinished experiments of this name that were submitted from this notebook; oldest first."""
        mine, values = of_origin(origin)
        with self._database.read() as connection:
            return records(connection, f"WHERE name = ? AND {mine} AND {_UNFINISHED} ORDER BY key", (name, *values))

    def find(self, reference: str, origin: Origin | None = None) -> ExperimentRecord:
        """Return the experiment that a person means.

        Args:
            reference: A name (its newest version), `name@N`, a unique prefix of an id, `-1` (the newest), `-2` ...,
                or `_` (the newest).
            origin: The notebook that asks: the newest is the newest of this notebook, and a name means this
                notebook's before any other's. None: the newest of all.

        Raises:
            UnknownExperimentError: None or several answer to it; carries the nearest names.
        """
        reference = plain(reference.strip())
        with self._database.read() as connection:
            found = look_up(connection, reference, origin)
            if not found:
                raise not_found(connection, reference, origin)
        if len(found) > 1:
            names = ", ".join(f"{record.name}@{record.version} ({record.id})" for record in found[:3])
            raise UnknownExperimentError(
                f"{len(found)} experiments have an id that begins with {reference!r}.",
                f"One was expected; these answer: {names}.",
                "Give more of the id, or the name.",
            )
        return found[0]

    def close_experiment(
        self,
        experiment_id: str,
        now_s: float,
        reason: str = "",
        tell: Callable[[ExperimentRecord], Sequence[Delivery]] = _tell_nobody,
    ) -> None:
        """Say that no further trial will be created; the first time counts, the last reason given stays.

        Args:
            experiment_id: The experiment.
            now_s: The time, seconds since the epoch.
            reason: Why, in plain words.
            tell: What hooks are told of the experiment as it is then, kept in the same transaction.
        """
        reason = plain(reason)
        with self._database.write() as connection:
            key = key_of(connection, experiment_id)
            connection.execute(
                "UPDATE experiments SET closed = 1, closed_s = coalesce(closed_s, ?), "
                "reason = CASE WHEN ? = '' THEN reason ELSE ? END WHERE key = ?",
                (now_s, reason, reason, key),
            )
            if tell is not _tell_nobody:
                (record,) = records(connection, "WHERE key = ?", (key,))
                add_deliveries(connection, key, tell(record), now_s)
            keep_experiment(connection, self._home, key)

    def request_stop(self, experiment_id: str) -> None:
        """Raise the stop flag."""
        self._set_stop(experiment_id, wanted=True)

    def withdraw_stop(self, experiment_id: str) -> None:
        """Lower the stop flag: a stopped experiment is tried again."""
        self._set_stop(experiment_id, wanted=False)

    def begin_retry(self, experiment_id: str, now_s: float) -> None:
        """Resume an ended experiment: its duration is counted from now, its end decisions are removed."""
        with self._database.write() as connection:
            key = key_of(connection, experiment_id)
            connection.execute("UPDATE experiments SET retried_s = ? WHERE key = ?", (now_s, key))
            connection.execute("DELETE FROM experiment_decisions WHERE experiment = ?", (key,))
            keep_experiment(connection, self._home, key)

    def reopen(self, experiment_id: str, now_s: float) -> None:
        """Let an experiment that has ended or was stopped create trials again, as if it had not been closed."""
        with self._database.write(durable=True) as connection:
            key = key_of(connection, experiment_id)
            connection.execute(_REOPEN, (now_s, key))
            connection.execute("DELETE FROM experiment_decisions WHERE experiment = ?", (key,))
            keep_experiment(connection, self._home, key)

    def change_spec(self, experiment_id: str, spec: ExperimentSpec) -> None:
        """Replace what was requested, durably; only its numbers of trials and its budget may differ."""
        with self._database.write(durable=True) as connection:
            key = key_of(connection, experiment_id)
            set_spec(connection, key, spec)
            keep_experiment(connection, self._home, key)

    def _set_stop(self, experiment_id: str, *, wanted: bool) -> None:
        with self._database.write(durable=True) as connection:
            key = key_of(connection, experiment_id)
            connection.execute("UPDATE experiments SET stop_requested = ? WHERE key = ?", (wanted, key))
            keep_experiment(connection, self._home, key)

    def delete_experiment(self, experiment_id: str) -> None:
        """Forget an experiment with all its trials and metrics. Its version number is not given again."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM experiments WHERE key = ?", (key_of(connection, experiment_id),))
            connection.execute("DELETE FROM requests WHERE experiment_id = ? AND done = 1", (experiment_id,))

"""Experiments: adding, finding and closing them. Their state is always derived from their trials."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.json import from_json, to_json
from jupyter_autotrain.core.origin import Origin
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.core.states import ACTIVE_STATES, TrialState, experiment_state
from jupyter_autotrain.core.wording import count
from jupyter_autotrain.errors import UnknownExperimentError
from jupyter_autotrain.store.section import Section, key_of, plain, undamaged, unknown

_NEWER = "EXISTS (SELECT 1 FROM experiments AS newer WHERE newer.name = e.name AND newer.version > e.version)"
_COLUMNS = f"key, id, name, version, {_NEWER}, spec, created_s, closed, closed_s, reason, stop_requested, boot, boot_s"
_BEGIN = "UPDATE experiments SET boot = ?, boot_s = ? WHERE id = ?"
_NEXT_VERSION = (
    "INSERT INTO names (name, version) VALUES (?, 1) "
    "ON CONFLICT (name) DO UPDATE SET version = version + 1 RETURNING version"
)
_ACTIVE = ", ".join(f"'{state.value}'" for state in sorted(ACTIVE_STATES))
_UNFINISHED = f"(closed = 0 OR EXISTS (SELECT 1 FROM trials WHERE experiment = key AND state IN ({_ACTIVE})))"  # noqa: S608 - own text


@dataclass(frozen=True, slots=True)
class _Tally:
    counts: dict[TrialState, int]
    ended_s: float | None


class Experiments(Section):
    """Submissions."""

    def add_experiment(
        self, experiment_id: str, spec: ExperimentSpec, now_s: float, begun: BootTime | None = None
    ) -> ExperimentRecord:
        """Keep a submission for good: when this returns, it is on disk.

        Args:
            experiment_id: Its id.
            spec: What is wished.
            now_s: The time, seconds since the epoch, for people.
            begun: The same instant on the clock that nobody can set; its durations are counted from there.

        Raises:
            StoreError: It is not kept, and nothing was changed.
        """
        text, name = json.dumps(to_json(spec)), plain(spec.name)
        with self._database.write(durable=True) as connection:
            version = connection.execute(_NEXT_VERSION, (name,)).fetchall()[0][0]
            connection.execute(
                "INSERT INTO experiments (id, name, version, spec, created_s, notebook, session) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (experiment_id, name, version, text, now_s, plain(spec.origin.notebook), spec.origin.session),
            )
            if begun is not None:
                connection.execute(_BEGIN, (begun.boot, begun.at_s, experiment_id))
        return self.experiment(experiment_id)

    def begin_experiment(self, experiment_id: str, begun: BootTime) -> None:
        """Count durations from another instant: the machine was started anew, so the one before tells nothing."""
        with self._database.write() as connection:
            connection.execute(_BEGIN, (begun.boot, begun.at_s, experiment_id))

    def experiment(self, experiment_id: str) -> ExperimentRecord:
        """The experiment with exactly this id.

        Raises:
            UnknownExperimentError: There is none.
        """
        with self._database.read() as connection:
            return _records(connection, "WHERE key = ?", (key_of(connection, experiment_id),))[0]

    def experiments(self, limit: int = 100) -> list[ExperimentRecord]:
        """The newest experiments, newest first."""
        with self._database.read() as connection:
            return _records(connection, "ORDER BY key DESC LIMIT ?", (limit,))

    def unfinished(self) -> list[ExperimentRecord]:
        """Experiments that are not closed or have a trial that is not final; oldest first."""
        with self._database.read() as connection:
            return _records(connection, f"WHERE {_UNFINISHED} ORDER BY key", ())

    def unfinished_of(self, name: str, origin: Origin) -> list[ExperimentRecord]:
        """The unfinished experiments of this name that were submitted from this notebook; oldest first."""
        mine, values = _of(origin)
        with self._database.read() as connection:
            return _records(connection, f"WHERE name = ? AND {mine} AND {_UNFINISHED} ORDER BY key", (name, *values))

    def find(self, reference: str, origin: Origin | None = None) -> ExperimentRecord:
        """The experiment that a person means.

        Args:
            reference: A name (its newest version), `name@N`, a unique prefix of an id, `-1` (the newest), `-2` ...,
                or `_` (the newest).
            origin: The notebook where it is said: the newest is the newest of this notebook, and a name means this
                notebook's before any other's. None: the newest of all.

        Raises:
            UnknownExperimentError: None or several answer to it; carries the nearest names.
        """
        reference = plain(reference.strip())
        with self._database.read() as connection:
            found = _look_up(connection, reference, origin)
            if not found:
                raise _not_found(connection, reference, origin)
        if len(found) > 1:
            names = ", ".join(f"{record.name}@{record.version} ({record.id})" for record in found[:3])
            raise UnknownExperimentError(
                f"{len(found)} experiments have an id that begins with {reference!r}.",
                f"One was expected; these answer: {names}.",
                "Give more of the id, or the name.",
            )
        return found[0]

    def close_experiment(self, experiment_id: str, now_s: float, reason: str = "") -> None:
        """Say that no further trial will be created; the first time counts, the last reason given stays."""
        reason = plain(reason)
        with self._database.write() as connection:
            connection.execute(
                "UPDATE experiments SET closed = 1, closed_s = coalesce(closed_s, ?), "
                "reason = CASE WHEN ? = '' THEN reason ELSE ? END WHERE key = ?",
                (now_s, reason, reason, key_of(connection, experiment_id)),
            )

    def request_stop(self, experiment_id: str) -> None:
        """Raise the stop flag."""
        self._set_stop(experiment_id, wanted=True)

    def withdraw_stop(self, experiment_id: str) -> None:
        """Lower the stop flag: a stopped experiment is tried again."""
        self._set_stop(experiment_id, wanted=False)

    def _set_stop(self, experiment_id: str, *, wanted: bool) -> None:
        with self._database.write(durable=True) as connection:
            key = key_of(connection, experiment_id)
            connection.execute("UPDATE experiments SET stop_requested = ? WHERE key = ?", (wanted, key))

    def delete_experiment(self, experiment_id: str) -> None:
        """Forget an experiment with all its trials and metrics. Its version number is not given again."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM experiments WHERE key = ?", (key_of(connection, experiment_id),))
            connection.execute("DELETE FROM requests WHERE experiment_id = ? AND done = 1", (experiment_id,))


def _look_up(connection: sqlite3.Connection, reference: str, origin: Origin | None) -> list[ExperimentRecord]:
    mine, values = _of(origin)
    if places := back(reference):
        return _records(connection, f"WHERE {mine} ORDER BY key DESC LIMIT 1 OFFSET ?", (*values, places - 1))
    newest = "WHERE name = ? AND {} ORDER BY key DESC LIMIT 1"
    if by_name := _records(connection, newest.format(mine), (reference, *values)):
        return by_name
    if by_name := _records(connection, newest.format("1"), (reference,)):
        return by_name
    name, at, version = reference.rpartition("@")
    if at and version.isdecimal():
        return _records(connection, "WHERE name = ? AND version = ?", (name, _number(version)))
    return _records(connection, "WHERE ? != '' AND substr(id, 1, ?) = ?", (reference, len(reference), reference))


def _number(digits: str) -> int:
    """A number that SQLite can hold; no experiment has a larger one."""
    return int(digits) if len(digits) <= 18 else 10**18


def back(reference: str) -> int:
    """How far back a reference counts: 1 for `-1` and `_` (the newest), 2 for `-2` ...; 0 for a name or an id."""
    digits = "1" if reference == "_" else reference[1:] if reference.startswith("-") else ""
    return max(_number(digits), 1) if digits.isdecimal() else 0


def _of(origin: Origin | None) -> tuple[str, tuple[str, ...]]:
    """The condition for experiments of this notebook."""
    if origin is None:
        return "1", ()
    if origin.notebook:
        same_session = "notebook = '' AND session = ? AND session != ''"
        return f"(notebook = ? OR ({same_session}))", (plain(origin.notebook), origin.session)
    return "(session = ? AND session != '')", (origin.session,)


def _not_found(connection: sqlite3.Connection, reference: str, origin: Origin | None) -> UnknownExperimentError:
    newest = _records(connection, "ORDER BY key DESC LIMIT 1", ()) if origin and back(reference) else []
    if not newest:
        return unknown(connection, reference)
    mine, values = _of(origin)
    many = connection.execute(f"SELECT count(*) FROM experiments AS e WHERE {mine}", values).fetchone()[0]  # noqa: S608 - own text
    has = f"only {count(many, 'experiment')}, so {reference} names none" if many else "no experiment yet"
    return UnknownExperimentError(
        f"This notebook has submitted {has}.",
        f"The newest of all is {newest[0].label}, from {newest[0].spec.origin.label}.",
        f"Give its name, {newest[0].label}, if you mean that one; list all with '%autotrain ls'.",
    )


def _records(connection: sqlite3.Connection, where: str, values: tuple[str | int, ...]) -> list[ExperimentRecord]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM experiments AS e {where}", values).fetchall()  # noqa: S608 - own text
    tallies = _tallies(connection, [row[0] for row in rows])
    return [_checked(row, tallies[row[0]]) for row in rows]


def _tallies(connection: sqlite3.Connection, keys: Iterable[int]) -> dict[int, _Tally]:
    query = "SELECT state, count(*), max(ended_s) FROM trials WHERE experiment = ? GROUP BY state"
    tallies = {}
    for key in keys:
        rows = connection.execute(query, (key,)).fetchall()
        ends = [end for _, _, end in rows if end is not None]
        with undamaged(f"the state of a trial of experiment number {key}"):
            tallies[key] = _Tally({TrialState(state): count for state, count, _ in rows}, max(ends, default=None))
    return tallies


def _checked(row: tuple[object, ...], tally: _Tally) -> ExperimentRecord:
    with undamaged(f"experiment {row[1]}"):
        return _record(row, tally)


def _record(row: tuple[object, ...], tally: _Tally) -> ExperimentRecord:
    _, experiment_id, name, version, superseded, spec, created_s, closed, closed_s, reason, stop_requested = row[:11]
    boot, boot_s = row[11:]
    state = experiment_state(tally.counts, closed=bool(closed), stop_requested=bool(stop_requested))
    ends = [end for end in (closed_s, tally.ended_s) if isinstance(end, float)]
    return ExperimentRecord(
        id=str(experiment_id),
        name=str(name),
        version=int(str(version)),
        superseded=bool(superseded),
        spec=_spec(str(spec)),
        state=state,
        created_s=float(str(created_s)),
        ended_s=max(ends, default=None) if state.is_final else None,
        reason=str(reason),
        closed=bool(closed),
        stop_requested=bool(stop_requested),
        counts=tally.counts,
        begun=None if boot is None else BootTime(str(boot), float(str(boot_s))),
    )


@lru_cache(maxsize=256)
def _spec(text: str) -> ExperimentSpec:
    # A spec never changes, and decoding one is the dearest part of a listing.
    return from_json(ExperimentSpec, json.loads(text))

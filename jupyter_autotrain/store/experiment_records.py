"""Experiments as records, and what people call them; an experiment's state is derived from its trials."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from jupyter_autotrain.agent.json import from_json
from jupyter_autotrain.agent.states import TrialState, experiment_state
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.core.spec import ExperimentSpec, Origin
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.errors import UnknownExperimentError
from jupyter_autotrain.store.mixin import plain, undamaged, unknown

NEWER = "EXISTS (SELECT 1 FROM experiments AS newer WHERE newer.name = e.name AND newer.version > e.version)"
_COLUMNS = (
    f"key, id, name, version, {NEWER}, spec, created_s, closed, closed_s, reason, "
    "stop_requested, boot, boot_s, retried_s"
)


@dataclass(frozen=True, slots=True)
class _Tally:
    counts: dict[TrialState, int]
    ended_s: float | None


def records(connection: sqlite3.Connection, where: str, values: tuple[str | int, ...]) -> list[ExperimentRecord]:
    """Return the experiments that fit a condition, which may also say their order and number."""
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
    boot, boot_s, retried_s = row[11:]
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
        retried_s=retried_s if isinstance(retried_s, float) else None,
        begun=None if boot is None else BootTime(str(boot), float(str(boot_s))),
    )


@lru_cache(maxsize=1024)
def _spec(text: str) -> ExperimentSpec:
    # Decoding one takes most of the time of a listing.
    return from_json(ExperimentSpec, json.loads(text))


def look_up(connection: sqlite3.Connection, reference: str, origin: Origin | None) -> list[ExperimentRecord]:
    """Return what a reference may mean in this notebook; several when the beginning of an id is not unique."""
    mine, values = of_origin(origin)
    if places := offset_from_newest(reference):
        return records(connection, f"WHERE {mine} ORDER BY key DESC LIMIT 1 OFFSET ?", (*values, places - 1))
    newest = "WHERE name = ? AND {} ORDER BY key DESC LIMIT 1"
    if by_name := records(connection, newest.format(mine), (reference, *values)):
        return by_name
    if by_name := records(connection, newest.format("1"), (reference,)):
        return by_name
    name, at, version = reference.rpartition("@")
    if at and version.isdecimal():
        return records(connection, "WHERE name = ? AND version = ?", (name, _number(version)))
    return records(connection, "WHERE ? != '' AND substr(id, 1, ?) = ?", (reference, len(reference), reference))


def _number(digits: str) -> int:
    """Return a number that SQLite can hold; no experiment has a larger one."""
    return int(digits) if len(digits) <= 18 else 10**18


def offset_from_newest(reference: str) -> int:
    """Get how far back a reference counts: 1 for `-1` and `_` (the newest), 2 for `-2` ...; 0 for a name or an id."""
    if reference == "_":
        return 1
    digits = reference[1:]
    if not reference.startswith("-") or not digits.isdecimal():
        return 0
    return max(_number(digits), 1)


def of_origin(origin: Origin | None) -> tuple[str, tuple[str, ...]]:
    """Return the condition for experiments of this notebook."""
    if origin is None:
        return "1", ()
    if origin.notebook:
        same_session = "notebook = '' AND session = ? AND session != ''"
        return f"(notebook = ? OR ({same_session}))", (plain(origin.notebook), origin.session)
    return "(session = ? AND session != '')", (origin.session,)


def not_found(connection: sqlite3.Connection, reference: str, origin: Origin | None) -> UnknownExperimentError:
    """Return the error for a reference that names nothing, with what may have been meant."""
    if not offset_from_newest(reference):
        return unknown(connection, reference)
    newest = records(connection, "ORDER BY key DESC LIMIT 1", ())
    if not newest:
        return UnknownExperimentError(
            "There is no experiment yet.",
            "One that was submitted was expected.",
            "Begin a cell with %%autotrain and run it.",
        )
    if not origin:
        return unknown(connection, reference)
    mine, values = of_origin(origin)
    many = connection.execute(f"SELECT count(*) FROM experiments AS e WHERE {mine}", values).fetchone()[0]  # noqa: S608 - own text
    has = f"only {count(many, 'experiment')}, so {reference} names none" if many else "no experiment yet"
    return UnknownExperimentError(
        f"This notebook has submitted {has}.",
        f"The newest of all is {newest[0].label}, from {newest[0].spec.origin.label}.",
        f"Give its name, {newest[0].label}, if you mean that one; list all with '%autotrain ls'.",
    )

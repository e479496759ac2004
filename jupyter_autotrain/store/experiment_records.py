"""Rows of experiments as records; an experiment's state is derived from its trials at each reading."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.json import from_json
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.core.states import TrialState, experiment_state
from jupyter_autotrain.store.mixin import undamaged

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
    """The experiments that fit a condition, which may also say their order and number."""
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
    # A spec never changes, and decoding one takes most of the time of a listing.
    return from_json(ExperimentSpec, json.loads(text))

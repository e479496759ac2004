"""The list of a home's experiments: filtered, sorted, grouped by notebook, cut into pages."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from jupyter_autotrain.core import ranking
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.json import JsonObject, JsonValue
from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.core.states import ExperimentState, TrialState
from jupyter_autotrain.store import Annotation, Store, TrialValue
from jupyter_autotrain.views.curves import sparkline
from jupyter_autotrain.views.eta import eta_s

MOST_LISTED: Final = 10_000
GROUPS: Final[Mapping[ExperimentState, str]] = MappingProxyType(
    {
        ExperimentState.WAITING: "queued",
        ExperimentState.RUNNING: "running",
        ExperimentState.STOPPING: "running",
        ExperimentState.SUCCEEDED: "done",
        ExperimentState.FAILED: "done",
        ExperimentState.CANCELLED: "done",
    }
)
_GROUP_ORDER: Final = ("running", "queued", "done")
_NO_ANNOTATION: Final = Annotation()


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Which experiments are wanted, in which order; "" means any."""

    text: str = ""
    group: str = ""
    tag: str = ""
    notebook: str | None = None
    sort: str = "created"
    is_descending: bool = True
    by_group: bool = False
    offset: int = 0
    limit: int = 50


@dataclass(frozen=True, slots=True)
class _Row:
    record: ExperimentRecord
    annotation: Annotation


def experiments_json(store: Store, query: ListQuery) -> JsonObject:
    """A page of the experiments that fit; `total` and `groups` (how many are running, queued, done) count all of them.

    `notebooks` counts those of each notebook in the page. `tags` are those of the whole home. `last_change_id` was read
    before the rest: changes above it may not be in it.
    """
    last_change_id = store.last_change_id()
    present = _rows(store)
    rows = [row for row in present if _fits(row, query)]
    groups = dict.fromkeys(GROUPS.values(), 0)
    for row in rows:
        groups[GROUPS[row.record.state]] += 1
    chosen = [row for row in rows if not query.group or GROUPS[row.record.state] == query.group]
    ordered = _sorted(store, chosen, query)
    if query.by_group:
        ordered.sort(key=lambda row: _GROUP_ORDER.index(GROUPS[row.record.state]))
    page = ordered[query.offset : query.offset + query.limit]
    values = store.trial_values([row.record.id for row in page])
    return {
        "total": len(chosen),
        "groups": groups,
        "notebooks": _notebook_counts(chosen, page),
        "tags": sorted({tag for row in present for tag in row.annotation.tags}),
        "last_change_id": last_change_id,
        "experiments": [_item(store, row, values[row.record.id]) for row in page],
    }


def _notebook_counts(rows: Sequence[_Row], page: Sequence[_Row]) -> JsonObject:
    counts = Counter(row.record.spec.origin.notebook for row in rows)
    shown = {row.record.spec.origin.notebook for row in page}
    return {notebook: counts[notebook] for notebook in shown}


def experiment_json(store: Store, record: ExperimentRecord) -> JsonObject:
    """One experiment as the list has it."""
    row = _Row(record, store.annotations().get(record.id, _NO_ANNOTATION))
    return _item(store, row, store.trial_values([record.id])[record.id])


def notebooks_json(store: Store) -> list[JsonValue]:
    """The notebooks that experiments were submitted from, the newest first, with how many there are of each."""
    rows = _rows(store)
    found: dict[str, dict[str, JsonValue]] = {}
    counts: dict[str, int] = {}
    unfinished: dict[str, int] = {}
    for row in rows:
        notebook = row.record.spec.origin.notebook
        counts[notebook] = counts.get(notebook, 0) + 1
        unfinished[notebook] = unfinished.get(notebook, 0) + (not row.record.state.is_final)
        found.setdefault(notebook, {"label": row.record.spec.origin.label, "newest_s": row.record.created_s})
    return [
        {"notebook": notebook, **newest, "experiments": counts[notebook], "unfinished": unfinished[notebook]}
        for notebook, newest in found.items()
    ]


def _rows(store: Store) -> list[_Row]:
    annotations = store.annotations()
    return [_Row(record, annotations.get(record.id, _NO_ANNOTATION)) for record in store.experiments(MOST_LISTED)]


def _fits(row: _Row, query: ListQuery) -> bool:
    if query.notebook is not None and row.record.spec.origin.notebook != query.notebook:
        return False
    if query.tag and query.tag not in row.annotation.tags:
        return False
    searched = (row.record.label, row.record.spec.origin.label, row.annotation.note, *row.annotation.tags)
    return query.text.casefold() in "\n".join(searched).casefold()


def _sorted(store: Store, rows: Sequence[_Row], query: ListQuery) -> list[_Row]:
    """The rows in the wanted order; those without a value of it are last either way."""
    keyed = list(zip(_keys(store, rows, query.sort), rows, strict=True))
    known = [pair for pair in keyed if pair[0] is not None]
    known.sort(key=lambda pair: pair[0], reverse=query.is_descending)  # type: ignore[arg-type, return-value] # all of one type
    return [row for _, row in known] + [row for value, row in keyed if value is None]


def _keys(store: Store, rows: Sequence[_Row], sort: str) -> list[str | float | None]:
    if sort == "best":
        ranges = store.value_ranges()
        return [_goodness(row.record, ranges) for row in rows]
    return [_SORT_KEYS[sort](row.record) for row in rows]


def _goodness(record: ExperimentRecord, ranges: Mapping[str, tuple[float, float]]) -> float | None:
    """Greater is better, whichever way the objective points."""
    objective = record.spec.objective
    if objective is None or record.id not in ranges:
        return None
    least, greatest = ranges[record.id]
    return greatest if objective.direction is Direction.MAXIMIZE else -least


_SortKey = Callable[[ExperimentRecord], str | float | None]
_SORT_KEYS: Final[Mapping[str, _SortKey]] = MappingProxyType(
    {
        "created": lambda record: record.created_s,
        "ended": lambda record: record.ended_s,
        "name": lambda record: record.name.casefold(),
        "state": lambda record: GROUPS[record.state],
        "trials": lambda record: float(record.spec.trials),
    }
)


def _item(store: Store, row: _Row, values: Sequence[TrialValue]) -> JsonObject:
    record = row.record
    now_s = record.now_s(time.time(), BootTime.now())
    best = ranking.best(record.spec.objective, values)
    times = [] if record.state.is_final else store.trial_times(record.id)
    return {
        "id": record.id,
        "name": record.label,
        "state": record.state.value,
        "group": GROUPS[record.state],
        "final": record.state.is_final,
        "reason": record.reason or _failure(store, record),
        "backend": record.spec.backend_names,
        "notebook": record.spec.origin.notebook,
        "tags": list(row.annotation.tags),
        "note": row.annotation.note,
        "objective": _objective(record.spec.objective),
        "best": None if best is None else {"trial": best.number, "value": best.value},
        "trials": max(record.spec.trials, sum(record.counts.values())),
        "counts": {state.value: many for state, many in record.counts.items()},
        "sparkline": sparkline(store, record, values),
        "created_s": record.created_s,
        "begun_s": record.begun_s,
        "ended_s": record.ended_s,
        "took_s": record.took_s(now_s),
        "eta_s": eta_s(record, times, now_s) if times else None,
    }


def _failure(store: Store, record: ExperimentRecord) -> str:
    """Why the first of its failed trials has failed, of an experiment that failed for no reason of its own."""
    if record.state is not ExperimentState.FAILED:
        return ""
    failed = store.first_trial(record.id, TrialState.FAILED)
    return "" if failed is None else failed.reason.partition("\n")[0]


def _objective(objective: Objective | None) -> JsonValue:
    if objective is None:
        return None
    return {"metric": objective.metric, "direction": objective.direction.value, "label": objective.label}

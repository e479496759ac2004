"""The list of a home's experiments: filtered, sorted, grouped by notebook, cut into pages."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.states import ExperimentState, TrialState
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.objective import Direction, best_of
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.core.spec import Origin
from jupyter_autotrain.store import Annotation, ListedExperiment, Store, TrialValue
from jupyter_autotrain.views.json_objects import objectives_json
from jupyter_autotrain.views.series import sparkline
from jupyter_autotrain.views.summary import eta_s

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
    """The wanted experiments and their order; "" and None mean any.

    Attributes:
        text: Part of a name, tag, note or notebook.
        place: The name of a backend that it may use.
        metric: One that it has reported, or is ranked by.
        since_s: Submitted then or later; seconds since the epoch.
        until_s: Submitted before then.
    """

    text: str = ""
    group: str = ""
    state: str = ""
    tag: str = ""
    place: str = ""
    metric: str = ""
    notebook: str | None = None
    since_s: float | None = None
    until_s: float | None = None
    sort: str = "created"
    is_descending: bool = True
    by_group: bool = False
    offset: int = 0
    limit: int = 50


@dataclass(frozen=True, slots=True)
class _Row:
    experiment: ListedExperiment
    annotation: Annotation

    @property
    def group(self) -> str:
        return GROUPS[self.experiment.state]


def experiments_json(store: Store, query: ListQuery) -> JsonObject:
    """Return a page of the experiments that fit.

    `total` and `groups` (how many are running, queued, done) count all of them.

    `notebooks` counts those of each notebook in the page. `tags`, `places` and `metrics` are those of the whole home.
    `last_change_id` was read before the rest: changes above it may not be in it.
    """
    last_change_id = store.last_change_id()
    present = _rows(store)
    rows = _fitting(store, present, query)
    groups = dict.fromkeys(GROUPS.values(), 0) | Counter(row.group for row in rows)
    chosen = [row for row in rows if not query.group or row.group == query.group]
    ordered = _sorted(store, chosen, query)
    if query.by_group:
        ordered.sort(key=lambda row: _GROUP_ORDER.index(row.group))
    page = ordered[query.offset : query.offset + query.limit]
    return {
        "total": len(chosen),
        "groups": groups,
        "notebooks": _notebook_counts(chosen, page),
        **_choices(present),
        "last_change_id": last_change_id,
        "now_s": time.time(),
        "experiments": _items(store, page),
    }


def _choices(rows: Sequence[_Row]) -> JsonObject:
    """Return the tags, places and metrics that a list can be filtered by."""
    tags: set[str] = set()
    places: set[str] = set()
    metrics: set[str] = set()
    for row in rows:
        tags.update(row.annotation.tags)
        places.update(row.experiment.places)
        metrics.add(row.experiment.metric)
    return {"tags": sorted(tags), "places": sorted(places), "metrics": sorted(metrics - {""})}


def _notebook_counts(rows: Sequence[_Row], page: Sequence[_Row]) -> JsonObject:
    counts = Counter(row.experiment.notebook for row in rows)
    return {row.experiment.notebook: counts[row.experiment.notebook] for row in page}


def _items(store: Store, page: Sequence[_Row]) -> list[JsonValue]:
    annotations = {row.experiment.id: row.annotation for row in page}
    records = store.records_of(annotations)
    values = store.trial_values(annotations)
    return [_item(store, record, annotations[record.id], values[record.id]) for record in records]


def experiment_json(store: Store, record: ExperimentRecord) -> JsonObject:
    """Return one experiment as the list has it."""
    annotation = store.annotations().get(record.id, _NO_ANNOTATION)
    return _item(store, record, annotation, store.trial_values([record.id])[record.id])


def notebooks_json(store: Store) -> list[JsonValue]:
    """Return the notebooks that experiments were submitted from, the newest first.

    Each comes with the number of its experiments.
    """
    found: dict[str, dict[str, JsonValue]] = {}
    counts: Counter[str] = Counter()
    unfinished: Counter[str] = Counter()
    for experiment in store.listed():
        notebook = experiment.notebook
        counts[notebook] += 1
        unfinished[notebook] += not experiment.state.is_final
        found.setdefault(notebook, {"label": Origin(notebook).label, "newest_s": experiment.created_s})
    for notebook, row in found.items():
        row |= {"notebook": notebook, "experiments": counts[notebook], "unfinished": unfinished[notebook]}
    return [*found.values()]


def _rows(store: Store) -> list[_Row]:
    annotations = store.annotations()
    return [_Row(experiment, annotations.get(experiment.id, _NO_ANNOTATION)) for experiment in store.listed()]


def _fitting(store: Store, rows: Sequence[_Row], query: ListQuery) -> list[_Row]:
    reported = store.reported(query.metric) if query.metric else set()
    return [row for row in rows if _fits(row, query, reported) and _has_text(row, query.text)]


def _fits(row: _Row, query: ListQuery, reported: set[str]) -> bool:
    experiment = row.experiment
    return (
        query.state in {"", experiment.state}
        and query.notebook in {None, experiment.notebook}
        and (not query.tag or query.tag in row.annotation.tags)
        and (not query.place or query.place in experiment.places)
        and (query.metric in {"", experiment.metric} or experiment.id in reported)
        and _is_in_time(experiment, query)
    )


def _is_in_time(experiment: ListedExperiment, query: ListQuery) -> bool:
    if query.since_s is not None and experiment.created_s < query.since_s:
        return False
    return query.until_s is None or experiment.created_s < query.until_s


def _has_text(row: _Row, text: str) -> bool:
    if not text:
        return True
    searched = (row.experiment.label, Origin(row.experiment.notebook).label, row.annotation.note, *row.annotation.tags)
    return text.casefold() in "\n".join(searched).casefold()


def _sorted(store: Store, rows: Sequence[_Row], query: ListQuery) -> list[_Row]:
    """Return the rows in the wanted order; those without a value of it are last either way."""
    known: list[tuple[Any, _Row]] = []  # the values are of one type
    unknown: list[_Row] = []
    for value, row in zip(_keys(store, rows, query.sort), rows, strict=True):
        if value in {None, ""}:
            unknown.append(row)
        else:
            known.append((value, row))
    known.sort(key=itemgetter(0), reverse=query.is_descending)
    return [*map(itemgetter(1), known), *unknown]


def _keys(store: Store, rows: Sequence[_Row], sort: str) -> list[str | float | None]:
    if sort == "best":
        ranges = store.value_ranges()
        return [_goodness(row.experiment, ranges) for row in rows]
    return list(map(_SORT_KEYS[sort], rows))


def _goodness(experiment: ListedExperiment, ranges: Mapping[str, tuple[float, float]]) -> float | None:
    """Return a number that is greater for a better experiment, whichever way its objective points."""
    if not experiment.metric or experiment.id not in ranges:
        return None
    least, greatest = ranges[experiment.id]
    return greatest if experiment.direction is Direction.MAXIMIZE else -least


def _natural(text: str) -> str:
    """Return a sort key of a text by which `run-9` comes before `run-10`."""
    return re.sub(r"\d+", lambda number: number[0].zfill(12), text.casefold())


def _took_s(row: _Row) -> float:
    end_s = time.time() if row.experiment.ended_s is None else row.experiment.ended_s
    return end_s - row.experiment.begun_s


_SortKey = Callable[[_Row], str | float | None]
_SORT_KEYS: Final[Mapping[str, _SortKey]] = MappingProxyType(
    {
        "created": lambda row: row.experiment.created_s,
        "ended": lambda row: row.experiment.ended_s,
        "took": _took_s,
        "name": lambda row: _natural(row.experiment.label),
        "state": lambda row: row.experiment.state.value,
        "trials": lambda row: float(row.experiment.trials),
        "metric": lambda row: row.experiment.metric,
        "place": lambda row: ", ".join(row.experiment.places),
        "notebook": lambda row: _natural(Origin(row.experiment.notebook).label) if row.experiment.notebook else None,
        "tags": lambda row: ", ".join(row.annotation.tags),
    }
)


def _item(store: Store, record: ExperimentRecord, annotation: Annotation, values: Sequence[TrialValue]) -> JsonObject:
    now_s = record.now_s(time.time(), BootTime.now())
    best = best_of(record.spec.objective, values)
    times = [] if record.state.is_final else store.trial_times(record.id)
    return {
        "id": record.id,
        "name": record.label,
        "state": record.state.value,
        "group": GROUPS[record.state],
        "final": record.state.is_final,
        "reason": record.remark or _failure(store, record),
        "backend": record.spec.backend_names,
        "mode": record.spec.mode,
        "clones": record.spec.has_independent_trials,
        "gpus": record.spec.resources.gpus,
        "price": _price(record),
        "notebook": record.spec.origin.notebook,
        "tags": list(annotation.tags),
        "note": annotation.note,
        "objective": next(iter(objectives_json(record)), None),
        "objectives": objectives_json(record),
        "best": None if best is None else {"trial": best.number, "value": best.value},
        "trials": max(record.spec.trials, sum(record.counts.values())),
        "counts": record.counts_json,
        "sparkline": sparkline(store, record, values),
        "created_s": record.created_s,
        "begun_s": record.begun_s,
        "ended_s": record.ended_s,
        "took_s": record.took_s(now_s),
        "eta_s": eta_s(record, times, now_s) if times else None,
    }


def _price(record: ExperimentRecord) -> JsonObject | None:
    """Return the price of an hour of one trial, where the profile of its only place names one."""
    found = record.spec.hour_price
    return None if found is None else {"hour": found[0], "currency": found[1]}


def _failure(store: Store, record: ExperimentRecord) -> str:
    """Return the reason of the first failed trial, for an experiment that failed for no reason of its own."""
    if record.state is not ExperimentState.FAILED:
        return ""
    failed = store.first_trial(record.id, TrialState.FAILED)
    return "" if failed is None else failed.reason.partition("\n")[0]

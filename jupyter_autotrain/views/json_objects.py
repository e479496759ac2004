"""Experiments and trials as JSON objects, under names that stay.

`run_json` is an experiment as a small object that a notebook keeps beside its HTML, under a MIME type of its own. A
front end that knows the type draws it, also where the notebook is not trusted and no kernel runs, and asks the
server's extension by the id for the state now. It holds no secret and no path of this machine.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Final

from jupyter_autotrain.agent.json import JsonObject, JsonValue, to_json
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.objective import best_of
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord
from jupyter_autotrain.core.text_format import cut
from jupyter_autotrain.store import Columns, Store
from jupyter_autotrain.views.card_content import CardContent, without_paths
from jupyter_autotrain.views.series import sampled, with_nulls

_TRIAL_FIELDS: Final = (
    "number", "state", "value", "params", "attempt", "created_s", "started_s", "ended_s", "reason", "gpus",
    "backend", "nodes", "started_from", "parent",
)  # fmt: skip


def experiment_json(experiment: Experiment, record: ExperimentRecord) -> JsonObject:
    """Return one experiment without its trials."""
    objective = record.spec.objective
    best = experiment.best
    return {
        "id": record.id,
        "name": record.label,
        "state": record.state,
        "reason": record.remark,
        "backend": record.spec.backend_names,
        "asked_by": record.spec.origin.asked_by,
        "objective": to_json(objective),
        "best": None if best is None else trial_json(best),
        "trials": record.spec.trials,
        "counts": record.counts_json,
        "created_s": record.created_s,
        "begun_s": record.begun_s,
        "ended_s": record.ended_s,
    }


def trial_json(trial: TrialRecord, fields: Sequence[str] = _TRIAL_FIELDS) -> JsonObject:
    """Return one trial."""
    return {name: to_json(getattr(trial, name)) for name in fields}


def more_values(store: Store, record: ExperimentRecord, number: int) -> list[JsonValue]:
    """Return a trial's values of the further objectives, in their order; None where it has none yet."""
    found: list[JsonValue] = []
    for objective in record.spec.more_objectives:
        columns = store.series(record.id, objective.metric, number).get(number)
        found.append(None if columns is None else objective.value(columns[1]))
    return found


def objectives_json(record: ExperimentRecord) -> list[JsonValue]:
    """Return all objectives of an experiment, the one that ranks trials first."""
    objectives = record.spec.objectives
    return [{"metric": one.metric, "direction": one.direction.value, "label": one.label} for one in objectives]


def strict(value: JsonValue) -> JsonValue:
    """Return the value as strict JSON, which has no infinity and no NaN: they become strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [*map(strict, value)]
    return value


MIME_TYPE: Final = "application/vnd.autotrain.run+json"
VERSION: Final = 1
LIMIT_BYTES: Final = 20_000
_CURVES: Final = ((24, 900), (12, 450), (6, 225), (0, 0))  # of a metric, and points of all; tried in this order
_NAME_CHARACTERS: Final = 200
_REASON_CHARACTERS: Final = 500


def run_json(
    content: CardContent, series: Mapping[str, Mapping[int, Columns]], most_bytes: int = LIMIT_BYTES
) -> JsonObject:
    """Return the experiment with as many points of its curves as fit into `most_bytes`.

    It is {} where not even the rest fits.

    Args:
        content: What the run card shows.
        series: The metrics to draw, each by trial.
        most_bytes: Of the JSON text.
    """
    for most, points in _CURVES:
        found: JsonObject = {**_facts(content), "curves": _curves(content, series, most, points)}
        if len(json.dumps(found).encode()) <= most_bytes:
            return found
    return {}


def _facts(content: CardContent) -> JsonObject:
    record = content.record
    objective = record.spec.objective
    leader = best_of(objective, content.trials)
    facts: dict[str, JsonValue] = {
        "version": VERSION,
        "id": record.id,
        "name": cut(record.label, _NAME_CHARACTERS),
        "state": record.state.value,
        "final": record.state.is_final,
        "reason": cut(without_paths(record.remark), _REASON_CHARACTERS),
        "objective": None,
        "best": None if leader is None else {"trial": leader.number, "value": leader.value},
        "trials": max(record.spec.trials, len(content.trials)),
        "counts": record.counts_json,
        "created_s": record.created_s,
        "begun_s": record.begun_s,
        "ended_s": record.ended_s,
    }
    if objective is not None:
        facts["objective"] = {"metric": cut(objective.metric, _NAME_CHARACTERS), "direction": objective.direction.value}
    return {name: strict(value) for name, value in facts.items()}


def _curves(
    content: CardContent, series: Mapping[str, Mapping[int, Columns]], most: int, points: int
) -> list[JsonValue]:
    """Return the curves of the best trials: rows of metric, trial, steps and values to six digits (null: a gap)."""
    curves: list[JsonValue] = []
    for metric, by_trial in series.items():
        name = cut(metric, _NAME_CHARACTERS)
        for trial, steps, values in sampled(by_trial, content.order, most, points // len(series)):
            rounded = [None if value is None else float(f"{value:.6g}") for value in with_nulls(values)]
            curves.append({"metric": name, "trial": trial, "steps": [*map(int, steps.tolist())], "values": rounded})
    return curves

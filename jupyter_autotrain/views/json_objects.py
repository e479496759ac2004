"""Experiments and trials as JSON objects, under names that stay."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.json import JsonObject, JsonValue, to_json
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord

_TRIAL_FIELDS: Final = (
    "number", "state", "value", "params", "attempt", "created_s", "started_s", "ended_s", "reason", "gpus",
    "backend", "nodes",
)  # fmt: skip


def experiment_json(experiment: Experiment, record: ExperimentRecord) -> JsonObject:
    """One experiment without its trials."""
    objective = record.spec.objective
    best = experiment.best
    return {
        "id": record.id,
        "name": record.label,
        "state": record.state,
        "reason": record.remark,
        "backend": record.spec.backend_names,
        "objective": to_json(objective),
        "best": None if best is None else trial_json(best),
        "trials": record.spec.trials,
        "counts": {str(state): many for state, many in record.counts.items()},
        "created_s": record.created_s,
        "begun_s": record.begun_s,
        "ended_s": record.ended_s,
    }


def trial_json(trial: TrialRecord, fields: Sequence[str] = _TRIAL_FIELDS) -> JsonObject:
    """One trial."""
    return {name: to_json(getattr(trial, name)) for name in fields}


def strict(value: JsonValue) -> JsonValue:
    """The value as strict JSON, which has no infinity and no NaN: they become strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [strict(item) for item in value]
    return value

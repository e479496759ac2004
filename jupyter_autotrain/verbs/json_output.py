"""What `--json` prints: the same facts as the text, under names that stay."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.json import JsonObject, JsonValue, to_json
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord
from jupyter_autotrain.verbs.context import CommandContext

_TRIAL_FIELDS = ("number", "state", "value", "params", "attempt", "created_s", "started_s", "ended_s", "reason", "gpus")


def write_json(command: CommandContext, value: JsonValue) -> None:
    """Print a value as strict JSON; infinities and NaN become strings, which every reader takes."""
    command.write(json.dumps(_finite(value), indent=2, allow_nan=False) + "\n")


def experiment_json(experiment: Experiment, record: ExperimentRecord) -> JsonObject:
    """One experiment without its trials."""
    objective = record.spec.objective
    best = experiment.best
    return {
        "id": record.id,
        "name": record.label,
        "state": record.state,
        "reason": record.reason,
        "backend": record.spec.backend,
        "objective": to_json(objective),
        "best": None if best is None else trial_json(best),
        "trials": record.spec.trials,
        "counts": {str(state): many for state, many in record.counts.items()},
        "created_s": record.created_s,
        "begun_s": record.begun_s,
        "ended_s": record.ended_s,
    }


def trial_json(trial: TrialRecord) -> JsonObject:
    """One trial."""
    return {name: to_json(getattr(trial, name)) for name in _TRIAL_FIELDS}


def _finite(value: JsonValue) -> JsonValue:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value

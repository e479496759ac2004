"""What hooks are told of an experiment and its trials: JSON of bounded size, the same for every hook. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from jupyter_autotrain.core import ranking
from jupyter_autotrain.core.hooks import Delivery, experiment_events
from jupyter_autotrain.core.json import JsonObject, JsonValue, to_json
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.core.text_format import cut, number

_MOST_CHARACTERS: Final = 2000
_MOST_PARAMETERS: Final = 100


def of_end(record: ExperimentRecord, trials: Sequence[TrialRecord] = ()) -> list[Delivery]:
    """What is told when an experiment has ended.

    Args:
        record: As it is then.
        trials: All of its trials.
    """
    found = []
    for hook in record.spec.hooks:
        for event in experiment_events(record.state):
            if event in hook.events:
                content = {"text": _sentence(record, trials), "experiment": _experiment(record, trials)}
                found.append(_delivery(record.id, hook.name, event, content))
    return found


def of_trial(record: ExperimentRecord, trial: TrialRecord, state: TrialState, reason: str) -> list[Delivery]:
    """What is told when a trial changes to a state."""
    event = f"trial_{state.lower()}"
    found = []
    for hook in record.spec.hooks:
        if event in hook.events:
            label = f"Trial {trial.number} of {record.name}@{record.version} is {state}"
            content: dict[str, JsonValue] = {
                "text": cut(f"{label}: {reason}" if reason else f"{label}.", _MOST_CHARACTERS),
                "experiment": {"id": record.id, "name": record.name, "version": record.version},
                "trial": _trial(trial, state, reason),
            }
            found.append(_delivery(record.id, hook.name, event, content))
    return found


def _delivery(experiment_id: str, hook: str, event: str, content: Mapping[str, JsonValue]) -> Delivery:
    delivery_id = uuid.uuid4().hex
    payload: JsonObject = {"id": delivery_id, "event": event, "hook": hook, **content}
    return Delivery(delivery_id, experiment_id, hook, payload)


def _experiment(record: ExperimentRecord, trials: Sequence[TrialRecord]) -> JsonValue:
    best = ranking.best(record.spec.objective, trials) if record.spec.objective else None
    found: JsonObject = {
        "id": record.id,
        "name": record.name,
        "version": record.version,
        "state": str(record.state),
        "reason": cut(record.remark, _MOST_CHARACTERS),
        "notebook": record.spec.origin.notebook,
        "created_s": record.created_s,
        "ended_s": record.ended_s,
        "trials": {str(state): count for state, count in record.counts.items()},
        "objective": str(record.spec.objective.metric) if record.spec.objective else None,
        "best": _trial(best, best.state, best.reason) if best else None,
    }
    return found


def _trial(trial: TrialRecord, state: TrialState, reason: str) -> JsonValue:
    params = dict(list(trial.params.items())[:_MOST_PARAMETERS])
    found: JsonObject = {
        "number": trial.number,
        "attempt": trial.attempt,
        "state": str(state),
        "reason": cut(reason, _MOST_CHARACTERS),
        "value": trial.value,
        "params": {cut(name, 200): _short(value) for name, value in params.items()},
    }
    return found


def _short(value: JsonValue) -> JsonValue:
    if isinstance(value, bool | int | float) or value is None:
        return value
    return cut(value if isinstance(value, str) else str(to_json(value)), _MOST_CHARACTERS // 10)


def _sentence(record: ExperimentRecord, trials: Sequence[TrialRecord]) -> str:
    counts = ", ".join(f"{count} {state.lower()}" for state, count in record.counts.items())
    text = f"{record.name}@{record.version} is {record.state} ({counts or 'no trial'})"
    best = ranking.best(record.spec.objective, trials) if record.spec.objective else None
    if best and record.spec.objective:
        text += f"; best {record.spec.objective.metric} {number(best.value)} (trial {best.number})"
    return cut(f"{text}; {record.remark}" if record.remark else text, _MOST_CHARACTERS)

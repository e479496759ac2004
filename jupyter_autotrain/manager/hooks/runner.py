"""Delivers what hooks have to be told: each try in a process of its own, started by a thread, never by the main loop.

A message is kept in the store until it is delivered or given up; a manager that is killed loses none, and its successor
tries again: a hook may be told twice, with the same id, and never less than once.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from jupyter_autotrain.agent.json import JsonObject, JsonValue, to_json
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.hooks import Delivery, Hook, experiment_events
from jupyter_autotrain.core.objective import best_of
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord
from jupyter_autotrain.core.text_format import cut, number
from jupyter_autotrain.errors import UnknownExperimentError
from jupyter_autotrain.manager.context import ManagerContext, SecretValues
from jupyter_autotrain.manager.hooks.process import try_once
from jupyter_autotrain.store.requests import DeliveryState

_MOST_CHARACTERS: Final = 2000
_MOST_PARAMETERS: Final = 100


def of_end(record: ExperimentRecord, trials: Sequence[TrialRecord] = ()) -> list[Delivery]:
    """Return what is told when an experiment has ended.

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
    """Return what is told when a trial changes to a state."""
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
    best = best_of(record.spec.objective, trials) if record.spec.objective else None
    found: JsonObject = {
        "id": record.id,
        "name": record.name,
        "version": record.version,
        "state": str(record.state),
        "reason": cut(record.remark, _MOST_CHARACTERS),
        "notebook": record.spec.origin.notebook,
        "created_s": record.created_s,
        "ended_s": record.ended_s,
        "trials": record.counts_json,
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
    best = best_of(record.spec.objective, trials) if record.spec.objective else None
    if best and record.spec.objective:
        text += f"; best {record.spec.objective.metric} {number(best.value)} (trial {best.number})"
    return cut(f"{text}; {record.remark}" if record.remark else text, _MOST_CHARACTERS)


_THREADS: Final = 4
_MOST_TRIES: Final = 6
_FIRST_PAUSE_S: Final = 2.0
_LOOK_S: Final = 5.0  # how often the store is read where nothing is known to be new
_log = logging.getLogger(__name__)


class HookRunner:
    """The messages of a home to hooks.

    Args:
        context: The home.
        secrets: Where values of hooks' variables are known; the manager's own variables come second.
    """

    def __init__(self, context: ManagerContext, secrets: SecretValues) -> None:
        self._context = context
        self._secrets = secrets
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="hook")
        self._pending: dict[str, Delivery] = {}
        self._tries: dict[str, Future[str]] = {}
        self._due_s: dict[str, float] = {}
        self._expected: set[str] = set()
        self._read_at_s = float("-inf")

    @property
    def is_busy(self) -> bool:
        """True while a message is neither delivered nor given up."""
        return bool(self._pending or self._expected)

    def expect(self, experiment_id: str) -> None:
        """Keep the secrets of an ended experiment with hooks until they have been told."""
        self._expected.add(experiment_id)
        self._read_at_s = float("-inf")

    def step(self, *, read_store: bool) -> None:
        """Take what has come of tries, and begin those that are due."""
        self._take_results()
        now_s = self._context.clocks.tick_s()
        if read_store or self._expected or now_s - self._read_at_s > _LOOK_S:
            self._read(now_s)
        for delivery in list(self._pending.values()):
            if delivery.id not in self._tries and self._due_s.get(delivery.id, 0.0) <= now_s:
                self._begin(delivery)

    def _read(self, now_s: float) -> None:
        self._read_at_s = now_s
        for delivery in self._context.retry_store(self._context.store.pending_deliveries):
            self._pending.setdefault(delivery.id, delivery)
        waiting = {delivery.experiment_id for delivery in self._pending.values()}
        for experiment_id in self._expected - waiting:
            self._secrets.forget(experiment_id)
        self._expected &= waiting

    def _begin(self, delivery: Delivery) -> None:
        try:
            record = self._context.retry_store(self._context.store.experiment, delivery.experiment_id)
        except UnknownExperimentError:  # deleted meanwhile, and its messages with it
            self._forget(delivery)
            return
        hook = next((hook for hook in record.spec.hooks if hook.name == delivery.hook), None)
        if hook is None:
            self._end(delivery, "given up", f"The hook {delivery.hook} is not known")
            return
        variables = self._variables(hook, delivery.experiment_id)
        self._tries[delivery.id] = self._threads.submit(try_once, hook, delivery.payload, variables)

    def _variables(self, hook: Hook, experiment_id: str) -> Mapping[str, str]:
        known = {**os.environ, **self._secrets.of(experiment_id)}
        return {name: known[name] for name in hook.variables if name in known}

    def _take_results(self) -> None:
        for delivery_id, attempt in list(self._tries.items()):
            if not attempt.done():
                continue
            del self._tries[delivery_id]
            delivery = self._pending.get(delivery_id)
            if delivery is not None:
                self._judge(delivery, attempt)

    def _judge(self, delivery: Delivery, attempt: Future[str]) -> None:
        error = attempt.exception()
        fault = f"it could not be tried ({type(error).__name__})" if error else attempt.result()
        if not fault:
            self._end(delivery, "delivered")
            return
        tries = delivery.tries + 1
        _log.warning("the hook %s was not reached, try %d: %s", delivery.hook, tries, fault)
        if tries >= _MOST_TRIES:
            self._end(delivery, "given up", f"The hook {delivery.hook} was not reached in {tries} tries: {fault}")
            return
        self._store(delivery, "pending", fault)
        again = Delivery(delivery.id, delivery.experiment_id, delivery.hook, delivery.payload, tries)
        self._pending[delivery.id] = again
        self._due_s[delivery.id] = self._context.clocks.tick_s() + _FIRST_PAUSE_S * 2 ** (tries - 1)

    def _end(self, delivery: Delivery, state: DeliveryState, error: str = "") -> None:
        self._store(delivery, state, error)
        self._forget(delivery)

    def _store(self, delivery: Delivery, state: DeliveryState, error: str) -> None:
        context = self._context
        context.retry_store(context.store.note_try, delivery.id, state, context.clocks.now_s(), error)

    def _forget(self, delivery: Delivery) -> None:
        self._pending.pop(delivery.id, None)
        self._due_s.pop(delivery.id, None)

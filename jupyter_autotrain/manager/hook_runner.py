"""Delivers what hooks have to be told: each try in a process of its own, started by a thread, never by the main loop.

A message is kept in the store until it is delivered or given up; a manager that is killed loses none, and its successor
tries again: a hook may be told twice, with the same id, and never less than once.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from jupyter_autotrain.core.hooks import Delivery, Hook
from jupyter_autotrain.errors import UnknownExperimentError
from jupyter_autotrain.manager.context import ManagerContext
from jupyter_autotrain.manager.hook_try import try_once
from jupyter_autotrain.manager.secret_values import SecretValues
from jupyter_autotrain.store.hook_deliveries import DeliveryState

_THREADS: Final = 4
_MOST_TRIES: Final = 6
_FIRST_PAUSE_S: Final = 2.0
_LOOK_S: Final = 5.0  # how often the store is read where nothing is known to be new
_log = logging.getLogger(__name__)


class HookRunner:
    """The messages of a home to hooks.

    Args:
        context: The home.
        secrets: Where values of hooks' variables are known; the manager's own environment comes second.
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
        """An experiment with hooks has ended: its secrets are needed until they have been told."""
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
        _log.warning("the hook %s was not told, try %d: %s", delivery.hook, tries, fault)
        if tries >= _MOST_TRIES:
            self._end(delivery, "given up", f"The hook {delivery.hook} was not told after {tries} tries: {fault}")
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

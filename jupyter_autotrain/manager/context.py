"""The context of every part of the manager: the home, the store, clocks, threads, and the factories of plugins."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.system import disk
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.records import UnreachableNode
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.core.tuner import EarlyStop, Tuner
from jupyter_autotrain.errors import LeaseLostError, OutdatedError, StoreError
from jupyter_autotrain.store import Store


class SecretValues:
    """The secrets that clients have sent, by experiment."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, str]] = {}

    def receive(self, messages: Sequence[JsonObject]) -> None:
        """Take the values from messages such as `{"secrets": {experiment id: {NAME: value}}}`."""
        for message in messages:
            secrets = message.get("secrets")
            if isinstance(secrets, Mapping):
                self._add(secrets)

    def _add(self, secrets: JsonObject) -> None:
        for experiment_id, values in secrets.items():
            if isinstance(values, Mapping):
                known = self._values.setdefault(experiment_id, {})
                known.update({name: str(value) for name, value in values.items()})

    def of(self, experiment_id: str) -> Mapping[str, str]:
        """Return the known values of an experiment, by name."""
        return self._values.get(experiment_id, {})

    def forget(self, experiment_id: str) -> None:
        """Drop the values of an experiment that has ended."""
        self._values.pop(experiment_id, None)

    def block_reason(self, experiment_id: str, spec: ExperimentSpec) -> str:
        """Return what blocks the trials of an experiment whose values are not all known; "" when they are."""
        known = self.of(experiment_id)
        missing = [name for name in spec.secrets if name not in known]
        if not missing:
            return ""
        return (
            f"waits for its secret {', '.join(missing)}: secrets are kept in memory only, and this manager does not "
            "have it; it goes on when the experiment is attached where that variable is set"
        )


P = ParamSpec("P")
T = TypeVar("T")
_FIRST_PAUSE_S = 0.05
_MOST_PAUSE_S = 2.0
_RETRY_S = 60.0
_MANY = 50
_EVERY_S = 1.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks, as functions so that tests can stop them.

    Attributes:
        now_s: Seconds since the epoch, for people; it jumps when it is set.
        tick_s: Never goes back; for waiting.
        pause: Sleeps.
        boot: Never goes back and means the same to every process of this machine; for durations.
    """

    now_s: Callable[[], float]
    tick_s: Callable[[], float]
    pause: Callable[[float], None]
    boot: Callable[[], BootTime] = BootTime.now


@dataclass(frozen=True, slots=True)
class Factories:
    """The makers of plugins. Each is called late, so that nothing is imported that no experiment needs."""

    create_backend: Callable[[Profile, BackendContext], Backend]
    create_tuner: Callable[[ExperimentSpec], Tuner]
    create_early_stop: Callable[[ExperimentSpec], EarlyStop | None]


@dataclass(frozen=True, slots=True)
class Threads:
    """The threads of calls that may take long.

    Attributes:
        calls: Makes those of calls to one backend: one that hangs keeps no other waiting.
        moves: Of checkpoints from one backend to another, which may take hours and keep no other call waiting.
    """

    calls: Callable[[], Executor]
    moves: Executor


@dataclass(frozen=True, slots=True)
class ManagerContext:
    """One home, seen by its manager."""

    home: Home
    store: Store
    clocks: Clocks
    factories: Factories

    def open_backend(self, profile: Profile) -> Backend:
        """Make the backend of a profile.

        Raises:
            BackendError: It cannot be made.
        """
        return self.factories.create_backend(profile, BackendContext(self.home))

    def retry_store(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the store until it succeeds: a full disk or a foreign lock delays everything and loses nothing.

        Meanwhile trials run on and their metrics wait in their files.

        Raises:
            StoreError: When the call itself is wrong; trying again would not help.
            SystemExit: When another manager or a newer version has taken over; this one has to end at once.
        """
        pause = _FIRST_PAUSE_S
        while True:
            try:
                return call(*args, **kwargs)
            except (LeaseLostError, OutdatedError) as error:
                raise SystemExit(error.found) from error
            except StoreError as error:
                if error.__cause__ is None:
                    raise
                _log.warning("the store failed, trying again in %g s: %s", pause, error.found)
            self.clocks.pause(pause)
            pause = min(2 * pause, _MOST_PAUSE_S)

    def retry_transient(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Make a call again for a minute while the machine lacks what it needs: a descriptor, a process, memory."""
        deadline = self.clocks.tick_s() + _RETRY_S
        pause = _FIRST_PAUSE_S
        while True:
            try:
                return call(*args, **kwargs)
            except Exception as error:
                if not disk.passes(error) or self.clocks.tick_s() > deadline:
                    raise
                _log.warning("trying again in %g s: %s", pause, error)
            self.clocks.pause(pause)
            pause = min(2 * pause, _MOST_PAUSE_S)


@dataclass(slots=True)
class PublishedReasons:
    """Of one experiment.

    Attributes:
        blocked: Why each trial is blocked, by number.
        nodes: Those that do not answer and have trials of it.
        unreachable: The trials there.
        blocked_s: The tick at which it was last stored why trials are blocked.
    """

    blocked: Mapping[int, str] = field(default_factory=dict)
    nodes: list[UnreachableNode] = field(default_factory=list)
    unreachable: frozenset[int] = frozenset()
    blocked_s: float = -math.inf

    @classmethod
    def stored(cls, context: ManagerContext, experiment_id: str) -> PublishedReasons:
        """Return what the manager before has published."""
        store = context.store
        blocked = context.retry_store(store.block_reasons, experiment_id)
        return cls(blocked, context.retry_store(store.unreachable_nodes, experiment_id))

    def publish(
        self,
        context: ManagerContext,
        experiment_id: str,
        blocked: Mapping[int, str],
        nodes: list[UnreachableNode],
    ) -> None:
        """Store what has changed; why many trials are blocked, which changes with each end, once a second."""
        if nodes != self.nodes:
            context.retry_store(context.store.set_unreachable_nodes, experiment_id, nodes)
            self.nodes = nodes
        tick_s = context.clocks.tick_s()
        is_due = len(blocked) < _MANY or tick_s - self.blocked_s >= _EVERY_S
        if is_due and blocked != self.blocked:
            self.blocked_s = tick_s
            context.retry_store(context.store.set_block_reasons, experiment_id, blocked)
            self.blocked = blocked

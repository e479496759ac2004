"""The backends in use: for each a job watcher, and the bookkeeping of what its trials hold."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.manager.attempt import Attempt
from jupyter_autotrain.manager.context import ManagerContext
from jupyter_autotrain.manager.events import Discovered, Event, Unreachable
from jupyter_autotrain.manager.experiment_run import ExperimentRun
from jupyter_autotrain.manager.job_watcher import JobWatcher
from jupyter_autotrain.manager.node_allocator import Unschedulable
from jupyter_autotrain.manager.resources import Reservation, ResourceAllocator
from jupyter_autotrain.manager.trial_end import finish_lost, mark_lost

_FRESH_S = 2.0
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _OpenBackend:
    """A backend in use. Nothing is granted before its inventory is known; for GPUs an old one is read again."""

    watcher: JobWatcher
    allocator: ResourceAllocator
    has_inventory: bool = False
    discovering: bool = False
    discovered_s: float = 0.0
    unreachable_reason: str = ""
    unusable_reason: str = ""


class BackendPool:
    """All backends that the experiments under way use, by the keys of their profiles."""

    def __init__(
        self, context: ManagerContext, emit: Callable[[Event], None], executor: Executor, *, start_watchers: bool = True
    ) -> None:
        self._context = context
        self._emit = emit
        self._executor = executor
        self._start_watchers = start_watchers
        self._backends: dict[str, _OpenBackend] = {}
        self._broken: dict[str, str] = {}

    def open(self, run: ExperimentRun) -> None:
        """Make a run's backends ready, and hold what its trials hold. A run none of whose backends works is ended."""
        choices = run.record.spec.backends
        for choice in choices:
            self._open(choice.profile)
        broken = [choice.profile.name for choice in choices if choice.profile.key in self._broken]
        for number, attempt in list(run.attempts.items()):
            choice = run.choice(attempt)
            if choice.profile.key in self._broken:
                finish_lost(run, attempt, self._broken[choice.profile.key])
                continue
            reservation = Reservation(run.resource_request(number, choice), attempt.placement)
            self._backends[choice.profile.key].allocator.reserve(reservation)
        if len(broken) == len(choices):
            mark_lost(run, "; ".join(self._broken[choice.profile.key] for choice in choices))

    def _open(self, profile: Profile) -> None:
        if profile.key in self._backends:
            return
        self._broken.pop(profile.key, None)
        try:
            backend = self._context.retry_transient(self._context.open_backend, profile)
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises becomes the reason
            _log.exception("backend %r cannot be made", profile.name)
            self._broken[profile.key] = f"the backend {profile.name!r} cannot be used: {error}"
            return
        watcher = JobWatcher(backend, profile.key, self._emit, self._executor, self._context)
        self._backends[profile.key] = _OpenBackend(watcher, ResourceAllocator(None))
        if self._start_watchers:
            watcher.start()
        self._refresh_inventory(self._backends[profile.key])

    def watcher(self, choice: BackendChoice) -> JobWatcher:
        """The job watcher of a backend in use."""
        return self._backends[choice.profile.key].watcher

    def unreachable_reason(self, choice: BackendChoice) -> str:
        """Why a backend does not answer, or ""."""
        backend = self._backends.get(choice.profile.key)
        return backend.unreachable_reason if backend else ""

    def set_reachability(self, event: Unreachable) -> None:
        """Remember that a backend does not answer, or does so again."""
        self._backends[event.backend].unreachable_reason = event.reason

    def discovered(self, event: Discovered) -> None:
        """Take what a backend has; a backend that queues by itself grants all."""
        backend = self._backends[event.backend]
        backend.discovering = False
        backend.has_inventory = event.inventory is not None
        backend.unusable_reason = "" if event.inventory is not None else event.reason
        backend.discovered_s = self._context.clocks.tick_s()
        backend.allocator.inventory = None if backend.watcher.backend.capabilities.queues else event.inventory

    def fail_unusable(self, run: ExperimentRun) -> None:
        """Fail what waits when none of a run's backends can be used."""
        reasons = [self._unusable_reason(choice) for choice in run.record.spec.backends]
        if all(reasons):
            run.fail_all_waiting("; ".join(reasons))

    def _unusable_reason(self, choice: BackendChoice) -> str:
        key = choice.profile.key
        if key in self._broken:
            return self._broken[key]
        reason = self._backends[key].unusable_reason
        return f"the backend {choice.profile.name!r} cannot be used here: {reason}" if reason else ""

    def begin_round(self) -> None:
        """Begin a round, in which `start` is called for all waiting trials in order."""
        for backend in self._backends.values():
            backend.allocator.begin_round()

    def release(self, run: ExperimentRun, attempt: Attempt) -> None:
        """Release what an attempt held."""
        self._backends[run.choice(attempt).profile.key].allocator.release(attempt.trial.job_id)

    def start(self, run: ExperimentRun, number: int, secrets: Mapping[str, str]) -> None:
        """Start a waiting trial on the first of its backends that has what it asks for; else note what blocks it."""
        refusals = []
        for choice in run.record.spec.backends:
            answer = self._try_allocate(run, number, choice)
            if isinstance(answer, Reservation):
                self._start_on(run, number, choice, answer, secrets)
                return
            refusals.append(answer)
        if all(refusal.permanent for refusal in refusals):
            run.fail_waiting(number, _joined(run, refusals))
        else:
            run.blocked[number] = _joined(run, refusals)

    def _try_allocate(self, run: ExperimentRun, number: int, choice: BackendChoice) -> Reservation | Unschedulable:
        if reason := self._unusable_reason(choice):
            return Unschedulable("backend", f"waits: {reason}", permanent=True)
        backend = self._backends[choice.profile.key]
        if not self._is_fresh(backend, wants_gpus=run.record.spec.resources.gpus > 0):
            return Unschedulable("backend", "waits for the inventory of its backend")
        return backend.allocator.try_allocate(run.resource_request(number, choice))

    def _start_on(
        self, run: ExperimentRun, number: int, choice: BackendChoice, answer: Reservation, secrets: Mapping[str, str]
    ) -> None:
        self._backends[choice.profile.key].allocator.reserve(answer)
        placement = replace(answer.placement, backend=choice.profile.name)
        run.change_state(number, TrialState.PREPARING, placement=placement)
        run.attempts[number] = attempt = Attempt(run.trial_spec(number), placement)
        self.submit(run, attempt, secrets)

    def submit(self, run: ExperimentRun, attempt: Attempt, secrets: Mapping[str, str]) -> None:
        """Submit an attempt to its backend, or only watch it where the backend has it already."""
        attempt.submitted = True
        run.blocked.pop(attempt.trial.number, None)
        watcher = self.watcher(run.choice(attempt))
        trial = attempt.trial
        store = self._context.store
        offset = self._context.retry_store(store.cursor, run.id, trial.number, trial.attempt, wire.METRICS)
        if attempt.ref is not None:
            watcher.watch(trial, attempt.ref, offset)
        else:
            own = {name: secrets[name] for name in trial.secrets if name in secrets}
            watcher.submit(trial, attempt.placement, own, offset)

    def _is_fresh(self, backend: _OpenBackend, *, wants_gpus: bool) -> bool:
        old = wants_gpus and self._context.clocks.tick_s() - backend.discovered_s > _FRESH_S
        if not backend.has_inventory or old:
            self._refresh_inventory(backend)
            return False
        return True

    def _refresh_inventory(self, backend: _OpenBackend) -> None:
        if not backend.discovering:
            backend.discovering = True
            backend.watcher.discover()


def _joined(run: ExperimentRun, refusals: Sequence[Unschedulable]) -> str:
    """What all backends of a run answer; of one backend its own sentence."""
    if len(refusals) == 1:
        return refusals[0].sentence
    names = [choice.profile.name for choice in run.record.spec.backends]
    return "; ".join(f"on {name} it {one.sentence}" for name, one in zip(names, refusals, strict=True))

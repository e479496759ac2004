"""The backends in use: for each a job watcher, and the bookkeeping of what its trials hold."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.backend import Profile
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.manager.attempt import Attempt
from jupyter_autotrain.manager.context import ManagerContext
from jupyter_autotrain.manager.events import Discovered, Event, Unreachable
from jupyter_autotrain.manager.experiment_run import ExperimentRun
from jupyter_autotrain.manager.job_watcher import JobWatcher
from jupyter_autotrain.manager.resources import Reservation, ResourceAllocator
from jupyter_autotrain.manager.trial_end import mark_lost

_FRESH_S = 2.0
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _OpenBackend:
    """A backend in use. Nothing is granted before its inventory is known; for GPUs an old one is read again."""

    profile: Profile
    watcher: JobWatcher
    allocator: ResourceAllocator
    has_inventory: bool = False
    discovering: bool = False
    discovered_s: float = 0.0
    unreachable_reason: str = ""


class BackendPool:
    """All backends that the experiments under way use."""

    def __init__(
        self, context: ManagerContext, emit: Callable[[Event], None], executor: Executor, *, start_watchers: bool = True
    ) -> None:
        self._context = context
        self._emit = emit
        self._executor = executor
        self._start_watchers = start_watchers
        self._backends: dict[str, _OpenBackend] = {}

    def open(self, run: ExperimentRun) -> None:
        """Make a run's backend ready, and hold what its trials hold. A backend that cannot be made ends the run."""
        name = run.record.spec.backend
        if name not in self._backends:
            try:
                profile, backend = self._context.retry_transient(self._context.open_backend, name)
            except Exception as error:  # noqa: BLE001 - whatever a plugin raises becomes the reason
                _log.exception("backend %r cannot be made", name)
                mark_lost(run, f"the backend {name!r} cannot be used: {error}")
                return
            watcher = JobWatcher(backend, self._emit, self._executor, self._context)
            self._backends[name] = _OpenBackend(profile, watcher, ResourceAllocator(None))
            if self._start_watchers:
                watcher.start()
            self._refresh_inventory(self._backends[name])
        for number, attempt in run.attempts.items():
            opened = self._backends[name]
            opened.allocator.reserve(Reservation(run.resource_request(number, opened.profile), attempt.placement))

    def watcher(self, name: str) -> JobWatcher:
        """The job watcher of a backend in use."""
        return self._backends[name].watcher

    def unreachable_reason(self, name: str) -> str:
        """Why a backend does not answer, or ""."""
        return self._backends[name].unreachable_reason if name in self._backends else ""

    def set_reachability(self, event: Unreachable) -> None:
        """Remember that a backend does not answer, or does so again."""
        self._backends[event.backend].unreachable_reason = event.reason

    def discovered(self, event: Discovered) -> None:
        """Take what a backend has; a backend that queues by itself grants all."""
        backend = self._backends[event.backend]
        backend.discovering = False
        backend.has_inventory = event.inventory is not None
        backend.discovered_s = self._context.clocks.tick_s()
        backend.allocator.inventory = None if backend.watcher.backend.capabilities.queues else event.inventory

    def begin_round(self) -> None:
        """Begin a round, in which `start` is called for all waiting trials in order."""
        for backend in self._backends.values():
            backend.allocator.begin_round()

    def release(self, run: ExperimentRun, job_id: str) -> None:
        """Release what a job held."""
        self._backends[run.record.spec.backend].allocator.release(job_id)

    def start(self, run: ExperimentRun, number: int, secrets: Mapping[str, str]) -> None:
        """Start a waiting trial if the backend has what it asks for; else note what blocks it."""
        backend = self._backends[run.record.spec.backend]
        if not self._is_fresh(backend, wants_gpus=run.record.spec.resources.gpus > 0):
            run.blocked.setdefault(number, "waits for the inventory of its backend")
            return
        answer = backend.allocator.try_allocate(run.resource_request(number, backend.profile))
        if isinstance(answer, Reservation):
            backend.allocator.reserve(answer)
            run.change_state(number, TrialState.PREPARING, placement=answer.placement)
            run.attempts[number] = attempt = Attempt(run.trial_spec(number), answer.placement)
            self.submit(run, attempt, secrets)
        elif answer.permanent:
            run.fail_waiting(number, answer.sentence)
        else:
            run.blocked[number] = answer.sentence

    def submit(self, run: ExperimentRun, attempt: Attempt, secrets: Mapping[str, str]) -> None:
        """Submit an attempt to its backend, or only watch it where the backend has it already."""
        attempt.submitted = True
        run.blocked.pop(attempt.trial.number, None)
        watcher = self.watcher(run.record.spec.backend)
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

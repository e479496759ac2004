"""The backends in use: for each a job watcher, and the bookkeeping of what its trials hold."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject, from_json
from jupyter_autotrain.core.backend import Backend
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.manager.attempts import Attempt, nodes_of
from jupyter_autotrain.manager.context import ManagerContext, Threads
from jupyter_autotrain.manager.experiment_run import ExperimentRun
from jupyter_autotrain.manager.jobs.events import Discovered, Event, Unreachable
from jupyter_autotrain.manager.jobs.watcher import JobWatcher
from jupyter_autotrain.manager.queue.reservations import Reservation, ReservationTable
from jupyter_autotrain.manager.queue.resource_request import ResourceRequest, Unschedulable
from jupyter_autotrain.manager.resources import ResourceAllocator, begin_move, resource_request
from jupyter_autotrain.manager.trial_end import finish_lost, mark_lost

_SILENT_S = 20.0


@dataclass(slots=True)
class OpenBackend:
    """A backend in use. Nothing is granted before its inventory is known; for GPUs an old one is read again.

    Attributes:
        unreachable_reason: Why it does not answer just now.
        unusable_reason: Why nothing can be started there; for good when `is_lasting`.
    """

    watcher: JobWatcher
    allocator: ResourceAllocator
    has_inventory: bool = False
    discovering: bool = False
    asked_s: float = 0.0
    discovered_s: float = 0.0
    unreachable_reason: str = ""
    unusable_reason: str = ""
    is_lasting: bool = False

    @property
    def silence(self) -> str:
        """Why it does not answer just now: as it said, or because it says nothing; "" where it answers."""
        return self.unreachable_reason or ("it does not answer" if self.watcher.waited_s > _SILENT_S else "")


_FRESH_S = 2.0
_PENDING_S = 3.0  # a first answer that takes longer is not waited for
_ASK_AGAIN_S = 5.0  # a backend or a node that cannot be used now
_log = logging.getLogger(__name__)


class BackendPool:
    """All backends that the experiments under way use, by the keys of their profiles."""

    def __init__(
        self, context: ManagerContext, emit: Callable[[Event], None], threads: Threads, *, start_watchers: bool = True
    ) -> None:
        self._context = context
        self._emit = emit
        self._threads = threads
        self._start_watchers = start_watchers
        self._backends: dict[str, OpenBackend] = {}
        self._reservations = ReservationTable()
        self._broken: dict[str, str] = {}

    def open(self, run: ExperimentRun) -> None:
        """Make a run's backends ready, and hold what its trials hold. A run none of whose backends works is ended."""
        choices = run.record.spec.backends
        self._reservations.now_s = self._context.clocks.tick_s()
        for choice in choices:
            self._open(choice.profile)
        broken = [choice.profile.name for choice in choices if choice.profile.key in self._broken]
        for number, attempt in list(run.attempts.items()):
            choice = run.choice(attempt)
            if choice.profile.key in self._broken:
                finish_lost(run, attempt, self._broken[choice.profile.key])
                continue
            self._reservations.reserve(
                Reservation(resource_request(run, number, choice), attempt.placement, choice.profile.key)
            )
        if len(broken) == len(choices):
            mark_lost(run, "; ".join(self._broken[choice.profile.key] for choice in choices))

    def prepare(self, messages: Sequence[JsonObject]) -> None:
        """Connect to the backends that clients are about to use, from messages such as `{"prepare": profile}`."""
        for message in messages:
            asked = message.get("prepare")
            if not isinstance(asked, Mapping):
                continue
            try:
                self._open(from_json(Profile, asked))
            except (TypeError, ValueError) as error:
                _log.warning("a message that names no profile was ignored: %s", error)

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
        watcher = JobWatcher(backend, profile.key, self._emit, self._threads, self._context)
        is_remote = not backend.capabilities.shares_home
        allocator = ResourceAllocator(None, self._reservations, profile.key, is_remote)
        self._backends[profile.key] = OpenBackend(watcher, allocator)
        if self._start_watchers:
            watcher.start()
        self._refresh_inventory(self._backends[profile.key])

    def remove_trials(self, profiles: Sequence[Profile], experiment_id: str) -> None:
        """Delete the trial directories of an experiment at these places, in the background."""
        for profile in profiles:
            self._open(profile)
            if backend := self._backends.get(profile.key):
                backend.watcher.remove_trials(experiment_id)

    def watcher(self, choice: BackendChoice) -> JobWatcher:
        """Return the job watcher of a backend in use."""
        return self._backends[choice.profile.key].watcher

    def unreachable_reasons(self, run: ExperimentRun) -> dict[str, str]:
        """Why a backend of a run does not answer, by its name."""
        found = {}
        for choice in run.record.spec.backends:
            backend = self._backends.get(choice.profile.key)
            if backend is not None and backend.silence:
                found[choice.profile.name] = backend.silence
        return found

    def set_reachability(self, event: Unreachable) -> None:
        """Remember that a backend does not answer, or does so again."""
        self._backends[event.backend].unreachable_reason = event.reason

    def discovered(self, event: Discovered) -> None:
        """Take what a backend has; a backend that queues by itself grants all."""
        backend = self._backends[event.backend]
        backend.discovering = False
        backend.has_inventory = event.inventory is not None
        backend.unusable_reason = "" if event.inventory is not None else event.reason
        backend.is_lasting = event.is_lasting
        backend.discovered_s = self._context.clocks.tick_s()
        backend.allocator.inventory = None if backend.watcher.backend.capabilities.queues else event.inventory

    def set_unavailable(self, attempt: Attempt, choice: BackendChoice, reason: str) -> None:
        """Place nothing where an attempt could not be started, until it answers again."""
        backend = self._backends[choice.profile.key]
        nodes = [placed.node for placed in attempt.placement.nodes]
        backend.discovered_s = self._context.clocks.tick_s()
        if nodes:
            backend.allocator.set_unavailable(nodes, reason)
        else:
            backend.unusable_reason = reason
            backend.is_lasting = False

    def fail_unusable(self, run: ExperimentRun) -> None:
        """Fail what waits when none of a run's backends can ever be used."""
        choices = run.record.spec.backends
        if all(map(self._is_useless, choices)):
            run.fail_all_waiting("; ".join(map(self._unusable_reason, choices)))

    def _is_useless(self, choice: BackendChoice) -> bool:
        key = choice.profile.key
        return key in self._broken or bool(self._backends[key].unusable_reason and self._backends[key].is_lasting)

    def _unusable_reason(self, choice: BackendChoice) -> str:
        key = choice.profile.key
        name = choice.profile.name
        if key in self._broken:
            return self._broken[key]
        backend = self._backends[key]
        if silence := backend.silence:
            cause = "" if "not answer" in silence else f": {silence}"
            return f"the backend {name!r} does not answer{cause}"
        if self._is_silent_at_first(backend):
            return f"the backend {name!r} has not answered yet"
        return f"the backend {name!r} cannot be used here: {backend.unusable_reason}" if backend.unusable_reason else ""

    def begin_round(self) -> None:
        """Begin a round, in which `try_allocate` is called for all waiting trials in order."""
        self._reservations.waiting.clear()
        self._reservations.now_s = self._context.clocks.tick_s()

    def reserve(self, reservation: Reservation) -> None:
        """Record what an attempt has been given."""
        self._reservations.reserve(reservation)

    def release(self, attempt: Attempt) -> None:
        """Release what an attempt held."""
        self._reservations.release(attempt.trial.job_id)

    def allocator(self, choice: BackendChoice) -> ResourceAllocator:
        """Return the allocator of a backend in use."""
        return self._backends[choice.profile.key].allocator

    def try_allocate(self, choice: BackendChoice, request: ResourceRequest) -> Reservation | Unschedulable:
        """Return what a trial would get on a backend now."""
        backend = self._backends.get(choice.profile.key)
        is_fresh = backend is not None and self._is_fresh(backend, wants_gpus=request.resources.gpus > 0)
        if reason := self._unusable_reason(choice):
            is_lasting = self._is_useless(choice)
            verb = "cannot run" if is_lasting else "waits"
            return Unschedulable("backend", f"{verb}: {reason}", permanent=is_lasting, unavailable=True)
        if backend is None or not is_fresh:
            return Unschedulable("backend", f"waits for the inventory of the backend {choice.profile.name!r}")
        return backend.allocator.try_allocate(request)

    def capacity(self, choice: BackendChoice, request: ResourceRequest) -> float:
        """Return how many such trials a backend runs at the same time; one while it is not known."""
        backend = self._backends[choice.profile.key]
        return backend.allocator.capacity(request) if backend.has_inventory else 1.0

    def nodes(self, choice: BackendChoice) -> set[str]:
        """Return the names of a backend's nodes; "" stands for all where they are not known."""
        backend = self._backends.get(choice.profile.key)
        inventory = backend.allocator.inventory if backend is not None else None
        return {node.name for node in inventory.nodes} if inventory is not None else {""}

    def accelerators(self, choice: BackendChoice) -> dict[str, int]:
        """Return the indices of a backend's accelerators, by their ids."""
        backend = self._backends.get(choice.profile.key)
        inventory = backend.allocator.inventory if backend is not None else None
        found: dict[str, int] = {}
        for node in inventory.nodes if inventory is not None else ():
            found.update({gpu.id: gpu.index for gpu in node.accelerators})
        return found

    def is_pending(self, choice: BackendChoice) -> bool:
        """Return whether what a backend has is about to be known for the first time."""
        backend = self._backends[choice.profile.key]
        is_new = backend.discovering and not backend.has_inventory
        return is_new and not self._is_silent_at_first(backend)

    def _is_silent_at_first(self, backend: OpenBackend) -> bool:
        """Return whether what a backend has is not known yet, though it was asked a while ago."""
        is_new = backend.discovering and not backend.has_inventory
        return is_new and self._context.clocks.tick_s() - backend.asked_s >= _PENDING_S

    def is_avoided(self, choice: BackendChoice, request: ResourceRequest) -> bool:
        """Return whether a backend could put a trial only where an earlier attempt of it was lost."""
        backend = self._backends.get(choice.profile.key)
        if backend is None or not request.avoid:
            return False
        inventory = backend.allocator.inventory
        nodes = inventory.nodes if inventory is not None else ()
        return all(node.unavailable or node.name in request.avoid for node in nodes)

    def has_other_place(self, run: ExperimentRun, attempt: Attempt) -> bool:
        """Return whether a node could take a trial, now or later, that has not lost an attempt of it."""
        for choice in run.record.spec.backends:
            backend = self._backends.get(choice.profile.key)
            is_same = choice.profile.name == attempt.placement.backend
            if backend is None or not backend.has_inventory or self._unusable_reason(choice):
                continue
            request = resource_request(run, attempt.trial.number, choice)
            lost = request.avoid.union(nodes_of(attempt.placement) if is_same else ())
            if backend.allocator.has_other_place(replace(request, avoid=lost)):
                return True
        return False

    def submit(self, run: ExperimentRun, attempt: Attempt, secrets: Mapping[str, str]) -> None:
        """Submit an attempt to its backend, or only watch it where the backend has it already."""
        attempt.submitted = True
        attempt.submitted_s = self._context.clocks.tick_s()
        run.blocked.pop(attempt.trial.number, None)
        watcher = self.watcher(run.choice(attempt))
        trial = attempt.trial
        store = self._context.store
        offset = self._context.retry_store(store.cursor, run.id, trial.number, trial.attempt, wire.METRICS)
        if attempt.ref is not None:
            watcher.watch(trial, attempt.ref, offset, attempt.unreachable.reason if attempt.unreachable else "")
        else:
            own = {name: secrets[name] for name in trial.secrets if name in secrets}
            wanted = begin_move(run, attempt, self.backend)
            watcher.submit(wanted, attempt.placement, own, offset, attempt.move)

    def backend(self, choice: BackendChoice) -> Backend | str:
        """Return a backend of a run, or why it cannot be used."""
        key = choice.profile.key
        return self._broken.get(key) or self._backends[key].watcher.backend

    def _is_fresh(self, backend: OpenBackend, *, wants_gpus: bool) -> bool:
        """Return whether the inventory may be used.

        Asks for a new one where it is old, or where something does not answer.
        """
        age_s = self._context.clocks.tick_s() - backend.discovered_s
        is_old = wants_gpus and age_s > _FRESH_S
        lacks_something = bool(backend.unusable_reason) or backend.allocator.has_unavailable_nodes
        is_due = age_s > _ASK_AGAIN_S if lacks_something else not backend.has_inventory or is_old
        if is_due:
            self._refresh_inventory(backend)
        return backend.has_inventory and not is_old

    def _refresh_inventory(self, backend: OpenBackend) -> None:
        if not backend.discovering:
            backend.discovering = True
            backend.asked_s = self._context.clocks.tick_s()
            backend.watcher.discover()
